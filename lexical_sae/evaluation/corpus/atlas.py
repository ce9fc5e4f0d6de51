"""The region atlas: a piecewise linear head is a patchwork of linear models; which few of them does a corpus need?

1. The region of a text is the set of hidden units that are on in it. Most texts have one of their own, but regions that
   differ in units of little weight decide almost alike.
2. Texts are merged by region, Ward's way; each unit counts as much as its switching would change the logits on average.
3. A group has one linear model, the mean of its texts' `W_eff` and `b_eff`: each unit open as often as it is on. The
   tree of mergers is cut into the fewest groups whose models reach the decision of the real one often enough.
4. Shown are the largest groups that together cover the wanted share of the corpus.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.cluster.hierarchy import fcluster, linkage
from torch import Tensor

from lexical_sae.evaluation.corpus.lexicon import NameOf, strongest_first
from lexical_sae.evaluation.corpus.regions import RegionSample
from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class SwitchingUnit:
    """A hidden unit that is on in some texts and off in others."""

    unit: int
    share_on: float
    relevance: float
    """Length of the change of the class-centred logits when it switches, on average."""


@dataclass(frozen=True)
class RegionWord:
    """A word of a group's linear model."""

    name: str
    weight: float
    """Class-centred mean of `W_eff` over the group."""
    contribution: float
    """Weight times the mean activation over the texts of the group."""
    count: int
    """Texts of the group in which the word is active."""


@dataclass(frozen=True)
class RegionGroup:
    """Texts whose regions decide almost alike, and the linear model that stands for them."""

    texts: int
    share: float
    """Of the sample."""
    regions: int
    """Different sets of active units among them."""
    decisions: dict[str, int]
    """Texts by predicted label."""
    agreement: float
    """Share of its texts for which the linear model decides as the real one."""
    margin_r2: float | None
    """R² of the real margin between the two highest classes by the linear model's; None where it does not vary."""
    words: dict[str, tuple[RegionWord, ...]]
    """Per label, the words that contribute most to it."""


@dataclass(frozen=True)
class RegionAtlas:
    """The groups of regions that cover most of a corpus, the largest first."""

    texts: int
    sampled: int
    """Texts that everything but the share of units is measured on."""
    always_on: int
    always_off: int
    switching: tuple[SwitchingUnit, ...]
    """The most relevant first."""
    regions: int
    """Different regions in the sample."""
    groups: tuple[RegionGroup, ...]
    coverage: float
    """Share of the sample in these groups."""
    agreement: float
    """Share of the sample for which the groups' linear models, also those of small groups, decide as the real one."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def region_atlas(
    sample: RegionSample,
    labels: Sequence[str],
    name_of: NameOf,
    listed: Bool[Tensor, " V"] | None = None,
    *,
    coverage: float = 0.95,
    agreement: float = 0.98,
    max_groups: int = 8,
    top: int = 10,
) -> RegionAtlas:
    """The fewest groups, at most `max_groups`, whose linear models decide as the real one in a share `agreement`.

    Of these, the largest that cover a share `coverage` are returned, each with its `top` words per label. Only
    dimensions in `listed` are named, by default all.
    """
    for name, share in (("coverage", coverage), ("agreement", agreement)):
        if not 0 < share <= 1:
            raise DataError(f"{name} is {share}; give a share above 0 and up to 1")
    if max_groups < 1:
        raise DataError(f"max_groups is {max_groups}; an atlas has at least one group")
    relevance = _relevance(sample)
    members, agrees = _fewest_groups(sample, relevance, agreement, max_groups)
    sizes = np.cumsum([int(member.sum()) for member in members]) / len(sample.hidden)
    shown = int(np.searchsorted(sizes, coverage - 1e-12)) + 1
    on = sample.share_on
    switching = [i for i in relevance.argsort(descending=True, stable=True).tolist() if 0 < on[i] < 1]
    return RegionAtlas(
        texts=sample.texts,
        sampled=len(sample.hidden),
        always_on=int((on == 1).sum()),
        always_off=int((on == 0).sum()),
        switching=tuple(SwitchingUnit(i, float(on[i]), float(relevance[i])) for i in switching),
        regions=_distinct(sample.is_on),
        groups=tuple(
            _describe(sample, member, labels, _words(sample, member, labels, name_of, listed, top))
            for member in members[:shown]
        ),
        coverage=float(sizes[shown - 1]),
        agreement=agrees,
    )


def _relevance(sample: RegionSample) -> Float[Tensor, " H"]:
    """How much the centred logits change when a unit switches, on average over the sample."""
    return sample.centered_readout.norm(dim=0) * sample.hidden.abs().mean(0)


def _fewest_groups(
    sample: RegionSample, relevance: Float[Tensor, " H"], agreement: float, max_groups: int
) -> tuple[list[Bool[Tensor, " N"]], float]:
    """The members of each group, the largest group first, and how often the groups decide as the model."""
    members, reached = [], 0.0
    for groups in _cuts(sample.is_on * relevance, max_groups):
        members = [groups == group for group in groups.unique()]
        reached = sum(int(_decides_alike(sample, member).sum()) for member in members) / len(groups)
        if reached >= agreement:
            break
    # Stable: of equally large groups the one that the tree names first.
    return sorted(members, key=lambda member: -int(member.sum())), reached


def _cuts(points: Float[Tensor, "N H"], max_groups: int) -> Iterator[Int[Tensor, " N"]]:
    """The group of each point, with one group, with two, and so on while there is something to tell apart."""
    yield torch.zeros(len(points), dtype=torch.long)
    if _distinct(points) > 1:
        tree = linkage(points.numpy(), method="ward")
        for count in range(2, min(max_groups, _distinct(points)) + 1):
            yield torch.from_numpy(fcluster(tree, count, criterion="maxclust"))


def _linear_logits(sample: RegionSample, member: Bool[Tensor, " N"]) -> Float[Tensor, "N C"]:
    """Decisions of a group's linear model on all texts: each unit open as often as it is on in the group."""
    return sample.logits(sample.is_on[member].double().mean(0))


