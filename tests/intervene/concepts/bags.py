"""Texts as bags of words, and a decision with known weights: studies without a model, in which everything is known."""

import numpy as np
from scipy.sparse import csr_array

from lexical_sae.data import TextSplit
from lexical_sae.intervene.concepts.concept_labels import concept_of
from lexical_sae.intervene.concepts.leakage import ConceptTexts
from lexical_sae.intervene.concepts.word_matrix import EditedCodes, Predictions


class Bag:
    """A column per word of some texts; activation one where it stands."""

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

    def decide(edited: EditedCodes) -> Predictions:
        logits = edited.words @ weights - edited.scores @ (edited.directions @ weights)
        flagged = logits > 1e-9
        return Predictions(flagged.astype(int), flagged, 1 / (1 + np.exp(-logits)))

    return decide
