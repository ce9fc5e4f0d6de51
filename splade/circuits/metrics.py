"""What validation reads of circuits: extraction, completeness, separation. No gradient, class-centred throughout."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from splade.circuits.core import CircuitState, circuit_mask
from splade.circuits.losses import keep_circuit, separation_cosine
from splade.circuits.trackers import class_means
from splade.mechanistic.attribution import attribute_centred

HARD = float("inf")


def extract_circuits(centroids: Float[Tensor, "C V"], fraction: float) -> Bool[Tensor, "C V"]:
    """The circuit of each class: the largest words of its centroid, a fraction of those active in it at all."""
    return circuit_mask(centroids, centroids != 0, fraction, HARD).bool()


@dataclass(frozen=True)
class Completeness:
    """What is left of each decision when only its circuit is."""

    circuit: Bool[Tensor, "N V"]
    """Words of the circuit of the predicted class."""
    kl: Float[Tensor, " N"]
    """`KL(full || circuit)`."""
    is_kept: Bool[Tensor, " N"]
    """Whether the circuit alone predicts the same class."""
    prediction: Int[Tensor, " N"]
    """The class that the circuit alone predicts."""


@torch.no_grad()
def measure_completeness(state: CircuitState, head: Callable[[Tensor], CircuitState], fraction: float) -> Completeness:
    """Decide again from the hard circuit of the *predicted* class."""
    predicted = state.logits.argmax(-1)
    left = keep_circuit(state, attribute_centred(state, predicted), fraction, HARD)
    logits = head(left).logits
    full, masked = state.logits.log_softmax(-1), logits.log_softmax(-1)
    kl = (full.exp() * (full - masked)).sum(-1).clamp(min=0)
    return Completeness(left != 0, kl, logits.argmax(-1) == predicted, logits.argmax(-1))


@dataclass(frozen=True)
class CircuitMetrics:
    """Circuits of a whole split. None means that it cannot be said: nothing seen, or only one class."""

    samples: int
    accuracy: float | None
    """Of the full model."""
    circuit_accuracy: float | None
    """Of the circuits alone."""
    agreement: float | None
    """Share of decisions that their circuit alone keeps."""
    completeness_kl: float | None
    active_words: float | None
    separation_cosine: float | None
    """One minus the mean cosine between the centroids of every two classes."""
    jaccard_within: float | None
    """Mean overlap of two circuits of one class."""
    jaccard_across: float | None
    """Mean overlap of circuits of two classes."""

    @property
    def separation_jaccard(self) -> float | None:
        """Overlap within classes minus overlap across them."""
        if self.jaccard_within is None or self.jaccard_across is None:
            return None
        return self.jaccard_within - self.jaccard_across


class CircuitMeter:
    """Measures circuits batch by batch; classes are the predicted ones.

    Each circuit is compared with a few earlier ones of every class, drawn uniformly, so the cost grows with the number
    of samples and not with its square.
    """

    def __init__(self, size: int, num_labels: int, fraction: float, references: int = 16, seed: int = 0) -> None:
        self.fraction, self.num_labels = fraction, num_labels
        self.samples = 0
        self.sums = dict.fromkeys(("right", "circuit_right", "kept", "kl", "active"), 0.0)
        self.totals = torch.zeros(num_labels, size)
        self.class_counts = torch.zeros(num_labels, dtype=torch.long)
        self._overlaps = _Overlaps(num_labels, references, seed)

    @torch.no_grad()
    def update(self, state: CircuitState, labels: Int[Tensor, " N"], head: Callable[[Tensor], CircuitState]) -> None:
        """Take in one batch of decisions."""
        if not len(labels):
            return
        found, predicted = measure_completeness(state, head, self.fraction), state.logits.argmax(-1)
        self.samples += len(labels)
        self.sums["right"] += float((predicted == labels).sum())
        self.sums["circuit_right"] += float((found.prediction == labels).sum())
        self.sums["kept"] += float(found.is_kept.sum())
        self.sums["kl"] += float(found.kl.sum())
        self.sums["active"] += float((state.sparse_vector != 0).sum())
        means, _ = class_means(attribute_centred(state, predicted).abs(), predicted, self.num_labels)
        counts = predicted.bincount(minlength=self.num_labels)
        self.totals += (means * counts[:, None]).to(self.totals)
        self.class_counts += counts.cpu()
        for label, circuit in zip(predicted.tolist(), found.circuit.cpu(), strict=True):
            self._overlaps.add(label, frozenset(circuit.nonzero().flatten().tolist()))

    def centroids(self) -> Float[Tensor, "C V"]:
        """Mean |contribution| of every word to each class, over the texts given that class; zero if there are none."""
        return self.totals / self.class_counts.clamp(min=1)[:, None]

    def result(self) -> CircuitMetrics:
        """All measurements so far."""
        seen = self.class_counts > 0
        separated = 1 - float(separation_cosine(self.centroids(), seen)) if int(seen.sum()) > 1 else None
        mean = {name: total / self.samples if self.samples else None for name, total in self.sums.items()}
        return CircuitMetrics(
            samples=self.samples,
            accuracy=mean["right"],
            circuit_accuracy=mean["circuit_right"],
            agreement=mean["kept"],
            completeness_kl=mean["kl"],
            active_words=mean["active"],
            separation_cosine=separated,
            jaccard_within=self._overlaps.mean(within=True),
            jaccard_across=self._overlaps.mean(within=False),
        )


class _Overlaps:
    """Mean Jaccard overlap of circuits with earlier ones, of their own class and of the others."""

    def __init__(self, num_labels: int, references: int, seed: int) -> None:
        self._drawn: list[list[frozenset[int]]] = [[] for _ in range(num_labels)]
        self._added = [0] * num_labels
        self._references, self._random = references, random.Random(seed)
        self._sums, self._pairs = {True: 0.0, False: 0.0}, {True: 0, False: 0}

    def add(self, label: int, circuit: frozenset[int]) -> None:
        """Compare a circuit with those kept, then perhaps keep it; an empty one says nothing."""
        if not circuit:
            return
        for other, kept in enumerate(self._drawn):
            for reference in kept:
                shared = len(circuit & reference)
                self._sums[other == label] += shared / (len(circuit) + len(reference) - shared)
            self._pairs[other == label] += len(kept)
        # Reservoir sampling: every circuit of a class is equally likely to be among those kept.
        self._added[label] += 1
        kept = self._drawn[label]
        if len(kept) < self._references:
            kept.append(circuit)
        elif (place := self._random.randrange(self._added[label])) < self._references:
            kept[place] = circuit

    def mean(self, *, within: bool) -> float | None:
        """None if there was no pair."""
        return self._sums[within] / self._pairs[within] if self._pairs[within] else None
