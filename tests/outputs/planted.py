"""Texts in the words of the tiny encoder whose labels, or number, a few planted words decide."""

import random

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.data.targets import label_strata, number_strata

PLANTED = {"praise": ("good", "great", "wonderful"), "blame": ("bad", "awful", "terrible"), "place": ("city", "bank")}
VALUES = {"good": 1.0, "great": 2.0, "wonderful": 3.0, "bad": -1.0, "awful": -2.0, "terrible": -3.0}
BASE = 10.0
FILLER = ("the film", "a movie", "acting", "plot", "dogs play", "you", "it was", "river", "money", "churches")


def _text(draw: random.Random, words: list[str]) -> str:
    # As many words in each: a word counts the same in all of them.
    parts = words + draw.sample(FILLER, 6 - len(words))
    draw.shuffle(parts)
    return " ".join(parts)


def labelled(count: int, seed: int = 0, *, shuffled: bool = False) -> TextSplit:
    """Texts with any of three labels; `shuffled` gives every text the labels of another."""
    draw = random.Random(seed)
    rows = [tuple(int(draw.random() < 0.35) for _ in PLANTED) for _ in range(count)]
    words = [[draw.choice(own) for own, mark in zip(PLANTED.values(), row, strict=True) if mark] for row in rows]
    texts = tuple(_text(draw, some) for some in words)
    if shuffled:
        draw.shuffle(rows)
    return TextSplit(texts, tuple(rows), strata_of=label_strata(rows))


def numbered(count: int, seed: int = 0) -> TextSplit:
    """Texts whose number is 10 and the sum of the values of one or two planted words."""
    draw = random.Random(seed)
    chosen = [draw.sample(list(VALUES), draw.choice([1, 2])) for _ in range(count)]
    numbers = tuple(BASE + sum(VALUES[word] for word in words) for words in chosen)
    return TextSplit(tuple(_text(draw, words) for words in chosen), numbers, strata_of=number_strata(numbers))


def label_set(train: int = 200, *, shuffled: bool = False) -> TextDataset:
    splits = [labelled(size, seed, shuffled=shuffled) for seed, size in enumerate((train, 80, 80))]
    return TextDataset("planted", tuple(PLANTED), *splits, output="labels")


def number_set(train: int = 200) -> TextDataset:
    splits = [numbered(size, seed) for seed, size in enumerate((train, 80, 80))]
    return TextDataset("planted", ("stars",), *splits, output="number")
