"""Level 2: what an edit did to every decision on a data set, measured on both models."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.data.batches import batches, tokenize
from lexical_sae.inference.labels import labels_of
from lexical_sae.inference.reading import read_batch
from lexical_sae.inference.tagging import untagged_sentence
from lexical_sae.inference.word_decisions import read_words, words_of
from lexical_sae.intervene.certificate.document import DataSource, Effect, WordEffect
from lexical_sae.intervene.certificate.fingerprints import hash_rows
from lexical_sae.mechanistic.attribution import attribute_code
from lexical_sae.mechanistic.exact import class_centered
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from lexical_sae.utils.downloads import sha256_of
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.progress import OnStep, Step, silent


@dataclass(frozen=True)
class NamedTexts:
    """Texts to measure an effect on, with labels if accuracy is wanted."""

    name: str
    texts: Sequence[str]
    labels: Sequence[int] | None = None
    """As the model numbers its classes."""
    file: Path | None = None
    """The file they came from, if any; its bytes are hashed too."""

    def source(self) -> DataSource:
        """The data source as a certificate records it."""
        return DataSource(
            name=self.name,
            texts=len(self.texts),
            labelled=self.labels is not None,
            rows_sha256=hash_rows(self.texts, self.labels),
            file_sha256=None if self.file is None else sha256_of(self.file),
        )


@torch.no_grad()
def measure_effect(
    original: LexicalSAE,
    edited: LexicalSAE,
    touched: Sequence[int],
    data: NamedTexts,
    *,
    head: str | None = None,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> Effect:
    """The effect of an edit on texts, from both models on the same batches.

    Args:
        original: The original, with a dimension for every added word.
        edited: The edited model.
        touched: Dimensions that the edit suppressed or reweighted.
        data: The texts; labels are for texts only.
        head: By default the head for texts, or that for words in a model that only tags.
        batch_size: Texts per forward pass.
        on_step: Receives progress.

    Returns:
        Counts, effects and accuracies.
    """
    head = head or next((name for name in READERS if name in original.labels), "")
    if head not in READERS:
        raise SavedFileError(
            f"effects are measured with the heads {', '.join(READERS)}; this model has {list(original.labels)}"
        )
    if head == CLASSIFY:
        labels_of(original, "the effect of an edit")
    if not data.texts:
        raise SavedFileError(f"{data.name} has no text to measure an effect on; give at least one")
    if data.labels is not None and head != CLASSIFY:
        raise SavedFileError(f"labels are one per text, but head {head!r} decides on words; leave the labels out")
    ids = torch.tensor(sorted(touched), dtype=torch.long, device=original.gate.closed.device)
    tally = _Tally(ids, edited.gate.closed[ids])
    original.eval()
    edited.eval()
    for before, after, rows in READERS[head](original, edited, data.texts, batch_size, on_step):
        labels = None if data.labels is None else torch.tensor([data.labels[i] for i in rows], device=ids.device)
        tally.update(before, after, labels)
    return tally.effect(data.source(), head, original.dimensions.names(ids.tolist()), labelled=data.labels is not None)


class _Tally:
    """Counts and sums over decisions, in double precision."""

    def __init__(self, touched: Int[Tensor, " R"], is_removed: Bool[Tensor, " R"]) -> None:
        self.edited, self.removed = touched, touched[is_removed]
        self.decisions = self.touched = self.flipped = self.region_changed = 0
        self.right_before = self.right_after = 0
        self.sum_effect = self.largest_effect = self.largest_surprise = self.strongest_after = 0.0
        # Rows: decisions, activation and contribution of each edited dimension.
        self.before, self.after = (
            torch.zeros(3, len(touched), dtype=torch.float64, device=touched.device) for _ in range(2)
        )

    def update(self, before: SparseCircuitState, after: SparseCircuitState, labels: Int[Tensor, " B"] | None) -> None:
        """Add the decisions of a batch."""
        was, now = before.logits.argmax(-1), after.logits.argmax(-1)
        touched = torch.zeros_like(was, dtype=torch.bool)
        # Contributions to the predicted class that the edit removes.
        predicted = torch.zeros_like(was, dtype=torch.float64)
        for state, per_word, sign in ((before, self.before, 1), (after, self.after, -1)):
            contributions = attribute_code(state, was, centered=True).double()
            own = torch.isin(state.code.ids, self.edited)
            touched[state.code.rows[own]] = True
            predicted.index_add_(0, state.code.rows[own], sign * contributions[own])
            self._add_words(per_word, state, contributions, own)
        direction = class_centered(before.logits, was).double()
        effects = (direction * (before.logits.double() - after.logits.double())).sum(-1)
        self.decisions += len(was)
        self.touched += int(touched.sum())
        self.flipped += int((was != now).sum())
        self.region_changed += int(_region_changed(before, after).sum())
        self.sum_effect += float(effects[touched].abs().sum())
        self.largest_effect = max(self.largest_effect, _largest(effects))
        self.largest_surprise = max(self.largest_surprise, _largest(effects - predicted))
        left = after.code.values[torch.isin(after.code.ids, self.removed)]
        self.strongest_after = max(self.strongest_after, _largest(left))
        if labels is not None:
            self.right_before += int((was == labels).sum())
            self.right_after += int((now == labels).sum())

    def _add_words(
        self,
        per_word: Float[Tensor, "3 R"],
        state: SparseCircuitState,
        contributions: Float[Tensor, " K"],
        own: Bool[Tensor, " K"],
    ) -> None:
        columns = torch.searchsorted(self.edited, state.code.ids[own])
        activations = state.code.values[own].double()
        figures = torch.stack([torch.ones_like(activations), activations, contributions[own]])
        per_word.index_add_(1, columns, figures)

    def effect(self, data: DataSource, head: str, names: Sequence[str], *, labelled: bool) -> Effect:
        """The figures; words that were never active have zeros."""
        counts, activations, contributions = self.before
        counts_after, _, contributions_after = self.after
        means = [
            (total / count.clamp(min=1)).tolist()
            for total, count in (
                (activations, counts),
                (contributions, counts),
                (contributions_after, counts_after),
            )
        ]
        words = [
            WordEffect(
                name=name,
                decisions=int(count),
                mean_activation=activation,
                mean_contribution=before,
                mean_contribution_after=after,
            )
            for name, count, activation, before, after in zip(names, counts.tolist(), *means, strict=True)
        ]
        return Effect(
            data=data,
            head=head,
            decisions=self.decisions,
            touched=self.touched,
            flipped=self.flipped,
            region_changed=self.region_changed,
            mean_effect=self.sum_effect / max(1, self.touched),
            largest_effect=self.largest_effect,
            largest_surprise=self.largest_surprise,
            strongest_after=self.strongest_after,
            accuracy_before=self.right_before / self.decisions if labelled else None,
            accuracy_after=self.right_after / self.decisions if labelled else None,
            words=tuple(words),
        )


def _region_changed(before: SparseCircuitState, after: SparseCircuitState) -> Bool[Tensor, " B"]:
    """Whether a decision's linear form changed: a hidden unit is on in one of them only."""
    return (before.readout != after.readout).flatten(1).any(-1)


