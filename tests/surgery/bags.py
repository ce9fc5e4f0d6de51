"""Texts as bags of words, and a decision with known weights: studies without a model, in which everything is known."""

import numpy as np
from scipy.sparse import csr_array

from splade.data import TextSplit
from splade.surgery.codes import Answers, EditedCodes
from splade.surgery.concepts import concept_of
from splade.surgery.leakage import ConceptTexts


class Bag:
    """A column per word of some texts; strength one where it stands."""

    def __init__(self, *splits: TextSplit) -> None:
        words = sorted({word for split in splits for text in split.texts for word in text.split()})
        self.columns = {word: i for i, word in enumerate(words)}

    def codes(self, texts) -> csr_array:
        dense = np.zeros((len(texts), len(self.columns)))
        for row, text in enumerate(texts):
            dense[row, [self.columns[word] for word in text.split()]] = 1
        return csr_array(dense)

    def ids(self, words) -> list[int]:
        return [self.columns[word] for word in words]

    def concept_texts(self, split: TextSplit, name: str) -> ConceptTexts:
        return ConceptTexts(split.texts, self.codes(split.texts), concept_of(split, name) == 1)


def linear(weights: np.ndarray):
    """Says yes where the weighted words are above zero."""

    def decide(edited: EditedCodes) -> Answers:
        logits = edited.words @ weights - edited.scores @ (edited.directions @ weights)
        said = logits > 1e-9
        return Answers(said.astype(int), said, 1 / (1 + np.exp(-logits)))

    return decide
