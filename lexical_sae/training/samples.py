"""What a task's texts become for a step of training: samples, one per document or per labelled position."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.models.encoded import EncodedDocument
from lexical_sae.models.layers.activation import GateOutput
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.long_texts import Windows, windows_of
from lexical_sae.outputs.kind import Targets


class ReadTokens(NamedTuple):
    """A batch of texts and the encoder's state of every token that was read."""

    input_ids: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B L"]
    states: Float[Tensor, "B L E"]
    windows: Windows | None = None
    """Those that were read, of texts that are longer than one."""

    @classmethod
    def of(
        cls,
        model: LexicalSAE,
        input_ids: Int[Tensor, "B L"],
        mask: Bool[Tensor, "B L"],
        most_windows: int | None,
        generator: torch.Generator | None = None,
    ) -> "ReadTokens":
        """The states of a batch; with a number, of at most so many windows of each text, at random."""
        windows = windows_of(model, input_ids, mask)
        if windows is not None and most_windows is not None:
            windows = windows.sample(most_windows, generator)
        return cls(input_ids, mask, model.encoder_states(input_ids, mask, windows=windows), windows)

    @property
    def is_read(self) -> Bool[Tensor, "B L"] | None:
        """Tokens whose state is known; None where all are."""
        return None if self.windows is None else self.windows.is_read(self.mask)

    def take(self, some: Int[Tensor, " S"]) -> "ReadTokens":
        """Some of the texts."""
        windows = None if self.windows is None else self.windows.of_texts(some)
        return ReadTokens(self.input_ids[some], self.mask[some], self.states[some], windows)

    def mean_states(self) -> Float[Tensor, "B E"]:
        """The mean state of each text's tokens, of those that were read."""
        known = self.mask if self.windows is None else self.windows.is_read(self.mask)
        return (self.states * known[..., None]).sum(1) / known.sum(1, keepdim=True)


@dataclass(frozen=True)
class Encoded:
    """The samples of some texts: one per document, or one per labelled position."""

    sparse_vector: Float[Tensor, "N K"]
    gate: GateOutput
    logits: Float[Tensor, "N K"]
    """What the gate was given; -inf where a word cannot open."""
    own: Bool[Tensor, "N K"]
    """Words that stand in the text (at the position), if they may be features."""
    labels: Targets
    states: Float[Tensor, "N E"]
    """The encoder's state of each: the mean over a document's tokens, or that of the position itself."""
    head: str
    """Name of the head that decides on them."""
    weights: Float[Tensor, " N"] | None = None
    """How much each counts in the cross-entropy; None where all count the same."""
    words: Int[Tensor, " K"] | None = None
    """The dimension of each column, where only live ones have a column; None where all have."""
    in_reach: Bool[Tensor, " V"] | None = None
    """Dimensions that a token of the batch may open; None without a neighbourhood."""
    tokens: ReadTokens | None = None
    """The tokens of documents; None for positions."""
    is_made: Bool[Tensor, " N"] | None = None
    """Which documents were made by rule (`Documents.num_made`); None for positions."""

    def sample(self, most: int) -> "Encoded":
        """At most `most` of the samples, at random."""
        if len(self.labels) <= most:
            return self
        some = torch.randperm(len(self.labels))[:most].to(self.labels.device)
        return replace(
            self,
            sparse_vector=self.sparse_vector[some],
            gate=self.gate.map(lambda field: field[some]),
            logits=self.logits[some],
            own=self.own[some],
            labels=self.labels[some],
            states=self.states[some],
            weights=None if self.weights is None else self.weights[some],
            tokens=None if self.tokens is None else self.tokens.take(some),
            is_made=None if self.is_made is None else self.is_made[some],
        )


def samples_of(
    model: LexicalSAE,
    found: EncodedDocument,
    ids: Int[Tensor, "N L"],
    labels: Targets,
    states: Float[Tensor, "N E"],
    head: str,
) -> Encoded:
    """Samples with their own words; `ids` are the dimensions of the words that stand in each."""
    count, closed = found.logits.shape[1], model.gate.closed
    # One spare column takes what has none.
    columns = ids.where(ids != NO_WORD, count)
    if found.words is not None:
        column_of = torch.full_like(closed, count, dtype=torch.long)
        column_of[found.words] = torch.arange(count, device=ids.device)
        columns = column_of[ids].masked_fill(ids == NO_WORD, count)
        closed = closed[found.words]
    own = torch.zeros(len(ids), count + 1, dtype=torch.bool, device=ids.device).scatter_(1, columns, True)[:, :-1]
    # Where another sense of the word was picked, its own dimension cannot open.
    own = own & ~closed & found.logits.isfinite()
    read = (found.sparse_vector, found.gate, found.logits)
    return Encoded(*read, own, labels, states, head, words=found.words, in_reach=found.in_reach)
