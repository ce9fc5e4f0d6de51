"""How good decisions are: F1 of labels, errors of numbers, each with a 95 % interval over texts (bootstrap)."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.stats import rankdata

RESAMPLES, AT_ONCE = 1000, 50
SEED = 0


@dataclass(frozen=True)
class Figure:
    """One figure with its interval."""

    key: str
    """Its name in JSON. Example: macro_f1"""
    title: str
    value: float
    low: float
    high: float
    is_share: bool
    """Whether it is shown in percent."""
    remark: str = ""


@dataclass(frozen=True)
class LabelFigures:
    """How good decisions about one label are."""

    label: str
    f1: float
    low: float
    high: float
    precision: float
    recall: float
    texts: int
    """Texts that have the label."""
    threshold: float
    """Logit from which on it is decided for."""


@dataclass(frozen=True)
class TaskScores:
    """How good decisions are on some texts."""

    figures: tuple[Figure, ...]
    per_label: tuple[LabelFigures, ...] = ()
    is_correct: tuple[bool, ...] = ()
    """Of each text, whether all its labels are right; empty for numbers."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data: each figure by its key, then all with their intervals."""
        plain: dict[str, Any] = {figure.key: figure.value for figure in self.figures}
        plain["figures"] = [asdict(figure) for figure in self.figures]
        if self.per_label:
            plain["per_label"] = [asdict(row) for row in self.per_label]
        return plain


Measure = Callable[[Float[ndarray, "R N"]], dict[str, Float[ndarray, " R"]]]
"""Figures of texts that are drawn so many times each, for several draws."""


def label_scores(
    chosen: Bool[ndarray, "N L"], gold: Bool[ndarray, "N L"], names: Sequence[str], thresholds: Sequence[float]
) -> TaskScores:
    """F1 over labels (macro) and over all decisions (micro), exact matches, and the figures of each label.

    A label that no text has, and that is decided for in none, has no F1: macro F1 leaves it out.

    Example: labels decided 1 0, 1 1 where 1 0, 0 1 are true -> macro F1 (2/3 + 1) / 2
    """
    measure = label_measure(chosen, gold)
    found, ends = measured(measure, len(gold))
    none = 1 - gold.any(1).mean()
    figures = (
        _figure("macro_f1", "macro F1", found, ends, "mean over labels, rare ones too"),
        _figure("micro_f1", "micro F1", found, ends, "over all decisions about a label"),
        _figure("exact_match", "all labels right", found, ends, f"always deciding for none: {none:.1%}"),
        _figure("label_accuracy", "labels right", found, ends, f"always deciding for none: {1 - gold.mean():.1%}"),
    )
    hits, named, true = ((part).sum(0) for part in (chosen & gold, chosen, gold))
    rows = tuple(
        LabelFigures(
            name,
            found[f"f1 {i}"],
            *ends[f"f1 {i}"],
            float(hits[i] / max(1, named[i])),
            float(hits[i] / max(1, true[i])),
            int(true[i]),
            float(thresholds[i]),
        )
        for i, name in enumerate(names)
    )
    return TaskScores(figures, rows, tuple((chosen == gold).all(1).tolist()))


def number_scores(predicted: Float[ndarray, " N"], gold: Float[ndarray, " N"], centre: float) -> TaskScores:
    """Mean absolute error, root mean squared error, and Spearman's rank correlation.

    Example: predicted 1 2 4 where 1 2 3 are true -> MAE 1/3, RMSE 0.58, Spearman 1
    """
    found, ends = measured(number_measure(predicted, gold), len(gold))
    guess = np.abs(gold - centre)
    spread = float(np.sqrt(np.mean(guess**2)))
    figures = (
        _figure("mae", "mean absolute error", found, ends, f"always the training mean: {guess.mean():.3g}", False),
        _figure("rmse", "root mean squared error", found, ends, f"always the training mean: {spread:.3g}", False),
        _figure("spearman", "Spearman correlation", found, ends, "of ranks; 1 is the same order", False),
    )
    return TaskScores(figures)


def paired(ours: Measure, theirs: Measure, count: int, keys: Sequence[str]) -> dict[str, tuple[float, float, float]]:
    """By key, ours minus theirs on the same texts, and its interval: both see every resample."""

    def difference(draws: Float[ndarray, "R N"]) -> dict[str, Float[ndarray, " R"]]:
        mine, other = ours(draws), theirs(draws)
        return {key: mine[key] - other[key] for key in keys}

    found, ends = measured(difference, count)
    return {key: (found[key], *ends[key]) for key in keys}


def measured(measure: Measure, count: int) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Figures of all texts, each once, and the ends of their intervals."""
    whole = {key: float(value[0]) for key, value in measure(np.ones((1, count))).items()}
    draw = np.random.default_rng(SEED)
    even = np.full(count, 1 / count)
    parts = [measure(draw.multinomial(count, even, size=AT_ONCE).astype(float)) for _ in range(RESAMPLES // AT_ONCE)]
    ends = {}
    for key in whole:
        values = np.concatenate([part[key] for part in parts])
        known = values[np.isfinite(values)]
        low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (np.nan, np.nan)
        ends[key] = (float(low), float(high))
    return whole, ends


def label_measure(chosen: Bool[ndarray, "N L"], gold: Bool[ndarray, "N L"]) -> Measure:
    """Macro and micro F1, exact matches, right decisions, and the F1 of each label."""
    hits, named, right = (part.astype(float) for part in (chosen & gold, chosen, chosen == gold))
    true, whole = gold.astype(float), right.all(1).astype(float)

    def measure(draws: Float[ndarray, "R N"]) -> dict[str, Float[ndarray, " R"]]:
        both, all_named, all_true = draws @ hits, draws @ named, draws @ true
        occurs = all_named + all_true > 0
        f1 = np.where(occurs, 2 * both / np.maximum(all_named + all_true, 1), 0.0)
        total = draws.sum(1)
        return {
            "macro_f1": f1.sum(1) / np.maximum(occurs.sum(1), 1),
            "micro_f1": 2 * both.sum(1) / np.maximum((all_named + all_true).sum(1), 1),
            "exact_match": draws @ whole / total,
            "label_accuracy": (draws @ right).sum(1) / (total * right.shape[1]),
            **{f"f1 {i}": f1[:, i] for i in range(f1.shape[1])},
        }

    return measure


def number_measure(predicted: Float[ndarray, " N"], gold: Float[ndarray, " N"]) -> Measure:
    """Mean absolute error, root mean squared error, Spearman's correlation."""
    errors = np.abs(predicted - gold)

    def measure(draws: Float[ndarray, "R N"]) -> dict[str, Float[ndarray, " R"]]:
        total = draws.sum(1)
        spearman = np.array([_spearman(predicted, gold, draw.astype(int)) for draw in draws])
        return {"mae": draws @ errors / total, "rmse": np.sqrt(draws @ errors**2 / total), "spearman": spearman}

    return measure


def _spearman(predicted: ndarray, gold: ndarray, times: ndarray) -> float:
    """The rank correlation of texts that count so many times; 0 where either is constant."""
    ranks = np.array([rankdata(np.repeat(values, times)) for values in (predicted, gold)])
    if (ranks.std(1) == 0).any():
        return 0.0
    return float(np.corrcoef(ranks)[0, 1])


def _figure(
    key: str,
    title: str,
    found: dict[str, float],
    ends: dict[str, tuple[float, float]],
    remark: str,
    is_share: bool = True,
) -> Figure:
    return Figure(key, title, found[key], *ends[key], is_share, remark)
