"""One text as every explainer gets it: the decision on it, its words, and the question that is asked."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from splade.circuits.core import SparseCircuitState
from splade.data.batches import TokenisedTexts, pad_id
from splade.data.cells import repair_text
from splade.data.words import TextLayout, layout_of
from splade.encoding import encode
from splade.inference.methods import Shares
from splade.inference.places import find_places
from splade.inference.reading import ReadTexts, read_batch
from splade.mechanistic.exact import Head, class_centred
from splade.models.lexical_sae import LexicalSAE

Scores = Float[Tensor, " N"]
"""A number per word; high where the word speaks for the predicted class."""


@dataclass(frozen=True)
class Case:
    """A text, what the model decided, and in which direction over the classes that is explained."""

    model: LexicalSAE
    row: int
    """Place in the corpus; what is drawn by lot depends on it."""
    read: ReadTexts
    """The text alone in a batch."""
    layout: TextLayout
    direction: Float[Tensor, "1 C"]
    """The predicted class against the mean of all."""

    @property
    def state(self) -> SparseCircuitState:
        """The decision."""
        return self.read.state

    @property
    def head(self) -> Head:
        """What decides from active words."""
        return self.model.head()

    @property
    def predicted(self) -> int:
        """The class with the greatest logit."""
        return int(self.state.logits.argmax())

    @property
    def num_active(self) -> int:
        """Active words of the vocabulary."""
        return len(self.state.code.ids)

    @property
    def num_written(self) -> int:
        """Words of the text that the model saw."""
        return len(self.layout.word_spans)

    def explained(self, logits: Float[Tensor, "N C"]) -> Float[Tensor, " N"]:
        """The number that is explained, of other logits of the same text: the predicted class's, centred."""
        return (logits * self.direction).sum(-1)

    def share_out(self, scores: Float[Tensor, " K"]) -> Float[Tensor, " W"]:
        """Scores of active words as scores of the text's words: each counts where it won, and there they add up."""
        nothing = torch.zeros(1)
        (places,) = find_places(self.model, self.read, Shares(scores, nothing, nothing))
        return torch.tensor([span.score for span in places.spans], dtype=torch.float64)

    def drawn(self, seed: int) -> np.random.Generator:
        """Random numbers that depend on the seed and the text's place alone."""
        return np.random.default_rng([seed, self.row])


def read_case(model: LexicalSAE, row: int, text: str) -> Case:
    """The decision on one text; its time is what predicting costs."""
    encoded = encode(model.tokenizer, [repair_text(text)], model.max_length)
    tokens = TokenisedTexts.of(encoded, pad_id(model.tokenizer))
    model = model.opened_to(tokens.ids)
    batch = tokens.batch([0])
    state = read_batch(model, batch)
    read = ReadTexts(model, [text], encoded, tokens.ids, batch, state)
    return Case(model, row, read, layout_of(text, *encoded), class_centred(state.logits, state.logits.argmax(-1)))
