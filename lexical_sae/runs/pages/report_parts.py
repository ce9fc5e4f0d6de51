"""What a run left in its folder, as parts of its page; what is missing or damaged is listed, and the rest shown."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from lexical_sae.evaluation.explainers.results import ArenaResults
from lexical_sae.evaluation.names.tests import with_current_keys
from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.views.methods import explainers_page
from lexical_sae.evaluation.views.page import evaluation_part
from lexical_sae.report.charts.curves import training_curves
from lexical_sae.report.charts.svg import Picture
from lexical_sae.report.context import Row, context_figures
from lexical_sae.report.page import EvaluationPart, Figures, Study
from lexical_sae.report.tables import TablesPage
from lexical_sae.report.task import figure_text, task_rows
from lexical_sae.report.terminal import baseline_figures, mean_figures, name_figures, score_figures
from lexical_sae.runs.folder import (
    BASELINES,
    CONFIG,
    ENVIRONMENT,
    EVALUATION,
    EXPLORER,
    HISTORY,
    NAMES,
    RESULTS,
    read_settings,
    whole_records,
)
from lexical_sae.runs.run import Run

Made = TypeVar("Made")
FRONTIER = "frontier.svg"
STUDY_PAGES = {
    "faithfulness": "Explainers compared",
    "sae": "Words beside features of a post-hoc sparse autoencoder",
    "long_context": "Long texts",
    "polysemy": "Word senses",
}
"""File of each study's page, without its ending, and what it is about."""


