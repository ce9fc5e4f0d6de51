"""Validation for corpora whose rows are overlapping phrases of the same sentences (SST-2).

A random tenth of such rows is no validation: most of its phrases lie inside a train row or hold one. So the
unit is the whole sentence: a row that no longer row contains. A tenth of those validates, and every train row
contained in one of them is dropped. Nothing in train then contains or is contained in a validation text.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from lexical_sae.data.examples import TextSplit
from lexical_sae.data.sampling import complement, stratified_hold_out, validation_size
from lexical_sae.data.splits import HoldOut


def hold_out_whole_sentences(train: TextSplit, groups: tuple[str, ...], rng: np.random.Generator) -> HoldOut:
    """A stratified tenth of the whole sentences, and the train rows that lie inside them."""
    whole = whole_sentences(groups)
    labels = [train.labels[i] for i in whole]
    picked = stratified_hold_out(labels, validation_size(len(whole)), rng, [groups[i] for i in whole])
    held_out = [whole[i] for i in picked]
    inside = {span for i in held_out for span in word_spans(groups[i])}
    dropped = [i for i in complement(held_out, len(groups)) if groups[i] in inside]
    return HoldOut(held_out, dropped, how="a stratified tenth of its whole sentences, phrases inside them dropped")


def whole_sentences(texts: Sequence[str]) -> list[int]:
    """Rows that are contained in no longer row, word for word.

    Example: ["a good film", "good film", "goo"] -> [0, 2]
    """
    rows_with: dict[str, list[int]] = defaultdict(list)
    for i, text in enumerate(texts):
        for word in set(text.split()):
            rows_with[word].append(i)

    def is_inside_another(text: str) -> bool:
        # Any row that contains the text contains its rarest word: only those few are compared.
        rarest = min(text.split(), key=lambda word: len(rows_with[word]))
        padded = f" {text} "
        return any(len(texts[j]) > len(text) and padded in f" {texts[j]} " for j in rows_with[rarest])

    return [i for i, text in enumerate(texts) if text and not is_inside_another(text)]


def word_spans(text: str) -> Iterator[str]:
    """Every run of consecutive words.

    Example: "a b c" -> "a", "a b", "a b c", "b", "b c", "c"
    """
    words = text.split()
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            yield " ".join(words[start:end])
