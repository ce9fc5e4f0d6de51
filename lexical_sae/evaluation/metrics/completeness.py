"""Is a text's circuit enough? The decision is made again from a few of its words alone.

The circuit is that of the predicted class: the words of largest |contribution|, chosen by the mask that training uses.
It stands beside a random circuit of the same size and the empty one, and is measured relative to the full model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.circuit_words import (
    RANDOM_DRAWS,
    centered_for,
    logits_of_only,
    random_scores,
    select_circuit,
    speaks_for_predicted,
)
from lexical_sae.evaluation.collect import DecisionBatch
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import streamed
from lexical_sae.evaluation.settings import FRACTIONS
from lexical_sae.mechanistic.exact import Head


@dataclass(frozen=True)
class Remaining:
    """What is left of the decisions when only some words are left."""

    agreement: Interval
    """Share of texts with the same label as from all words."""
    accuracy: Interval
    relative_accuracy: Interval
    """Accuracy divided by that of the full model."""
    kl: Interval
    """`KL(full || left)` in nats."""
    recovered: Interval
    """Share of the way from the empty text (0) to the full one (1), in the predicted class's centred logit."""


@dataclass(frozen=True)
class CircuitSize:
    """Circuits of one size."""

    fraction: float
    """Of the text's active words; at least one word."""
    words: Interval
    circuit: Remaining
    random: Remaining
    """As many words sampled at random."""
    advantage: Interval
    """Agreement of the circuit minus that of the random one, paired by text."""
    per_class: dict[str, Interval]
    """Agreement of the circuit by predicted class; classes that were never predicted are left out."""


@dataclass(frozen=True)
class CompletenessResult:
    """Circuits of several sizes, between the empty one and the full model."""

    full_accuracy: Interval
    empty: Remaining
    """Of no words at all: the bias alone decides."""
    sizes: tuple[CircuitSize, ...]


class CompletenessCollector:
    """Decides again from circuits, batch by batch."""

    def __init__(
        self, head: Head, labels: Sequence[str], fractions: Sequence[float] = FRACTIONS, seed: int = 0
    ) -> None:
        self.head, self.labels, self.fractions, self.seed = head, labels, tuple(fractions), seed
        self.means = BootstrapMeans(seed=seed)
        self._predicted: set[int] = set()

    def update(self, batch: DecisionBatch) -> None:
        """Measure the circuits of a batch, whose classes are the true ones."""
        code, scores = batch.state.code, speaks_for_predicted(batch)
        drawn = [random_scores(batch, [self.seed, draw]) for draw in range(RANDOM_DRAWS)]
        empty = logits_of_only(self.head, batch.state, torch.zeros_like(code.ids, dtype=torch.bool))
        way = centered_for(batch.state.logits, batch.predicted) - centered_for(empty, batch.predicted)
        figures: dict[str, Tensor] = {
            "full accuracy": (batch.predicted == batch.classes).to(way.dtype),
            "full recovered": way,
            **_named("empty", self._remaining(batch, empty, empty)),
        }
        self._predicted |= set(batch.predicted.tolist())
        for fraction in self.fractions:
            chosen = select_circuit(code, scores, fraction)
            words = way.new_zeros(len(code)).index_add_(0, code.rows, chosen.to(way.dtype))
            own = self._remaining(batch, logits_of_only(self.head, batch.state, chosen), empty)
            at_random = [
                self._remaining(
                    batch, logits_of_only(self.head, batch.state, select_circuit(code, one, fraction)), empty
                )
                for one in drawn
            ]
            control = {name: torch.stack([one[name] for one in at_random]).mean(0) for name in own}
            figures |= {f"{fraction} words": words} | _named(f"{fraction} circuit", own)
            figures |= _named(f"{fraction} random", control)
            for label in range(len(self.labels)):
                figures[f"{fraction} class {label}"] = own["agreement"].masked_fill(batch.predicted != label, torch.nan)
        self.means.update(batch.drawn_with, figures)

    def result(self) -> CompletenessResult:
        """All circuits so far."""
        return CompletenessResult(
            self.means.share("full accuracy"), self._summary("empty"), tuple(self._size(one) for one in self.fractions)
        )

    def _remaining(
        self, batch: DecisionBatch, logits: Float[Tensor, "B C"], empty: Float[Tensor, "B C"]
    ) -> dict[str, Float[Tensor, " B"]]:
        full, left = batch.state.logits.log_softmax(-1), logits.log_softmax(-1)
        predicted: Int[Tensor, " B"] = logits.argmax(-1)
        return {
            "agreement": (predicted == batch.predicted).to(logits.dtype),
            "accuracy": (predicted == batch.classes).to(logits.dtype),
            "kl": (full.exp() * (full - left)).sum(-1).clamp(min=0),
            "recovered": centered_for(logits, batch.predicted) - centered_for(empty, batch.predicted),
        }

    def _size(self, fraction: float) -> CircuitSize:
        return CircuitSize(
            fraction=fraction,
            words=self.means[f"{fraction} words"],
            circuit=self._summary(f"{fraction} circuit"),
            random=self._summary(f"{fraction} random"),
            advantage=self.means.difference(
                f"{fraction} circuit agreement", f"{fraction} random agreement", of_shares=True
            ),
            per_class={self.labels[i]: self.means.share(f"{fraction} class {i}") for i in sorted(self._predicted)},
        )

    def _summary(self, which: str) -> Remaining:
        return Remaining(
            agreement=self.means.share(f"{which} agreement"),
            accuracy=self.means.share(f"{which} accuracy"),
            relative_accuracy=self.means.ratio(f"{which} accuracy", "full accuracy", of_shares=True),
            kl=self.means[f"{which} kl"],
            recovered=self.means.ratio(f"{which} recovered", "full recovered"),
        )


def _named(prefix: str, figures: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix} {name}": values for name, values in figures.items()}


COMPLETENESS = streamed(
    "completeness",
    CompletenessResult,
    lambda of: CompletenessCollector(of.head, of.labels, of.settings.fractions, of.seed),
)
