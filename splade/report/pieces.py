"""Tokens that are no words, under one name."""


def pieces_name(count: int) -> str:
    """What word pieces and symbols that are not listed are called together.

    Example: `1 -> "1 piece or symbol"`, `3 -> "3 pieces and symbols"`
    """
    return "1 piece or symbol" if count == 1 else f"{count} pieces and symbols"
