"""The results of comparing attribution methods, behind `faithfulness.json` and every view."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lexical_sae.evaluation.explainers.attribution import LEAVE_ONE_OUT
from lexical_sae.evaluation.explainers.deletion import DeletionScores
from lexical_sae.evaluation.explainers.plausibility import PlausibilityScores
from lexical_sae.evaluation.explainers.removal import RemovalScores
from lexical_sae.evaluation.intervals import Interval, Number, read_result

SCHEMA_VERSION = 1
ROUNDING = 1e-6


@dataclass(frozen=True)
class Card:
    """A method in a sentence."""

    about: str
    is_drawn: bool
    """Whether it was asked with several seeds."""


@dataclass(frozen=True)
class Cost:
    """Of one explanation, beyond the prediction that it explains."""

    milliseconds: Interval
    """Of processor time, all threads together."""
    megabytes: Interval
    """Peak of resident memory; NaN where the system does not tell."""


@dataclass(frozen=True)
class Checks:
    """What must hold if the comparison is valid; every other rank is as measured."""

    leave_one_out_is_first: bool
    """On single removals no method is closer to the known effects than leave-one-out."""
    random_is_last: bool
    """On single removals no method is below random order, as far as the intervals show."""
    direct_minus_gradient_times_activation: Number
    """Greatest relative gap of the two, which are one number for two ReLU layers; for other heads it may be large."""


@dataclass(frozen=True)
class RationaleResult:
    """Agreement with human rationales, on one set of texts."""

    texts: int
    left_out: int
    """Texts where people marked nothing, or everything, of what the model saw."""
    marked_share: float
    """Share of the words that people mark; explainers choose as many."""
    seen_share: float
    """Share of the marked words of all texts, left out or not, that the model saw: the rest lay beyond its limit."""
    scores: dict[str, PlausibilityScores]


@dataclass(frozen=True)
class ArenaResults:
    """The scores of every method in every setting that applies to it, by name."""

    texts: int
    texts_without_words: int
    """Left out: nothing was active, or nothing was written."""
    labels: tuple[str, ...]
    seed: int
    seeds: int
    explainers: dict[str, Card]
    left_out: tuple[str, ...]
    removal: dict[str, RemovalScores]
    deletion: dict[str, DeletionScores]
    rationales: dict[str, RationaleResult]
    cost: dict[str, Cost]
    prediction_milliseconds: Interval
    checks: Checks
    seconds: float
    schema_version: int = SCHEMA_VERSION

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "ArenaResults":
        """The results that `faithfulness.json` holds. Raises ValueError where they cannot be read."""
        return read_result(cls, dict(found))


def check(removal: Mapping[str, RemovalScores], control: str, worst_gap: float) -> Checks:
    """Whether leave-one-out is first and random order last on single removals."""
    exact, drawn = removal[LEAVE_ONE_OUT.name], removal[control]
    others = [scores for name, scores in removal.items() if name != LEAVE_ONE_OUT.name]
    return Checks(
        exact.error.mean <= ROUNDING and all(s.spearman.mean <= exact.spearman.mean + ROUNDING for s in others),
        not any(_is_below(scores.spearman, drawn.spearman) for scores in others),
        worst_gap,
    )


def _is_below(one: Interval, other: Interval) -> bool:
    """Whether an interval lies wholly beneath another."""
    return one.high is not None and other.low is not None and one.high < other.low
