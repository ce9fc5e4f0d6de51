"""Sparse codes side by side: words of a lexical model, features of a post-hoc SAE, and a random dictionary.

Each is asked the same four questions on texts that nothing was fitted on: how much of the hidden state it keeps, how
many features it needs, what a linear probe reads from it, and what happens when the most telling features go.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from splade.circuits.sparse_code import SparseCode
from splade.evaluation.bootstrap import BootstrapMeans
from splade.evaluation.code_probe import CodeProbe, fit_probe
from splade.evaluation.intervals import Interval
from splade.mechanistic.exact import strongest

REMOVED = (1, 3, 5)
RANDOM_DRAWS = 5


@dataclass(frozen=True)
class LabelledCodes:
    """Codes of some texts with the texts' classes."""

    code: SparseCode
    labels: Int[Tensor, " N"]


@dataclass(frozen=True)
class FeatureFlips:
    """Share of texts whose label changes without so many features."""

    features: int
    strongest: Interval
    """Those that speak most for the probe's decision."""
    random: Interval
    """As many active ones drawn by lot."""


@dataclass(frozen=True)
class CodeScores:
    """What one kind of code is worth."""

    name: str
    features: int
    features_used: int
    """Active in at least one of the texts that the probe was fitted on."""
    reconstruction: Interval
    """Share of the hidden states' variance that is rebuilt; negative where the mean would be nearer."""
    active: Interval
    """Features per text."""
    accuracy: Interval
    """Of the probe."""
    top_effect: Interval
    """Probability that the probe's decision loses without its most telling feature."""
    flips: tuple[FeatureFlips, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def compare_codes(
    name: str,
    fit: LabelledCodes,
    held: LabelledCodes,
    states: Float[Tensor, "N E"],
    rebuilt: Float[Tensor, "N E"],
    num_classes: int,
    counts: Sequence[int] = REMOVED,
    seed: int = 0,
) -> CodeScores:
    """Measure codes on held-out texts; `rebuilt` is what they make of the texts' hidden `states`."""
    probe = fit_probe(fit.code, fit.labels, num_classes)
    logits = probe.logits(held.code)
    predicted = logits.argmax(-1)
    removals = _removals(probe, held.code, predicted, counts, seed)
    probability = _probability(logits, predicted)
    error, spread = ((part - states).double().square().sum(-1) for part in (rebuilt, states.mean(0)))
    means = BootstrapMeans(seed=seed)
    figures = {
        "error": error,
        "spread": spread,
        "active": held.code.counts.double(),
        "right": (predicted == held.labels).double(),
        "top effect": probability - _probability(removals["strongest 1"][0], predicted),
    }
    for key, draws in removals.items():
        figures[key] = torch.stack([(left.argmax(-1) != predicted).double() for left in draws]).mean(0)
    means.update(range(len(held.code)), figures)
    return CodeScores(
        name=name,
        features=held.code.size,
        features_used=len(fit.code.ids.unique()),
        reconstruction=means.combined(["error", "spread"], lambda both: 1 - both[:, 0] / both[:, 1]),
        active=means["active"],
        accuracy=means.share("right"),
        top_effect=means["top effect"],
        flips=tuple(FeatureFlips(n, means.share(f"strongest {n}"), means.share(f"random {n}")) for n in counts),
    )


def _removals(
    probe: CodeProbe, code: SparseCode, predicted: Int[Tensor, " B"], counts: Sequence[int], seed: int
) -> dict[str, list[Float[Tensor, "B C"]]]:
    """Logits without the most telling features, and without as many by lot, several times; always of one feature."""
    random = np.random.default_rng(seed)
    by_lot = [torch.from_numpy(random.random(len(code.ids))) for _ in range(RANDOM_DRAWS)]
    # `strongest` looks at sizes: shifted above zero, those against the decision come last.
    said = probe.speaks_for(code, predicted)
    orders = {"strongest": [said - said.min() + 1 if len(said) else said], "random": by_lot}

    def without(gone: Bool[Tensor, " K"]) -> Float[Tensor, "B C"]:
        return probe.logits_without(code, gone)

    return {
        f"{name} {count}": [without(strongest(code, scores, count)) for scores in scored]
        for name, scored in orders.items()
        for count in {1, *counts}
    }


def _probability(logits: Float[Tensor, "B C"], classes: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
    return logits.softmax(-1).gather(1, classes[:, None]).squeeze(1)
