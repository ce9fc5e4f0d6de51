"""Which words are forms of one word. For English, and by rule of thumb."""

from collections.abc import Iterable, Sequence

_ENDINGS = ("ingly", "edly", "ness", "ings", "ing", "ers", "est", "ed", "er", "ly", "es", "s")


def stem(word: str) -> str:
    """What regular inflections of a word share. Example: `running, runs, run -> run`; `cities, city -> citi`."""
    word = word.casefold()
    while shorter := _without_ending(word):
        word = shorter
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    word = word.removesuffix("e") if len(word) > 3 else word
    return word[:-1] + "i" if word.endswith("y") else word


def _without_ending(word: str) -> str:
    if word.endswith(("ies", "ied")) and len(word) > 4:
        return word[:-3] + "y"
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= 3), "")
    # "class" is not several of "clas".
    return "" if not ending or (ending == "s" and word.endswith("ss")) else word.removesuffix(ending)


def grouped_forms(words: Sequence[str | None]) -> list[list[int]]:
    """Places of words that are forms of one another, in the order of the first of each; None is a form of nothing.

    Example: `film, plot, films -> [[0, 2], [1]]`
    """
    groups: dict[str | int, list[int]] = {}
    for place, word in enumerate(words):
        groups.setdefault(place if word is None else stem(word), []).append(place)
    return list(groups.values())


def joined_forms(words: Iterable[str]) -> str:
    """The name of several forms together. Example: `film, films -> film/films`"""
    return "/".join(words)
