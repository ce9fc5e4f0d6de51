"""One pass over a corpus, for everything that looks at a model from afar.

Texts are read in batches and forgotten; what a view needs of them, its collector keeps. So several views cost one pass,
and memory does not grow with the corpus.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from splade.circuits.core import SparseCircuitState
from splade.data.batches import tokenise
from splade.evaluation.names_sae import contributions_per_class
from splade.inference.labels import label_index, labels_of
from splade.inference.reading import read_with_states
from splade.models.lexical_sae import LexicalSAE
from splade.progress import OnStep, Step, silent

BATCHES_SORTED_TOGETHER = 32
"""Texts are put in order of length within so many batches, to pad little."""


@dataclass(frozen=True)
class DecisionBatch:
    """Some decisions with their circuits, whatever they are about: texts, or words of sentences."""

    rows: tuple[int, ...]
    """Place of each in the corpus."""
    classes: Int[Tensor, " B"]
    """The class that each counts under: its label where labels were given, otherwise the predicted class."""
    state: SparseCircuitState

    @property
    def drawn_with(self) -> tuple[int, ...]:
        """What each stands and falls with when a corpus is drawn anew: of texts, the text itself."""
        return self.rows

    @cached_property
    def predicted(self) -> Int[Tensor, " B"]:
        """The class with the greatest logit."""
        return self.state.logits.argmax(-1)

    @cached_property
    def contributions(self) -> Float[Tensor, "K C"]:
        """Class-centred contribution of every active word to every class."""
        return contributions_per_class(self.state)

    @cached_property
    def own_contributions(self) -> Float[Tensor, " K"]:
        """Contribution of every active word to the class that its decision counts under."""
        return self.contributions.gather(1, self.classes[self.state.code.rows, None]).squeeze(1)

    @cached_property
    def weights(self) -> Float[Tensor, "K C"]:
        """Class-centred `W_eff` of every active word: what it would contribute at a strength of one."""
        code = self.state.code
        return contributions_per_class(replace(self.state, code=replace(code, values=torch.ones_like(code.values))))


@dataclass(frozen=True)
class ReadBatch(DecisionBatch):
    """Some texts and what the model said of them."""

    texts: tuple[str, ...]
    token_ids: tuple[list[int], ...]
    """Without padding."""
    mean_states: Float[Tensor, "B E"] | None = None
    """Mean encoder state of each; None for a model that decides without the encoder."""


@runtime_checkable
class Collector(Protocol):
    """Whatever keeps something of each batch."""

    def update(self, batch: ReadBatch) -> None: ...


def collect(
    model: LexicalSAE,
    texts: Iterable[Any],
    collectors: Sequence[Collector],
    labels: Iterable[Any] | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> int:
    """Show every text to every collector; the number of texts comes back. A corpus without texts is refused."""
    count = 0
    for batch in read_corpus(model, texts, labels, batch_size, on_step):
        for collector in collectors:
            collector.update(batch)
        count += len(batch.rows)
    if not count:
        raise ValueError("there is no text to read; give at least one")
    return count


def opened_to_corpus(model: LexicalSAE, texts: Iterable[Any]) -> tuple[LexicalSAE, Iterable[Any]]:
    """The model with a dimension for every literal word of the texts, and the texts, which a generator gives once.

    For views that keep something per dimension; other models read words from logits and know all of theirs.
    """
    if model.literal is None or isinstance(texts, str | bytes | dict):
        return model, texts
    texts = list(texts)
    strings = [text for text in texts if isinstance(text, str)]
    return model.opened_to(tokenise(model.tokenizer, strings, model.max_length).ids), texts


def read_corpus(
    model: LexicalSAE,
    texts: Iterable[Any],
    labels: Iterable[Any] | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> Iterator[ReadBatch]:
    """What the model says of each text, batch after batch. Any iterable of texts will do, a generator too.

    Labels go by name or place, as the model has them.
    Which texts are read together depends on the texts alone, not on the model: two models read the same batches.
    """
    if isinstance(texts, str | bytes | dict):
        raise ValueError(f"texts is one {type(texts).__name__}; put your texts in a list")
    size: Any = texts
    total = len(size) if hasattr(texts, "__len__") else None
    # By place: a column of a table that was filtered or shuffled would give its rows by their old numbers.
    given = None if labels is None else list(labels)
    if given is not None and total is not None and total != len(given):
        raise ValueError(f"{len(given)} labels for {total} texts; give one per text")
    model.eval()
    numbered, done = enumerate(texts), 0
    while pool := list(islice(numbered, batch_size * BATCHES_SORTED_TOGETHER)):
        for row, text in pool:
            if not isinstance(text, str):
                raise ValueError(f"text {row} is {type(text).__name__} {text!r:.60}, not a string")
        pool.sort(key=lambda item: (-len(item[1]), item[0]))
        for start in range(0, len(pool), batch_size):
            chosen = pool[start : start + batch_size]
            yield _read(model, chosen, given)
            done += len(chosen)
            on_step(Step("reading texts", done, max(done, total or 0)))
    if given is not None and done != len(given):
        raise ValueError(f"{len(given)} labels for {done} texts; give one per text")


@torch.no_grad()
def _read(model: LexicalSAE, numbered: Sequence[tuple[int, str]], labels: Sequence[Any] | None) -> ReadBatch:
    rows, texts = (tuple(part) for part in zip(*numbered, strict=True))
    tokens = tokenise(model.tokenizer, texts, model.max_length)
    state, mean_states = read_with_states(model, tokens.batch(range(len(texts))))
    classes = state.logits.argmax(-1) if labels is None else _labels_of(rows, labels, labels_of(model))
    return ReadBatch(rows, classes.to(state.logits.device), state, texts, tokens.ids, mean_states)


def _labels_of(rows: Sequence[int], labels: Sequence[Any], names: Sequence[str]) -> Int[Tensor, " B"]:
    if max(rows) >= len(labels):
        raise ValueError(f"{len(labels)} labels for more texts than that; give one per text")
    return torch.tensor([label_index(names, labels[row], f"text {row}: label") for row in rows])
