"""Several experiments side by side: a row each, beside the first of them where all were tested on the same texts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lexical_sae.report.studies.run_figures import (
    CONTEXT_COLUMNS,
    RunFigures,
    context_cells,
    percent,
    percent_over_seeds,
    presence_beside_chance,
)
from lexical_sae.report.tables import FigureTable, TablesPage

LIMITS = (
    "The interval of a difference and its p are over test texts: they say how much other texts of the kind would "
    "change it. How much another training run would, only several seeds tell (evaluation.seeds).",
    "p is that of the exact sign test, times what all comparisons of the table together need (Holm).",
    "Words enough: share of texts that keep their label when only the strongest tenth of their active words is left; "
    "beside it, as many random words.",
    "Presence: AUC of a word's activation for detecting texts in which the word is written (with shuffled "
    "names). A re-purposed dimension can have it too: see the deletion and substitution tests. Their controls are in "
    "each report.",
    "Context-free: accuracy with every word at its default. Leakage, in points: what neutral words say of the label "
    "through what they activate. Shifts: words per text not at their default. Negation: 'not good' / 'not bad' right. "
    "Independence: change in the other words' contributions when one is masked.",
    "Minutes are those of all seeds together, for the baselines of all settings that were tried too; peak MB is how "
    "much the process's memory rose at most, for one seed.",
)
COST = ("minutes", "peak MB")


@dataclass(frozen=True)
class Difference:
    """Accuracy minus that of the first experiment, on the same texts."""

    mean: float
    low: float | None
    high: float | None
    won: int
    """Texts that this one gets right more often."""
    lost: int
    p: float
    p_of_all: float | None = None
    """p after the correction for all comparisons."""


@dataclass(frozen=True)
class ComparedRun:
    """One experiment of several."""

    name: str
    changes: Mapping[str, Any]
    """What it changes, by key."""
    figures: RunFigures
    difference: Difference | None = None
    """None for the first, and where texts differ."""


@dataclass(frozen=True)
class ComparedYardstick:
    """A model without words, a run per seed; each beside the run of the first experiment with its seed."""

    name: str
    accuracy: float
    seconds: float | None
    difference: Difference
    peak_megabytes: float | None = None


@dataclass(frozen=True)
class Comparison:
    """What several experiments came to."""

    experiment: str
    title: str
    """What they differ in, as a heading."""
    seeds: int
    is_paired: bool
    """Whether all were tested on the same texts."""
    runs: tuple[ComparedRun, ...]
    baselines: tuple[ComparedYardstick, ...] = ()


def comparison_page(comparison: Comparison) -> TablesPage:
    """The comparison as tables, for the terminal and as a page."""
    seeds = "one seed" if comparison.seeds == 1 else f"{comparison.seeds} seeds"
    experiments = "1 experiment" if len(comparison.runs) == 1 else f"{len(comparison.runs)} experiments"
    changes = [(run.name, _changes_text(run.changes)) for run in comparison.runs if run.changes]
    tables = [_figures_table(comparison)]
    if any(run.figures.context_free is not None for run in comparison.runs):
        tables.append(_context_table(comparison))
    if changes:
        tables.append(FigureTable("What each changes", ("", "settings"), changes))
    return TablesPage(
        title=f"{comparison.experiment}: {comparison.title}",
        summary=(f"{experiments}, {seeds} each.",),
        tables=tables,
        limits=LIMITS if comparison.is_paired else LIMITS[2:],
    )


def _figures_table(comparison: Comparison) -> FigureTable:
    first = comparison.runs[0].name
    paired = (f"against {first}", "p", "won : lost") if comparison.is_paired else ("test texts",)
    rest = (
        "active words",
        "words enough",
        "random",
        "deletion test",
        "substitution test",
        "presence",
        "function words",
        *COST,
    )
    rows = [_run_cells(run, is_paired=comparison.is_paired) for run in comparison.runs]
    rows += [_baseline_cells(one, len(rest)) for one in comparison.baselines]
    return FigureTable(comparison.title, ("", "accuracy", *paired, *rest), rows)


def _context_table(comparison: Comparison) -> FigureTable:
    rows = [
        (run.name, percent_over_seeds(run.figures, "accuracy"), *context_cells(run.figures)) for run in comparison.runs
    ]
    return FigureTable("Context", ("", "accuracy", *CONTEXT_COLUMNS), rows)


def _run_cells(run: ComparedRun, *, is_paired: bool) -> tuple[str, ...]:
    own = run.figures
    accuracy, delete, follow = (percent_over_seeds(own, name) for name in ("accuracy", "delete", "follow"))
    circuits = map(percent, (own.circuit, own.random_circuit))
    names = (delete, follow, presence_beside_chance(own), percent(own.function_words))
    beside = _difference_cells(run.difference) if is_paired else (f"{own.texts:,}",)
    words, cost = f"{own.active_words:.1f}", _cost_cells(own.seconds, own.peak_megabytes)
    return (run.name, accuracy, *beside, words, *circuits, *names, *cost)


def _baseline_cells(baseline: ComparedYardstick, columns: int) -> tuple[str, ...]:
    without_words, difference = [""] * (columns - len(COST)), _difference_cells(baseline.difference)
    cost = _cost_cells(baseline.seconds, baseline.peak_megabytes)
    return (baseline.name, percent(baseline.accuracy), *difference, *without_words, *cost)


def _difference_cells(difference: Difference | None) -> tuple[str, str, str]:
    if difference is None:
        return "", "", ""
    ends = "" if difference.low is None else f" ({difference.low:+.1%} to {difference.high:+.1%})"
    p = difference.p if difference.p_of_all is None else difference.p_of_all
    return f"{difference.mean:+.1%}{ends}", f"{p:.2g}", f"{difference.won} : {difference.lost}"


def _cost_cells(seconds: float | None, megabytes: float | None) -> tuple[str, str]:
    return "" if seconds is None else f"{seconds / 60:.1f}", "" if megabytes is None else f"{megabytes:,.0f}"


def _changes_text(changes: Mapping[str, Any]) -> str:
    """Example: `training.count: none, model.gate: {'kind': 'drelu'}`"""
    return ", ".join(f"{key}: {'none' if value is None else value}" for key, value in changes.items())
