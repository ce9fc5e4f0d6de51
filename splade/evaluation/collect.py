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
from splade.models.lexical_sae import CLASSIFY, LexicalSAE
from splade.progress import OnStep, Step, silent

BATCHES_SORTED_TOGETHER = 32
"""Texts are put in order of length within so many batches, to pad little."""


@dataclass(frozen=True)
class ReadBatch:
    """Some texts and what the model said of them."""

    rows: tuple[int, ...]
    """Place of each text in the corpus."""
    texts: tuple[str, ...]
    token_ids: tuple[list[int], ...]
    """Without padding."""
    classes: Int[Tensor, " B"]
    """The class that each text counts under: its label where labels were given, otherwise the predicted class."""
    state: SparseCircuitState

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
        """Contribution of every active word to the class that its text counts under."""
        return self.contributions.gather(1, self.classes[self.state.code.rows, None]).squeeze(1)

    @cached_property
    def weights(self) -> Float[Tensor, "K C"]:
        """Class-centred `W_eff` of every active word: what it would contribute at a strength of one."""
        code = self.state.code
        return contributions_per_class(replace(self.state, code=replace(code, values=torch.ones_like(code.values))))


@runtime_checkable
class Collector(Protocol):
    """Whatever keeps something of each batch."""

    def update(self, batch: ReadBatch) -> None: ...


def collect(
    model: LexicalSAE,
    texts: Iterable[Any],
    collectors: Sequence[Collector],
    labels: Sequence[int] | None = None,
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


def read_corpus(
    model: LexicalSAE,
    texts: Iterable[Any],
    labels: Sequence[int] | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> Iterator[ReadBatch]:
    """What the model says of each text, batch after batch. Any iterable of texts will do, a generator too.

    Which texts are read together depends on the texts alone, not on the model: two models read the same batches.
    """
    if isinstance(texts, str | bytes | dict):
        raise ValueError(f"texts is one {type(texts).__name__}; put your texts in a list")
    size: Any = texts
    total = len(size) if hasattr(texts, "__len__") else None
    if labels is not None and total is not None and total != len(labels):
        raise ValueError(f"{len(labels)} labels for {total} texts; give one per text")
    model.eval()
    numbered, done = enumerate(texts), 0
    while pool := list(islice(numbered, batch_size * BATCHES_SORTED_TOGETHER)):
        for row, text in pool:
            if not isinstance(text, str):
                raise ValueError(f"text {row} is {type(text).__name__} {text!r:.60}, not a string")
        pool.sort(key=lambda item: (-len(item[1]), item[0]))
        for start in range(0, len(pool), batch_size):
            chosen = pool[start : start + batch_size]
            yield _read(model, chosen, labels)
            done += len(chosen)
            on_step(Step("reading texts", done, max(done, total or 0)))
    if labels is not None and done != len(labels):
        raise ValueError(f"{len(labels)} labels for {done} texts; give one per text")


@torch.no_grad()
def _read(model: LexicalSAE, numbered: Sequence[tuple[int, str]], labels: Sequence[int] | None) -> ReadBatch:
    rows, texts = (tuple(part) for part in zip(*numbered, strict=True))
    device = next(model.parameters()).device
    tokens = tokenise(model.tokenizer, texts, model.max_length)
    batch = tokens.batch(range(len(texts)))
    state = model.read(model.encode_sparse(batch.input_ids.to(device), batch.attention_mask.to(device)))
    if not bool(state.logits.isfinite().all()):
        raise FloatingPointError("the model's logits are not numbers (NaN or infinity); its weights are damaged")
    classes = state.logits.argmax(-1) if labels is None else _labels_of(rows, labels, len(model.labels[CLASSIFY]))
    return ReadBatch(rows, texts, tokens.ids, classes.to(device), state)


def _labels_of(rows: Sequence[int], labels: Sequence[int], num_classes: int) -> Int[Tensor, " B"]:
    if max(rows) >= len(labels):
        raise ValueError(f"{len(labels)} labels for more texts than that; give one per text")
    odd = next((row for row in rows if not 0 <= labels[row] < num_classes), None)
    if odd is not None:
        raise ValueError(f"text {odd} has label {labels[odd]}, but the model's classes are 0 to {num_classes - 1}")
    return torch.tensor([labels[row] for row in rows], dtype=torch.long)