@dataclass
class ReportParts:
    """The parts of a run's page, and what it could not show."""

    run: Run
    missing: list[str] = field(default_factory=list)

    def read(self, path: Path, make: Callable[[str], Made], remedy: str) -> Made | None:
        """What `make` makes of a file's text; None where the file is missing or is not what it should be."""
        try:
            return make(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            self.missing.append(f"There is no {path.name}: {remedy}.")
        except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:
            self.missing.append(f"{path.name} cannot be shown ({type(error).__name__}: {error}): {remedy}.")
        return None

    def about(self) -> str:
        """What was trained on what, as far as the settings say.

        Example: "quickstart: bundled:minilm, recipe anchored, trained on movie_snippets."
        """
        try:
            config = read_settings(self.run.folder)
            name, data, encoder = config["experiment_name"], config["data"]["dataset_name"], config["model"]["name"]
            return f"{name}: {encoder}, recipe {config['recipe']}, trained on {data}."
        except (OSError, ValueError, LookupError, TypeError):
            return ""

    def are_several(self) -> bool:
        """Whether this is the folder of a comparison, which has a page of its own."""
        try:
            return "is_paired" in (self.run.results or {})
        except (OSError, ValueError, TypeError):
            return False

    def results(self) -> tuple[Figures, ...]:
        """The figures of the test split; those over all seeds first."""
        remedy = "the run is not finished, continue with `lexical-sae train --resume`"
        return self.read(self.run.folder / RESULTS, lambda text: _result_figures(json.loads(text)), remedy) or ()

    def names(self) -> tuple[Figures, ...]:
        """Name scores of the model, or of the first of several, and of a bag of words beside it."""
        remedy = "`lexical-sae names` tests whether words mean what they say"
        return (
            self.read(
                self.run.first.folder / NAMES, lambda text: _name_figures(with_current_keys(json.loads(text))), remedy
            )
            or ()
        )

    def evaluation(self) -> EvaluationPart | None:
        """The evaluation of the model, or of the first of several."""
        remedy = "`lexical-sae train --resume` evaluates where evaluation.after_training is on"
        return self.read(
            self.run.first.folder / EVALUATION,
            lambda text: evaluation_part(EvaluationResults.from_dict(json.loads(text))),
            remedy,
        )

    def baselines(self) -> tuple[Figures, ...]:
        """The baselines, with the paired difference where the model was compared."""
        remedy = "`lexical-sae baselines` measures the dense baseline and TF-IDF on the same texts"
        # A sweep measures them once for all its points.
        is_of_sweep = not (self.run.folder / BASELINES).exists() and (self.run.folder.parent / FRONTIER).is_file()
        place = self.run.folder.parent if is_of_sweep else self.run.folder
        return self.read(place / BASELINES, lambda text: _baseline_figures(json.loads(text)), remedy) or ()

    def accuracies(self) -> list[Row]:
        """The model's accuracy beside that of its table alone and those of baselines, as far as they were measured."""
        of_model = self._rows(self.run.first.folder / RESULTS, _test_accuracy)
        of_table = self._rows(self.run.first.folder / NAMES, _context_free_accuracy)
        beside = self._rows(self.run.folder / BASELINES, _baseline_accuracies)
        return [*of_model, *of_table, *(beside or self._rows(self.run.first.folder / NAMES, _reference_accuracies))]

    def _rows(self, path: Path, make: Callable[[dict[str, Any]], list[Row]]) -> list[Row]:
        """Rows of a file; none where it is missing or damaged, which the tables of these files say."""
        try:
            return make(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return []

    def curves(self) -> tuple[Picture, ...]:
        """The training curves."""
        remedy = "training writes it"
        return (
            self.read(
                self.run.first.folder / HISTORY, lambda text: training_curves(whole_records(text.encode())), remedy
            )
            or ()
        )

    def frontier(self) -> Picture | None:
        """The picture of the sweep that the folder holds or belongs to. Few runs have one, so it may be absent."""
        found = next((p for p in (self.run.folder / FRONTIER, self.run.folder.parent / FRONTIER) if p.is_file()), None)
        if found is None:
            return None
        remark = "Frontier: accuracy above and name scores beneath, over the number of active words"
        return self.read(found, lambda svg: Picture("Frontier", svg, remark), "`lexical-sae sweep` draws it")

    def explainers(self) -> TablesPage | None:
        """The comparison of explainers. Few runs have one, so it may be absent."""
        path, remedy = self.run.folder / "faithfulness.json", "`lexical-sae faithfulness` measures it"
        if not path.is_file():
            return None
        return self.read(
            path,
            lambda text: explainers_page("Attribution methods compared", ArenaResults.from_dict(json.loads(text))),
            remedy,
        )

    def studies(self, page: Path) -> tuple[Study, ...]:
        """Pages of studies in the folder, as links from a page that lies at `page`. Few runs have any."""
        places = dict.fromkeys(
            (self.run.folder, self.run.first.folder)
        )  # what training measures lies with each seed's model
        known = [(name, place / f"{file}.html") for place in places for file, name in STUDY_PAGES.items()]
        removals = [
            (f"Words removed: {place.parent.name}", place) for place in sorted(self.run.folder.glob("*/surgery.html"))
        ]
        return tuple(Study(name, _link(page, place)) for name, place in (*known, *removals) if place.is_file())

    def explorer(self, page: Path) -> str:
        """The address of the run's explorer from a page that lies at `page`; empty where none was written."""
        explorer = self.run.folder / EXPLORER
        return _link(page, explorer) if explorer.is_file() else ""

    def documents(self) -> dict[str, str]:
        """Settings and versions as they were written."""
        places = (self.run.folder / CONFIG, self.run.first.folder / ENVIRONMENT)
        texts = {path.name: self.read(path, str, "training writes it") for path in places}
        return {name: text for name, text in texts.items() if text is not None}


def _link(page: Path, other: Path) -> str:
    """The address of a file in a link of a page: relative, so that both can be moved together."""
    try:
        relative = Path(os.path.relpath(other.absolute(), page.absolute().parent)).as_posix()
    except ValueError:  # another drive
        return other.absolute().as_uri()
    # A colon too: what stands before it would be a scheme.
    return quote(os.fsencode(relative))


def _result_figures(results: dict[str, Any]) -> tuple[Figures, ...]:
    if "runs" not in results:
        return (Figures(*score_figures(results)),)
    return Figures(*mean_figures(results)), *(Figures(*score_figures(run)) for run in results["runs"])


def _name_figures(scores: dict[str, Any]) -> tuple[Figures, ...]:
    titles = ("model", "bag of words")
    names = (Figures(*name_figures(title, scores[title])) for title in titles)
    # Older files lack it.
    context = (
        Figures(*context_figures(title, scores[title]["context"])) for title in titles if "context" in scores[title]
    )
    return *names, *context


def _test_accuracy(results: dict[str, Any]) -> list[Row]:
    test = results["test"]
    if "figures" in test:
        return task_rows(test["figures"])
    return [("accuracy", f"{test['accuracy']:.1%}", f"on {test['texts']} test texts")]


def _context_free_accuracy(names: dict[str, Any]) -> list[Row]:
    found = names["model"]["context"]["accuracy"]["context_free"]
    remark = f"every word at its default: the table alone, on {found['count']} test texts"
    return [("context-free accuracy", f"{found['mean']:.1%}", remark)]


def _reference_accuracies(names: dict[str, Any]) -> list[Row]:
    found = names["model"]["context"]["accuracy"]
    references = {"bag of words": "bag_of_words", "TF-IDF": "tfidf"}
    return [(name, f"{found[key]['mean']:.1%}", "baseline, on the same texts") for name, key in references.items()]


def _baseline_accuracies(measured: dict[str, Any]) -> list[Row]:
    if "output" in measured:
        firsts = {name: found["figures"][0] for name, found in measured["baselines"].items()}
        return [(f"{name}: {one['title']}", figure_text(one), "baseline, same texts") for name, one in firsts.items()]
    remark = f"baseline, on {measured['test_texts']} test texts"
    return [(name, f"{found['accuracy']:.1%}", remark) for name, found in measured["baselines"].items()]


def _baseline_figures(found: dict[str, Any]) -> tuple[Figures, ...]:
    return (Figures(*baseline_figures(found)),)