def _largest(values: Float[Tensor, " N"]) -> float:
    return float(values.abs().max()) if len(values) else 0.0


Both = tuple[SparseCircuitState, SparseCircuitState, Sequence[int]]
"""Decisions of the original and of the edited model, with the text that each is on."""


def _on_texts(
    original: LexicalSAE, edited: LexicalSAE, texts: Sequence[str], batch_size: int, on_step: OnStep
) -> Iterator[Both]:
    tokens = tokenize(original.tokenizer, texts, original.max_length)
    original, edited = original.opened_to(tokens.ids), edited.opened_to(tokens.ids)
    for batch in batches(tokens, batch_size, MEASURING, on_step):
        yield read_batch(original, batch), read_batch(edited, batch), batch.rows.tolist()


def _on_words(
    original: LexicalSAE, edited: LexicalSAE, texts: Sequence[str], batch_size: int, on_step: OnStep
) -> Iterator[Both]:
    sentences = [untagged_sentence(text, number).words for number, text in enumerate(texts)]
    rows = words_of(original, sentences)
    before = read_words(original, sentences, rows, batch_size=batch_size)
    # The same rows make the same batches; the second model finishes each batch last, so it reports progress.
    after = read_words(
        edited,
        sentences,
        rows,
        batch_size=batch_size,
        on_step=lambda step: on_step(Step(MEASURING, step.done, step.total)),
    )
    for was, now in zip(before, after, strict=True):
        yield was.state, now.state, [sentence for sentence, _ in was.places]


MEASURING = "measuring the effect"
READERS: dict[str, Callable[[LexicalSAE, LexicalSAE, Sequence[str], int, OnStep], Iterator[Both]]] = {
    CLASSIFY: _on_texts,
    TAG: _on_words,
}
"""What a head decides on: whole texts, or their words, split and with orthographic features as for tagging."""
