"""Sentences of the minimal pairs, antonyms and negation tests.

TEST MATERIAL. Training and its augmentation may not use these frames, nor put these words into frames of their own: a
model that has been taught the test proves nothing. `shared_material` says what an augmentation has in common with it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

NOUNS = tuple(
    """
    music story film movie plot script scene dialogue cast picture director book ending character camera song room
    soundtrack pacing setting
    """.split()  # noqa: SIM905 - a list of strings would be a page long
)
OPPOSITE_ADJECTIVES = (
    ("wonderful", "terrible"),
    ("brilliant", "awful"),
    ("delightful", "dreadful"),
    ("beautiful", "ugly"),
    ("engaging", "tedious"),
    ("good", "bad"),
)
NOUN_FRAMES = ("the {noun} was {adjective} .", "it has a {adjective} {noun} .")

ANTONYMS = tuple(
    tuple(pair.split("/"))
    for pair in """
    good/bad great/terrible wonderful/awful excellent/poor best/worst brilliant/stupid interesting/boring exciting/dull
    beautiful/ugly clever/foolish smart/dumb fresh/stale charming/repulsive graceful/clumsy strong/weak warm/cold
    pleasant/unpleasant delightful/dreadful engaging/tedious original/derivative coherent/incoherent superb/abysmal
    enjoyable/unbearable convincing/unconvincing inspired/uninspired memorable/forgettable funny/unfunny lively/lifeless
    sincere/phony successful/failed impressive/disappointing satisfying/frustrating worthwhile/worthless polished/sloppy
    believable/implausible entertaining/tiresome perfect/flawed rewarding/pointless sweet/bitter happy/miserable
    """.split()  # noqa: SIM905
)
ANTONYM_FRAMES = ("it was {x} .", "i found it {x} .", "the whole thing is {x} .", "this is a {x} piece of work .")

POSITIVE = tuple(
    """
    good great wonderful excellent brilliant interesting exciting beautiful clever smart fresh charming delightful
    engaging original enjoyable convincing memorable funny lively impressive satisfying entertaining moving powerful
    """.split()  # noqa: SIM905
)
NEGATIVE = tuple(
    """
    bad terrible awful poor stupid boring dull ugly foolish dumb stale clumsy weak unpleasant dreadful tedious
    derivative forgettable disappointing sloppy predictable tiresome pointless annoying lifeless
    """.split()  # noqa: SIM905
)
PLAIN_FRAME = "it was {x} ."
NEGATION_FRAMES = (
    "it was not {x} .",
    "it is never {x} .",
    "it was hardly {x} .",
    "it is anything but {x} .",
    "it fails to be {x} .",
    "{x} ? not at all .",
    "nothing about it is {x} .",
    "it is far from {x} .",
    "i would not call it {x} .",
    "it is by no means {x} .",
)


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences that differ in one adjective."""

    noun: str
    adjectives: tuple[str, str]
    """The positive one first."""
    sentences: tuple[str, str]


def minimal_pairs() -> list[MinimalPair]:
    """Every noun beside every pair of adjectives, in one frame and the other by turns."""
    found = []
    for i, (noun, pair) in enumerate(product(NOUNS, OPPOSITE_ADJECTIVES)):
        frame = NOUN_FRAMES[i % len(NOUN_FRAMES)]
        positive, negative = (frame.format(noun=noun, adjective=adjective) for adjective in pair)
        found.append(MinimalPair(noun, pair, (positive, negative)))
    return found


def antonym_sentences() -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Pairs of antonyms, each with the same sentence about either; the positive one first."""
    return [
        ((pair[0], pair[1]), (frame.format(x=pair[0]), frame.format(x=pair[1])))
        for pair in ANTONYMS
        for frame in ANTONYM_FRAMES
    ]


def negated(words: Iterable[str]) -> list[str]:
    """Every word in every frame of negation."""
    return [frame.format(x=word) for word in words for frame in NEGATION_FRAMES]


def shared_material(frames: Iterable[str], words: Iterable[str]) -> frozenset[str]:
    """Frames (with any one slot in braces) and words of the tests that are among the given; empty is how it should be.

    Example: `shared_material(["It was not {adj}."], ["warm"]) -> {"it was not {} .", "warm"}`
    """
    own = {_plain(frame) for frame in (*NOUN_FRAMES, *ANTONYM_FRAMES, *NEGATION_FRAMES, PLAIN_FRAME)}
    tested = {*POSITIVE, *NEGATIVE, *(word for pair in (*ANTONYMS, *OPPOSITE_ADJECTIVES) for word in pair)}
    return frozenset(own & {_plain(frame) for frame in frames} | tested & {word.casefold() for word in words})


def _plain(frame: str) -> str:
    """A frame in lower case with unnamed slots and marks apart. Example: `Not {x}. -> not {} .`"""
    text = frame.casefold()
    while "{" in text and (slot := text[text.index("{") : text.index("}") + 1]) != "{}":
        text = text.replace(slot, "\0")
    for mark in ".,!?":
        text = text.replace(mark, f" {mark} ")
    return " ".join(text.replace("\0", "{}").split())
