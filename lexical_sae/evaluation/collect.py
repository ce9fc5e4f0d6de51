"""One pass over a corpus for all collectors.

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

from lexical_sae.data.batches import rows_at_once, tokenize
from lexical_sae.evaluation.names.lexical import contributions_per_class
from lexical_sae.inference.labels import label_index, labels_of
from lexical_sae.inference.reading import read_with_states
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.outputs import CLASSES, Classes, OutputKind
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, Step, silent

CHARACTERS_PER_TOKEN = 4
"""Roughly: texts are put together before they are tokenised."""
BATCHES_SORTED_TOGETHER = 32
"""Texts are sorted by length within that many batches, to pad little."""


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
        """The unit of resampling that each belongs to: of texts, the text itself."""
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
        """Class-centred `W_eff` of every active word: what it would contribute at an activation of one."""
        code = self.state.code
        return contributions_per_class(replace(self.state, code=replace(code, values=torch.ones_like(code.values))))


@dataclass(frozen=True)
class ReadBatch(DecisionBatch):
    """Some texts and the model's decisions on them."""

    texts: tuple[str, ...]
    token_ids: tuple[list[int], ...]
    """Without padding."""
    mean_states: Float[Tensor, "B E"] | None = None
    """Mean encoder state of each; None for a model that decides without the encoder."""
    output: OutputKind = CLASSES
    """What the model gives a text. Of others than classes, `classes` says nothing: all are of the first."""
    labels: tuple[Any, ...] = ()
    """The labels as they were given; empty where none were."""


@runtime_checkable
class Collector(Protocol):
    """An object that keeps something of each batch."""

    def update(self, batch: ReadBatch) -> None: ...


def collect(
    model: LexicalSAE,
    texts: Iterable[Any],
    collectors: Sequence[Collector],
    labels: Iterable[Any] | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> int:
    """The number of texts, after every collector has seen every batch. A corpus without texts is refused."""
    count = 0
    for batch in read_corpus(model, texts, labels, batch_size, on_step):
        for collector in collectors:
            collector.update(batch)
        count += len(batch.rows)
    if not count:
        raise DataError("there is no text to read; give at least one")
    return count


def opened_to_corpus(model: LexicalSAE, texts: Iterable[Any]) -> tuple[LexicalSAE, Iterable[Any]]:
    """The model with a dimension for every literal word of the texts, and the texts, which a generator gives once.

    For views that keep something per dimension; other models read words from logits and know all of theirs.
    """
    if model.literal is None or isinstance(texts, str | bytes | dict):
        return model, texts
    texts = list(texts)
    strings = [text for text in texts if isinstance(text, str)]
    return model.opened_to(tokenize(model.tokenizer, strings, model.max_length).ids), texts


def read_corpus(
    model: LexicalSAE,
    texts: Iterable[Any],
    labels: Iterable[Any] | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> Iterator[ReadBatch]:
    """What the model says of each text, batch after batch. Any iterable of texts will do, a generator too.

    Labels go by name or place, as the model has them.
    A model with literal words must have been opened to them (`opened_to_corpus`).
    Which texts are read together depends on the texts alone, not on the model: two models read the same batches.
    """
    if isinstance(texts, str | bytes | dict):
        raise DataError(f"texts is one {type(texts).__name__}; put your texts in a list")
    size: Any = texts
    total = len(size) if hasattr(texts, "__len__") else None
    # By place: a column of a table that was filtered or shuffled would give its rows by their old numbers.
    given = None if labels is None else list(labels)
    if given is not None and total is not None and total != len(given):
        raise DataError(f"{len(given)} labels for {total} texts; give one per text")
    model.eval()
    numbered, done = enumerate(texts), 0
    while pool := list(islice(numbered, batch_size * BATCHES_SORTED_TOGETHER)):
        for row, text in pool:
            if not isinstance(text, str):
                raise DataError(f"text {row} is {type(text).__name__} {text!r:.60}, not a string")
        pool.sort(key=lambda item: (-len(item[1]), item[0]))
        while pool:
            count = rows_at_once(len(pool[0][1]) // CHARACTERS_PER_TOKEN, batch_size)
            chosen, pool = pool[:count], pool[count:]
            yield _read(model, chosen, given)
            done += len(chosen)
            on_step(Step("reading texts", done, max(done, total or 0)))
    if given is not None and done != len(given):
        raise DataError(f"{len(given)} labels for {done} texts; give one per text")


@torch.no_grad()
def _read(model: LexicalSAE, numbered: Sequence[tuple[int, str]], labels: Sequence[Any] | None) -> ReadBatch:
    rows, texts = (tuple(part) for part in zip(*numbered, strict=True))
    tokens = tokenize(model.tokenizer, texts, model.max_length)
    if model.opened_to(tokens.ids) is not model:
        # Not opened here: what is kept per dimension by then would not fit.
        raise DataError(
            "these texts have words without a dimension, which would be left out; read them with the model that "
            "opened_to_corpus gives"
        )
    state, mean_states = read_with_states(model, tokens.batch(range(len(texts))))
    own = () if labels is None else _labels_at(rows, labels)
    if isinstance(model.output, Classes):
        classes = state.logits.argmax(-1) if labels is None else _classes_of(rows, own, labels_of(model))
    else:
        classes = torch.zeros_like(state.logits[:, 0], dtype=torch.long)
    return ReadBatch(
        rows, classes.to(state.logits.device), state, texts, tokens.ids, mean_states, output=model.output, labels=own
    )


def _labels_at(rows: Sequence[int], labels: Sequence[Any]) -> tuple[Any, ...]:
    if max(rows) >= len(labels):
        raise DataError(f"{len(labels)} labels for more texts than that; give one per text")
    return tuple(labels[row] for row in rows)


def _classes_of(rows: Sequence[int], labels: Sequence[Any], names: Sequence[str]) -> Int[Tensor, " B"]:
    labelled = zip(rows, labels, strict=True)
    return torch.tensor([label_index(names, label, f"text {row}: label") for row, label in labelled])
