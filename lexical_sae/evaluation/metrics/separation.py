"""Do different classes use different words?

*Cosine*: one minus the mean cosine between the classes' centroids, the mean |contribution| of every word. *Jaccard*:
the overlap of two texts' circuits within a class minus that across classes, where each text meets a few earlier ones of
every class, so the cost does not grow with the square of the corpus. Classes are the predicted ones. Nothing is said of
fewer than two classes: no centroid is not "perfectly separated".
"""

import random
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy import stats
from torch import Tensor

from lexical_sae.circuits.losses import separation_cosine
from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.circuit_words import select_circuit, speaks_for_predicted
from lexical_sae.evaluation.collect import DecisionBatch
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import streamed

GROUPS = 10
"""Parts of the corpus; leaving out one at a time gives the interval of the cosine."""
REFERENCES = 16
"""Earlier circuits of each class that a circuit is compared with."""


@dataclass(frozen=True)
class SeparationResult:
    """How far apart the classes' words are; None with fewer than two classes."""

    fraction: float
    """Of a text's active words, its circuit."""
    cosine: Interval | None
    """One minus the mean cosine between centroids: 0 is the same words in the same proportions, 1 no word in common."""
    cosine_by_chance: float | None
    """The same for classes sampled at random."""
    jaccard_within: Interval | None
    jaccard_across: Interval | None
    jaccard: Interval | None
    """Overlap within minus overlap across; 0 for classes that mean nothing."""


class SeparationCollector:
    """Sums centroids in groups of texts, and compares circuits as they come."""

    def __init__(self, num_labels: int, size: int, fraction: float = 0.1, seed: int = 0) -> None:
        self.fraction, self.seed = fraction, seed
        self.sums = torch.zeros(GROUPS, num_labels, size, device="cpu")
        self.counts = torch.zeros(GROUPS, num_labels, device="cpu")
        self.chance_sums, self.chance_counts = torch.zeros_like(self.sums[0]), torch.zeros_like(self.counts[0])
        self.means = BootstrapMeans(seed=seed)
        self._drawn: list[list[frozenset[int]]] = [[] for _ in range(num_labels)]
        self._added = [0] * num_labels
        self._random = random.Random(seed)

    def update(self, batch: DecisionBatch) -> None:
        """Add the circuits of a batch."""
        code, scores = batch.state.code, speaks_for_predicted(batch)
        rows, ids, sizes = code.rows.cpu(), code.ids.cpu(), scores.abs().float().cpu()
        classes, group = batch.predicted.cpu(), torch.tensor(batch.drawn_with) % GROUPS
        at_random = torch.tensor(
            [np.random.default_rng([self.seed, 2, r]).integers(len(self._drawn)) for r in batch.rows]
        )
        self.sums.index_put_((group[rows], classes[rows], ids), sizes, accumulate=True)
        self.counts.index_put_((group, classes), torch.ones(len(classes)), accumulate=True)
        self.chance_sums.index_put_((at_random[rows], ids), sizes, accumulate=True)
        self.chance_counts.index_put_((at_random,), torch.ones(len(classes)), accumulate=True)
        chosen = select_circuit(code, scores, self.fraction).cpu()
        circuits = [frozenset(ids[here][chosen[here]].tolist()) for here in (code.text(i) for i in range(len(code)))]
        overlaps = [self._compare(*pair) for pair in zip(classes.tolist(), circuits, strict=True)]
        within, across = torch.tensor(overlaps, dtype=torch.float64).unbind(1)
        self.means.update(batch.drawn_with, {"within": within, "across": across})

    def result(self) -> SeparationResult:
        """The separation so far."""
        within, across = self.means.share("within"), self.means.share("across")
        both = self.means.difference("within", "across", of_shares=True) if within.count and across.count else None
        return SeparationResult(
            self.fraction,
            self._cosine(),
            _separation(self.chance_sums, self.chance_counts),
            within if within.count else None,
            across if across.count else None,
            both,
        )

    def _compare(self, label: int, circuit: frozenset[int]) -> tuple[float, float]:
        """Mean overlap with earlier circuits of the same class and of the others; NaN where there is none yet."""
        if not circuit:
            return float("nan"), float("nan")
        own = [_overlap(circuit, one) for one in self._drawn[label]]
        other = [_overlap(circuit, one) for c, kept in enumerate(self._drawn) if c != label for one in kept]
        # Reservoir sampling: every circuit of a class is equally likely to be among those kept.
        self._added[label] += 1
        kept = self._drawn[label]
        if len(kept) < REFERENCES:
            kept.append(circuit)
        elif (place := self._random.randrange(self._added[label])) < REFERENCES:
            kept[place] = circuit
        return _mean(own), _mean(other)

    def _cosine(self) -> Interval | None:
        """The separation with the jackknife's interval: each group of texts is left out once."""
        sums, counts = self.sums.sum(0), self.counts.sum(0)
        whole = _separation(sums, counts)
        if whole is None:
            return None
        left_out = [_separation(sums - self.sums[g], counts - self.counts[g]) for g in range(GROUPS)]
        known = [one for one in left_out if one is not None]
        if len(known) < GROUPS or bool((self.counts.sum(1) == 0).any()):
            return Interval(whole, None, None, int(counts.sum()))
        error = float(np.std(known)) * (GROUPS - 1) ** 0.5
        reach = float(stats.t.ppf(0.975, GROUPS - 1)) * error
        return Interval(whole, whole - reach, whole + reach, int(counts.sum()))


def _separation(sums: Float[Tensor, "C V"], counts: Float[Tensor, " C"]) -> float | None:
    # A class whose texts have no words has no direction either.
    seen: Bool[Tensor, " C"] = (counts > 0) & (sums.abs().amax(-1) > 0)
    if int(seen.sum()) < 2:
        return None
    return 1 - float(separation_cosine(sums / counts.clamp(min=1)[:, None], seen))


def _overlap(first: frozenset[int], second: frozenset[int]) -> float:
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


SEPARATION = streamed(
    "separation",
    SeparationResult,
    lambda of: SeparationCollector(len(of.labels), len(of.model.dimensions), of.settings.circuit_fraction, of.seed),
)