def _decides_alike(sample: RegionSample, member: Bool[Tensor, " N"]) -> Bool[Tensor, " M"]:
    real = sample.logits(sample.is_on.double())[member]
    return _linear_logits(sample, member)[member].argmax(-1) == real.argmax(-1)


def _margin_r2(sample: RegionSample, member: Bool[Tensor, " N"]) -> float | None:
    real, linear = sample.logits(sample.is_on.double())[member], _linear_logits(sample, member)[member]
    pair = real.topk(2).indices
    margins = (logits.gather(1, pair) for logits in (real, linear))
    wanted, given = (margin[:, 0] - margin[:, 1] for margin in margins)
    varies = (wanted - wanted.mean()).square().sum()
    # Rounding alone is no variation.
    if float(varies) <= 1e-20 * len(wanted) * max(1.0, float(wanted.square().max())):
        return None
    return float(1 - (wanted - given).square().sum() / varies)


def _describe(
    sample: RegionSample, member: Bool[Tensor, " N"], labels: Sequence[str], words: dict[str, tuple[RegionWord, ...]]
) -> RegionGroup:
    count = int(member.sum())
    decided = sample.logits(sample.is_on.double())[member].argmax(-1).bincount(minlength=len(labels)).tolist()
    return RegionGroup(
        texts=count,
        share=count / len(sample.hidden),
        regions=_distinct(sample.is_on[member]),
        decisions=dict(zip(labels, decided, strict=True)),
        agreement=float(_decides_alike(sample, member).double().mean()),
        margin_r2=_margin_r2(sample, member),
        words=words,
    )


def _words(
    sample: RegionSample,
    member: Bool[Tensor, " N"],
    labels: Sequence[str],
    name_of: NameOf,
    listed: Bool[Tensor, " V"] | None,
    top: int,
) -> dict[str, tuple[RegionWord, ...]]:
    """Per label, the words of the group's linear model with the greatest mean contribution."""
    code = sample.code
    inside = member[code.rows]
    ids, place = code.ids[inside].unique(return_inverse=True)
    counts = torch.bincount(place, minlength=len(ids))
    activations = torch.zeros(len(ids), dtype=torch.float64).index_add(0, place, code.values[inside]) / member.sum()
    gates = sample.is_on[member].double().mean(0)
    weights = (sample.centered_readout * gates) @ sample.word_vectors[ids].double().T
    words = {}
    for label, row in zip(labels, weights, strict=True):
        order = strongest_first(row * activations, top, None if listed is None else listed[ids])
        words[label] = tuple(
            RegionWord(name_of(int(ids[i])), float(row[i]), float(row[i] * activations[i]), int(counts[i]))
            for i in order
        )
    return words


def _distinct(rows: Tensor) -> int:
    return len(rows.unique(dim=0))
