"""One text as every explainer gets it: the decision on it, its words, and the question that is asked."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.data.batches import Batch, TokenizedTexts, pad_id
from lexical_sae.data.encoding import encode
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.data.words import TextLayout, layout_of
from lexical_sae.inference.methods import Shares
from lexical_sae.inference.places import find_places
from lexical_sae.inference.reading import ReadTexts, read_batch
from lexical_sae.mechanistic.exact import Head, class_centered
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.lexical_sae import LexicalSAE

Scores = Float[Tensor, " N"]
"""A number per word; high where the word contributes to the predicted class."""


@dataclass(frozen=True)
class Case:
    """A text, what the model decided, and in which direction over the classes that is explained."""

    model: LexicalSAE
    row: int
    """Place in the corpus; what is sampled at random depends on it."""
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
    tokens = TokenizedTexts.of(encoded, pad_id(model.tokenizer))
    model = model.opened_to(tokens.ids)
    batch = tokens.batch([0])
    state = read_batch(model, batch)
    read = ReadTexts(model, [text], encoded, tokens.ids, batch, state)
    return Case(model, row, read, layout_of(text, *encoded), class_centered(state.logits, state.logits.argmax(-1)))


WordSet = frozenset[int]
"""Words of a text by their number in reading order."""
TEXTS_AT_ONCE = 32


@torch.no_grad()
def logits_masked(case: Case, sets: Sequence[Collection[int]]) -> Float[Tensor, "N C"]:
    """The logits of the text with each set of its words masked, token by token, so that no other word moves.

    Sets that are given twice are read once.
    """
    wanted = [frozenset(words) for words in sets]
    distinct = list(dict.fromkeys(wanted))
    parts = [_read(case, distinct[start : start + TEXTS_AT_ONCE]) for start in range(0, len(distinct), TEXTS_AT_ONCE)]
    place = {words: i for i, words in enumerate(distinct)}
    return torch.cat(parts)[[place[words] for words in wanted]]


def _read(case: Case, sets: Sequence[WordSet]) -> Float[Tensor, "N C"]:
    batch, words = case.read.batch, case.layout.token_words
    is_masked = torch.tensor([[word in hidden for word in words] for hidden in sets])
    ids = batch.input_ids.expand(len(sets), -1).masked_fill(is_masked, mask_id(case))
    mask = batch.attention_mask.expand(len(sets), -1)
    return read_batch(case.model, Batch(ids, mask, torch.arange(len(sets)))).logits


def mask_id(case: Case) -> int:
    """The token that stands for a hidden word."""
    return int(case.model.tokenizer.mask_token_id)  # pyright: ignore[reportArgumentType]
