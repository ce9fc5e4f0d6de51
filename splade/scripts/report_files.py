"""What a run left in its folder, for its report: what is missing or damaged is said so, and the rest is shown."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import yaml

from splade.report.arena import arena_page
from splade.report.context_terminal import Row, context_figures
from splade.report.curves import training_curves
from splade.report.evaluation_page import EvaluationPart, evaluation_part
from splade.report.page import Figures, Study
from splade.report.picture import Picture
from splade.report.tables import TablesPage
from splade.report.terminal import baseline_figures, mean_figures, name_figures, score_figures

Made = TypeVar("Made")
FRONTIER, BASELINES, EVALUATION = "frontier.svg", "baselines.json", "evaluation.json"
STUDY_PAGES = {
    "faithfulness": "Explainers compared",
    "sae": "Words beside features of a post-hoc sparse autoencoder",
    "long_context": "Long texts",
    "polysemy": "Word senses",
}
"""File of each study's page, without its ending, and what it is about."""


@dataclass
class RunFiles:
    """A run's folder, and what was looked for in vain."""

    folder: Path
    missing: list[str] = field(default_factory=list)

    @property
    def own(self) -> Path:
        """Where the model and its history are: of several seeds, the folder of the first."""
        seeds = sorted(self.folder.glob("seed-*"), key=lambda path: (len(path.name), path.name))
        return next((path for path in seeds if path.is_dir()), self.folder)

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
            config = yaml.safe_load((self.folder / "resolved_config.yaml").read_text(encoding="utf-8"))
            name, data, encoder = config["experiment_name"], config["data"]["dataset_name"], config["model"]["name"]
            return f"{name}: {encoder}, recipe {config['recipe']}, trained on {data}."
        except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError):
            return ""

    def are_several(self) -> bool:
        """Whether this is the folder of a comparison, which has a page of its own."""
        try:
            return "is_paired" in json.loads((self.folder / "results.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):
            return False

    def results(self) -> tuple[Figures, ...]:
        """The figures of the test split; those over all seeds first."""
        remedy = "the run is not finished, go on with `lexical-sae train --resume`"
        return self.read(self.folder / "results.json", lambda text: _result_figures(json.loads(text)), remedy) or ()

    def names(self) -> tuple[Figures, ...]:
        """Name scores of the model, or of the first of several, and of a bag of words beside it."""
        remedy = "`lexical-sae names` tests whether words mean what they say"
        return self.read(self.own / "names.json", lambda text: _name_figures(json.loads(text)), remedy) or ()

    def evaluation(self) -> EvaluationPart | None:
        """The evaluation of the model, or of the first of several."""
        remedy = "`lexical-sae train --resume` evaluates where evaluation.after_training is on"
        return self.read(self.own / EVALUATION, lambda text: evaluation_part(json.loads(text)), remedy)

    def baselines(self) -> tuple[Figures, ...]:
        """The yardsticks, with the paired difference where the model was compared."""
        remedy = "`lexical-sae baselines` measures the dense twin and TF-IDF on the same texts"
        # A sweep measures them once for all its points.
        is_of_sweep = not (self.folder / BASELINES).exists() and (self.folder.parent / FRONTIER).is_file()
        place = self.folder.parent if is_of_sweep else self.folder
        return self.read(place / BASELINES, lambda text: _baseline_figures(json.loads(text)), remedy) or ()

    def accuracies(self) -> list[Row]:
        """The model's accuracy beside that of its table alone and those of baselines, as far as they were measured."""
        of_model = self._rows(self.own / "results.json", _test_accuracy)
        of_table = self._rows(self.own / "names.json", _context_free_accuracy)
        beside = self._rows(self.folder / BASELINES, _baseline_accuracies)
        return [*of_model, *of_table, *(beside or self._rows(self.own / "names.json", _reference_accuracies))]

    def _rows(self, path: Path, make: Callable[[dict[str, Any]], list[Row]]) -> list[Row]:
        """Rows of a file; none where it is missing or damaged, which the tables of these files say."""
        try:
            return make(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return []

    def curves(self) -> tuple[Picture, ...]:
        """The training curves."""
        remedy = "training writes it"
        return self.read(self.own / "history.jsonl", lambda text: training_curves(whole_records(text)), remedy) or ()

    def frontier(self) -> Picture | None:
        """The picture of the sweep that the folder holds or belongs to. Few runs have one, so it may be absent."""
        found = next((p for p in (self.folder / FRONTIER, self.folder.parent / FRONTIER) if p.is_file()), None)
        if found is None:
            return None
        told = "Frontier: accuracy above and name scores beneath, over the number of active words"
        return self.read(found, lambda svg: Picture("Frontier", svg, told), "`lexical-sae sweep` draws it")

    def explainers(self) -> TablesPage | None:
        """The comparison of explainers. Few runs have one, so it may be absent."""
        path, remedy = self.folder / "faithfulness.json", "`lexical-sae faithfulness` measures it"
        if not path.is_file():
            return None
        return self.read(path, lambda text: arena_page("Explainers compared", json.loads(text)), remedy)

    def studies(self, page: Path) -> tuple[Study, ...]:
        """Pages of studies in the folder, as links from a page that lies at `page`. Few runs have any."""
        places = dict.fromkeys((self.folder, self.own))  # what training measures lies with each seed's model
        known = [(name, place / f"{file}.html") for place in places for file, name in STUDY_PAGES.items()]
        removals = [
            (f"Words removed: {place.parent.name}", place) for place in sorted(self.folder.glob("*/surgery.html"))
        ]
        return tuple(Study(name, _link(page, place)) for name, place in (*known, *removals) if place.is_file())

    def documents(self) -> dict[str, str]:
        """Settings and versions as they were written."""
        places = (self.folder / "resolved_config.yaml", self.own / "environment.json")
        texts = {path.name: self.read(path, str, "training writes it") for path in places}
        return {name: text for name, text in texts.items() if text is not None}

    def seed(self) -> int | None:
        """The seed that the run's rows were drawn with."""
        try:
            seed = json.loads((self.own / "environment.json").read_text(encoding="utf-8"))["seed"]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return seed if isinstance(seed, int) else None


def _link(page: Path, other: Path) -> str:
    """The address of a file in a link of a page: relative, so that both can be moved together."""
    try:
        relative = Path(os.path.relpath(other.absolute(), page.absolute().parent)).as_posix()
    except ValueError:  # another drive
        return other.absolute().as_uri()
    # A colon too: what stands before it would be a scheme.
    return quote(os.fsencode(relative))


def whole_records(text: str) -> list[dict[str, Any]]:
    """The records of a history, up to a line that was being written when the process died."""
    records = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            break
        if not isinstance(record, dict):
            break
        records.append(record)
    return records


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
    return [("accuracy", f"{test['accuracy']:.1%}", f"on {test['texts']} test texts")]


def _context_free_accuracy(names: dict[str, Any]) -> list[Row]:
    found = names["model"]["context"]["accuracy"]["context_free"]
    told = f"every word at its default: the table alone, on {found['count']} test texts"
    return [("context-free accuracy", f"{found['mean']:.1%}", told)]


def _reference_accuracies(names: dict[str, Any]) -> list[Row]:
    found = names["model"]["context"]["accuracy"]
    references = {"bag of words": "bag_of_words", "TF-IDF": "tfidf"}
    return [(name, f"{found[key]['mean']:.1%}", "baseline, on the same texts") for name, key in references.items()]


def _baseline_accuracies(measured: dict[str, Any]) -> list[Row]:
    told = f"baseline, on {measured['test_texts']} test texts"
    return [(name, f"{found['accuracy']:.1%}", told) for name, found in measured["baselines"].items()]


def _baseline_figures(found: dict[str, Any]) -> tuple[Figures, ...]:
    return (Figures(*baseline_figures(found)),)
