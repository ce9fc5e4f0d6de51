"""How well a model tags, how many words it needs for it, and what is left when it may use only k of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import torch

from lexical_sae.data import TaggedSplit
from lexical_sae.data.word_rows import Place
from lexical_sae.evaluation.tagging.entities import EntityScores, score_entities
from lexical_sae.inference.word_decisions import ReadWords, read_words, words_of
from lexical_sae.mechanistic.attribution import code_identity_error, worst_gap
from lexical_sae.models.lexical_sae import TAG, LexicalSAE
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, silent

CAPS = (5, 10, 20, 50, 100, 200)
"""Caps on words per position that a curve is drawn through."""


@dataclass(frozen=True)
class CappedScores:
    """What a cap on words leaves; shape features are no words and stay."""

    k: int
    """Words per position; 0 is no cap."""
    f1: float
    active_words: float
    """Mean number of active dimensions per labelled position, shape features included."""


@dataclass(frozen=True)
class TaggerScores:
    """Scores of a tagger on sentences it was not trained on."""

    entities: EntityScores
    active_words: float
    """Mean number of active dimensions per labelled position, shape features included."""
    active_shapes: float
    """How many of them are shape features."""
    sparsity: float
    """Share of all dimensions that is not active, per labelled position."""
    identity_error: float
    """Worst relative gap, over positions and tags, between a logit and its decomposition."""
    curve: tuple[CappedScores, ...]
    """By cap, the smallest first; no cap last."""
    sentences: int
    sentences_in_windows: int
    """Longer than the model reads at once."""
    words_unread: int
    """Words that tokenise to nothing; their tag follows from their neighbours'."""
    seconds: float
    """To tag: reading every word and decoding. Identity errors and caps, measured on the way, are not counted."""
    predicted: tuple[tuple[str, ...], ...]
    """Tags of every sentence."""

    def as_dict(self) -> dict[str, Any]:
        """The figures, as plain data."""
        own = self.entities
        return {
            "f1": own.overall.f1,
            "precision": own.overall.precision,
            "recall": own.overall.recall,
            "types": {name: counts.as_dict() for name, counts in own.types.items()},
            "token_accuracy": own.token_accuracy,
            "active_words": self.active_words,
            "active_shapes": self.active_shapes,
            "sparsity": self.sparsity,
            "identity_error": self.identity_error,
            "topk_per_position": [{"k": c.k, "f1": c.f1, "active_words": c.active_words} for c in self.curve],
            "sentences": self.sentences,
            "sentences_in_windows": self.sentences_in_windows,
            "words": own.words,
            "words_unread": self.words_unread,
            "seconds": self.seconds,
        }


class _Capped:
    """Logits and counts of every word under one cap."""

    def __init__(self, k: int) -> None:
        self.k, self.active = k, 0
        self.found: list[tuple[Sequence[Place], torch.Tensor]] = []

    def take(self, model: LexicalSAE, read: ReadWords) -> None:
        state = read.state
        if self.k:
            code = state.code
            capped = model.shapes.keep_strongest_words(code, self.k) if model.shapes else code.keep_strongest(self.k)
            state = model.read(capped, TAG)
        self.active += len(state.code.ids)
        self.found.append((read.places, state.logits.cpu()))


@torch.no_grad()
def score_tagger(
    model: LexicalSAE,
    split: TaggedSplit,
    caps: Sequence[int] = CAPS,
    *,
    batch_size: int = 32,
    on_step: OnStep = silent,
) -> TaggerScores:
    """Entity scores, sparsity and identity error over a split; one pass of the encoder serves every cap.

    The scores themselves are of the model as it is; its own `topk_per_position`, where set, caps the curve too.
    """
    if bad := [k for k in caps if k < 1]:
        raise DataError(f"a cap of {bad[0]} words leaves nothing to read; caps are 1 or more")
    started, names = monotonic(), model.labels[TAG]
    rows = words_of(model, split.tokens)
    runs = [_Capped(k) for k in (*sorted(set(caps)), 0)]
    worst, shapes, positions, aside = 0.0, 0, 0, 0.0
    for read in read_words(model, split.tokens, rows, batch_size=batch_size, on_step=on_step):
        measuring_since = monotonic()
        worst = worst_gap(worst, float(code_identity_error(read.state).max()))
        if model.shapes is not None:
            shapes += int((read.state.code.ids >= model.shapes.first).sum())
        positions += len(read.places)
        for run in runs:
            run.take(model, read)
        aside += monotonic() - measuring_since
    *capped, whole = runs
    predicted = rows.decode(whole.found, names)
    seconds = monotonic() - started - aside
    scores = score_entities(split.tags, predicted)
    curve = [(run, score_entities(split.tags, rows.decode(run.found, names)).overall.f1) for run in capped]
    per_position = max(1, positions)
    return TaggerScores(
        entities=scores,
        active_words=whole.active / per_position,
        active_shapes=shapes / per_position,
        sparsity=1 - whole.active / per_position / len(model.dimensions),
        identity_error=worst,
        curve=tuple(CappedScores(r.k, f1, r.active / per_position) for r, f1 in [*curve, (whole, scores.overall.f1)]),
        sentences=len(split),
        sentences_in_windows=sum(count > 1 for count in Counter(rows.sentences).values()),
        words_unread=len(rows.unread()),
        seconds=seconds,
        predicted=tuple(predicted),
    )
