"""What was measured of the models of several seeds, averaged: every figure with its interval over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.evaluation.intervals import mean_and_interval
from splade.pipelines.evaluating import read_evaluation
from splade.pipelines.naming import read_names
from splade.runs import Results, seed_folders
from splade.training.run_folder import EVALUATION, NAMES, RESULTS, write_json

MEANS = ("mean", "share")
"""A figure with an interval over texts has one of these. Others, most of them controls, are plain numbers."""
WORST = "worst"
"""How names of figures begin that are the worst of all texts: the worst of all seeds is kept of them."""


def with_measurements(config: ExperimentConfig, results: Results) -> Results:
    """The results of several seeds with `measured`, what their models came to on average, in `results.json` too.

    What was not measured of every seed is not averaged. The results of one seed come back as they are.
    """
    if len(config.evaluation.seeds) < 2:
        return results
    folders, asked = seed_folders(config).values(), config.evaluation
    of_seeds = {
        "evaluation": [read_evaluation(folder / EVALUATION, asked.texts) for folder in folders],
        "names": [read_names(folder / NAMES, asked.names_texts) for folder in folders],
    }
    measured = {name: over_seeds(found) for name, found in of_seeds.items() if None not in found}
    if measured:
        results = {**results, "measured": measured}
        write_json(Path(config.output_dir) / RESULTS, results)
    return results


def over_seeds(found: Sequence[Any], name: str = "") -> Any:
    """The measurements of several seeds as one, each figure in them with Student's 95 % interval over seeds.

    Beside these stays what is the same for all, as it says what they are of (a label, the size of a circuit); what else
    differs (a count, a text) is None, and left out of mappings. Rows of a list go by their first field, and must be
    there for all.

    Example: `{"words": 3, "flips": {"mean": 0.2, ...}}` and the same with 0.4 -> words 3, flips a mean of 0.3
    """
    first = found[0]
    if all(isinstance(one, Mapping) for one in found):
        if kind := next((kind for kind in MEANS if kind in first), None):
            return _interval([one.get(kind) for one in found])
        shared = [key for key in first if all(key in one for one in found)]
        merged = {key: over_seeds([one[key] for one in found], key) for key in shared}
        return {key: value for key, value in merged.items() if value is not None}
    if all(isinstance(one, list) for one in found):
        rows = [{_name(row): row for row in one} for one in found]
        return [over_seeds([one[name] for one in rows]) for name in rows[0] if all(name in one for one in rows)]
    if all(one == first for one in found):
        return first
    if all(isinstance(one, float) for one in found):
        return max(found) if name.startswith(WORST) else _interval(found)
    return None


def _interval(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Over the seeds for which it is known."""
    known = [value for value in values if value is not None]
    return asdict(mean_and_interval(known)) if known else None


def _name(row: Any) -> Any:
    return next(iter(row.values())) if isinstance(row, Mapping) else row
