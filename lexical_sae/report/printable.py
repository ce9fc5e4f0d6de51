"""Strings from outside, made safe to print."""

import re

LONGEST_WORD = 100
_LONGER_WORD = re.compile(rf"(\S{{{LONGEST_WORD}}})\S+")


def shown(text: str) -> str:
    """A string from outside without what a terminal would act on: control characters become visible stand-ins."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def with_short_words(text: str) -> str:
    """A text whose words fit a screen: what is longer than a hundred characters ends in an ellipsis."""
    return _LONGER_WORD.sub("\\1…", text)
