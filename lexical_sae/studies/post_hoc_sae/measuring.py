"""Comparing sparse codes: words of a lexical model, features of a post-hoc SAE, and a random dictionary.

Each is asked the same four questions on texts that nothing was fitted on: how much of the hidden state it keeps, how
many features it needs, what a linear probe reads from it, and what happens when the top-attributed features go.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.code_probe import CodeProbe, fit_probe
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.mechanistic.exact import strongest
from lexical_sae.models.sparse_code import SparseCode

REMOVED = (1, 3, 5)
RANDOM_DRAWS = 5


@dataclass(frozen=True)
class LabelledCodes:
    """Codes of some texts with the texts' classes."""

    code: SparseCode
    labels: Int[Tensor, " N"]


@dataclass(frozen=True)
class FeatureFlips:
    """Share of texts whose label changes without some features."""

    features: int
    strongest: Interval
    """The features that contribute most to the probe's decision."""
    random: Interval
    """As many active ones sampled at random."""


@dataclass(frozen=True)
class CodeScores:
    """Scores of one kind of code."""

    name: str
    features: int
    features_used: int
    """Active in at least one of the texts that the probe was fitted on."""
    reconstruction: Interval
    """Share of the hidden states' variance that is reconstructed; negative where it is worse than the mean."""
    active: Interval
    """Features per text."""
    accuracy: Interval
    """Of the probe."""
    top_effect: Interval
    """Probability that the probe's decision loses without its top-attributed feature."""
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
    """Scores of codes on held-out texts; `rebuilt` are the reconstructions of their hidden `states`."""
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
    """Logits without the top features, and without as many random ones, several times; and always without one."""
    random = np.random.default_rng(seed)
    at_random = [torch.from_numpy(random.random(len(code.ids))) for _ in range(RANDOM_DRAWS)]
    # `strongest` looks at sizes: shifted above zero, those against the decision come last.
    said = probe.contributes_to(code, predicted)
    orders = {"strongest": [said - said.min() + 1 if len(said) else said], "random": at_random}

    def without(gone: Bool[Tensor, " K"]) -> Float[Tensor, "B C"]:
        return probe.logits_without(code, gone)

    return {
        f"{name} {count}": [without(strongest(code, scores, count)) for scores in scored]
        for name, scored in orders.items()
        for count in {1, *counts}
    }


def _probability(logits: Float[Tensor, "B C"], classes: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
    return logits.softmax(-1).gather(1, classes[:, None]).squeeze(1)
