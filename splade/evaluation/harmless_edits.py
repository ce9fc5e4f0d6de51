"""Edits that leave what a text says as it is. For English, and by rule of thumb."""

from collections.abc import Callable

import regex

Edit = Callable[[str], str]
"""The edited text; the text itself where there is nothing to edit."""

_FULL_FORMS = {
    "can't": "cannot",
    "won't": "will not",
    "it's": "it is",
    "that's": "that is",
    "there's": "there is",
    "i'm": "i am",
    "i've": "i have",
    "you're": "you are",
    "they're": "they are",
    "we're": "we are",
}
"""Short forms that have one long form; "he's" may be "he is" or "he has" and is left alone."""
_SHORT = regex.compile(rf"\b(?:{'|'.join(_FULL_FORMS)}|(\w+)n't)\b", regex.IGNORECASE)


def toggle_full_stop(text: str) -> str:
    """Without its final full stop, or with one where there is no mark. Example: `Good film. -> Good film`"""
    bare = text.rstrip()
    if bare.endswith(".") and not bare.endswith(".."):
        return bare[:-1].rstrip()
    return f"{bare}." if bare and (bare[-1].isalnum()) else text


def toggle_capital(text: str) -> str:
    """The first letter in the other case."""
    return text[:1].swapcase() + text[1:]


def widen_blanks(text: str) -> str:
    """Two blanks for one."""
    return text.replace(" ", "  ")


def curl_apostrophes(text: str) -> str:
    """Typographic apostrophes for straight ones. Example: `isn't -> isn’t`"""
    return text.replace("'", "’")


def in_quotation_marks(text: str) -> str:
    """The text as somebody's words."""
    return f'"{text}"' if text.strip() and '"' not in text else text


def write_out(text: str) -> str:
    """Short forms written out. Example: `it's bad, isn't it -> it is bad, is not it`"""
    return _SHORT.sub(lambda found: _FULL_FORMS.get(found[0].casefold(), f"{found[1]} not"), text)


HARMLESS_EDITS: dict[str, Edit] = {
    "full stop": toggle_full_stop,
    "capital": toggle_capital,
    "blanks": widen_blanks,
    "apostrophes": curl_apostrophes,
    "quotation marks": in_quotation_marks,
    "written out": write_out,
}
