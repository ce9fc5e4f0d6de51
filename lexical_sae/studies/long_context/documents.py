"""A text hidden in a long document of neutral sentences: a needle at the start, in the middle or at the end."""

from collections.abc import Callable, Iterator
from itertools import chain

from lexical_sae.data.sources.neutral_filler import neutral_sentences

PLACES = {"start": 0.0, "middle": 0.5, "end": 1.0}
"""Share of the filler before the needle."""
FILLER_ALONE = "no needle"

CountTokens = Callable[[str], int]


def hide_needle(needle: str, length: int, place: str, count: CountTokens, seed: int) -> str | None:
    """The needle with filler around it, at most `length` tokens and less than a sentence below; None if it is longer.

    Example: `hide_needle("a warm film", 20, "end", count, 0)` -> `The cup stands by the sink. ... a warm film`
    """
    room = length - count(needle)
    if room < 0:
        return None
    sentences = neutral_sentences(seed)
    before = _fill(sentences, room * PLACES[place], count)
    # A short sentence might still fit after a needle at the end.
    after = _fill(sentences, room - sum(map(count, before)), count) if PLACES[place] < 1 else []
    return " ".join(chain(before, [needle], after))


def filler_alone(length: int, count: CountTokens, seed: int) -> str:
    """A document of that length without a needle."""
    return " ".join(_fill(neutral_sentences(seed), length, count))


def _fill(sentences: Iterator[str], room: float, count: CountTokens) -> list[str]:
    """Sentences up to `room` tokens in total."""
    found: list[str] = []
    for sentence in sentences:
        room -= count(sentence)
        if room < 0:
            return found
        found.append(sentence)
    raise AssertionError("there are always more sentences")
