"""The "did you mean" of errors about names."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """`"; did you mean 'x'?"`, or a full stop when no option is close.

    Example: did_you_mean("lable", ["text", "label"]) -> "; did you mean 'label'?"
    """
    by_folded = {option.casefold(): option for option in options}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return f"; did you mean {by_folded[close[0]]!r}?" if close else "."
