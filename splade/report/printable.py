"""Strings from outside, made safe to print."""


def shown(text: str) -> str:
    """A string from outside without what a terminal would act on: control characters become visible stand-ins."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
