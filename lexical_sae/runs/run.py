"""A run on disk: written by training, read by everything else.

    run = Run.open("results/tickets")        # the folder of a run, or of the model in it
    run.model, run.data, run.results         # read when first used, and kept
    run.unseen(texts, labels)                # without the texts that the model learned from
    run.report()                             # report.html

With several seeds, `run.seeds` are the runs of each; model, rows and measurements are those of the first.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lexical_sae.config.load import load_config
from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.data import TaggedDataset, TextDataset, TextSplit
from lexical_sae.evaluation.names.tests import with_current_keys
from lexical_sae.inference.labels import label_index, labels_of
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.persistence import from_pretrained
from lexical_sae.runs.folder import (
    BASELINES,
    CONFIG,
    ENVIRONMENT,
    EVALUATION,
    HISTORY,
    MODEL,
    NAMES,
    RESULTS,
    read_settings,
    whole_records,
)
from lexical_sae.runs.inputs import load_data, load_sentences, require_same_labels
from lexical_sae.runs.measuring.paired import Decisions, read_decisions, require_same_rows
from lexical_sae.utils.device import resolve_device
from lexical_sae.utils.errors import SavedFileError, SettingsError
from lexical_sae.utils.progress import OnStep, silent

if TYPE_CHECKING:
    from lexical_sae.runs.unseen import UnseenTexts

TEST = "test"
"""What an evaluation of a run's own test texts calls them."""


class Run:
    """The run in a folder: its settings, its rows, its model, and what was measured of it.

    Everything is read when it is first used, and kept: the data and the model once, however many measurements use
    them. `release` lets go of both.
    """

    @classmethod
    def open(cls, folder: str | Path, device: str = "cpu") -> "Run":
        """The run in a folder.

        Args:
            folder: The folder of a run, or that of the model in it.
            device: Where the model is put when it is loaded.
        """
        found = find_run(folder)
        if found is None:
            place = Path(folder).expanduser()
            within = sorted(path.parent.name for path in place.glob(f"*/{CONFIG}"))
            remedy = f"its runs are in {', '.join(within)}" if within else "give the output_dir of an experiment"
            raise SavedFileError(f"{place} holds no run: it has no {CONFIG}; {remedy}")
        return cls(found, device=device)

    @classmethod
    def of(cls, config: ExperimentConfig, device: str = "cpu") -> "Run":
        """The run that an experiment describes, in its `output_dir`; it may not be there yet."""
        return cls(Path(config.output_dir), device=device, config=config)

    def __init__(
        self,
        folder: Path,
        *,
        device: str = "cpu",
        config: ExperimentConfig | None = None,
        seed: int | None = None,
    ) -> None:
        self.folder = folder
        self.device = device
        self._given = config
        self._seed = seed

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    # What it was made from.

    @cached_property
    def config(self) -> ExperimentConfig:
        """The settings: those given, or those in the folder."""
        if self._given is not None:
            return self._given
        places = (self.folder, self.folder.parent)  # of a seed's run, those of all seeds do too
        return load_config(next((p for p in places if (p / CONFIG).is_file()), self.folder) / CONFIG)

    @cached_property
    def seeds(self) -> "tuple[Run, ...]":
        """The run of each seed; of one seed, the run itself."""
        if self._seed is not None:
            return (self,)
        if self._given is None:
            found = sorted(self.folder.glob("seed-*"), key=lambda path: (len(path.name), path.name))
            return tuple(Run(path, device=self.device) for path in found if path.is_dir()) or (self,)
        wanted = self._given.evaluation.seeds
        only = wanted[0]
        if len(wanted) > 1:
            places = {seed: self.folder / f"seed-{seed}" for seed in wanted}
            return tuple(Run(place, device=self.device, config=self._given, seed=s) for s, place in places.items())
        of_several = self.folder / f"seed-{only}"
        if not self.has_model and (of_several / MODEL).is_dir():
            return (Run(of_several, device=self.device, config=self._given, seed=only),)
        return (self,)

    @property
    def first(self) -> "Run":
        """The run of the first seed."""
        return self if self.has_model else self.seeds[0]

    @cached_property
    def seed(self) -> int:
        """What its rows were sampled and its weights initialised with."""
        if self._seed is not None:
            return self._seed
        saved = None if self._given else self._written_seed()
        return self.config.evaluation.seeds[0] if saved is None else saved

    def _written_seed(self) -> int | None:
        try:
            seed = self.read(ENVIRONMENT)["seed"]
        except (SavedFileError, LookupError, TypeError):
            return None
        return seed if isinstance(seed, int) else None

    @cached_property
    def data(self) -> TextDataset:
        """The rows it was trained and tested on, refused where they changed since. A tagger has `sentences`."""
        if self.first is not self:
            return self.first.data
        dataset = load_data(self.config, self.seed)
        require_same_rows(self.folder, dataset)
        return dataset

    @cached_property
    def sentences(self) -> TaggedDataset:
        """The sentences that a tagger was trained and tested on."""
        return self.first.sentences if self.first is not self else load_sentences(self.config, self.seed)

    # What it left.

    @property
    def model_folder(self) -> Path:
        """Where the model is saved: of several seeds, that of the first."""
        return self.first.folder / MODEL

    @property
    def has_model(self) -> bool:
        """Whether the model of this folder is saved; training does so at its end."""
        return (self.folder / MODEL).is_dir()

    @property
    def is_finished(self) -> bool:
        """Whether training is complete."""
        return (self.folder / RESULTS).is_file()

    @cached_property
    def model(self) -> LexicalSAE:
        """The saved model, on the run's device."""
        if self.first is not self:
            return self.first.model
        return from_pretrained(self.folder / MODEL).to(resolve_device(self.device))

    def model_and_data(self) -> tuple[LexicalSAE, TextDataset]:
        """The model with its rows; data whose labels are not the model's is refused."""
        require_same_labels(self.model, self.data)
        return self.model, self.data

    def release(self) -> None:
        """Let go of the model and the data; the next use reads them again."""
        for name in ("model", "data", "sentences"):
            self.__dict__.pop(name, None)

    @property
    def results(self) -> Any:
        """`results.json`: the figures of the test split, over all seeds; None before training is complete."""
        return self.read(RESULTS)

    @property
    def evaluation(self) -> Any:
        """`evaluation.json`: what was measured on test texts; None if nothing was."""
        return self.first.read(EVALUATION)

    @property
    def names(self) -> Any:
        """`names.json`: the name tests; None if they were not made."""
        return with_current_keys(self.first.read(NAMES))

    @property
    def baselines(self) -> Any:
        """`baselines.json`: the dense baseline and TF-IDF; None if they were not measured."""
        return self.read(BASELINES)

    @property
    def decisions(self) -> Decisions:
        """Which test texts the model got right."""
        return read_decisions(self.first.folder)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The records of training, up to one that was being written when the process died."""
        path = self.first.folder / HISTORY
        return whole_records(path.read_bytes()) if path.is_file() else []

    @property
    def is_tagger(self) -> bool:
        """Whether it trained a tagger; a run that is not finished does not say."""
        return "tags" in (self.first.read(RESULTS) or {})

    def read(self, name: str) -> Any:
        """A JSON file of the folder; None where there is none."""
        path = self.folder / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise SavedFileError(f"{path} cannot be read ({type(error).__name__}: {error}); delete it") from error

    def evaluation_on(self, most_texts: int) -> dict[str, Any] | None:
        """The evaluation, if it is of that many of the run's test texts; a damaged one counts as none."""
        try:
            saved = self.evaluation
            is_it = saved["split"] == TEST and saved["most_texts"] == most_texts
        except (ValueError, LookupError, TypeError):
            return None
        return saved if is_it else None

    def names_on(self, texts: int) -> dict[str, Any] | None:
        """The name tests, if they were made on at least that many texts, or on all; damaged ones count as none."""
        try:
            saved = self.names
            is_enough = saved["model"]["texts"] >= min(texts, saved["test_texts"])
        except (ValueError, LookupError, TypeError):
            return None
        return saved if is_enough else None

    # What is done with it.

    def require_made_by(self, config: ExperimentConfig) -> None:
        """Refuse an experiment that did not make this run: its test texts may be among those it was trained on."""
        folder = self.first.folder
        if not (folder / CONFIG).is_file():
            raise SavedFileError(
                f"there is no {folder / CONFIG}, so it is not known what the model learned from; copy the whole "
                "folder of the run, or measure the model alone with `lexical-sae evaluate`"
            )
        saved = read_settings(folder)
        try:
            # A setting that is younger than the run has its default there.
            saved = json.loads(ExperimentConfig.model_validate(saved).model_dump_json())
        except ValidationError:
            # Settings that are no longer known differ from any.
            saved = saved if isinstance(saved, dict) else {}
        given = json.loads(config.model_dump_json())
        odd = [part for part in ("data", "model") if saved.get(part) != given[part]]
        if saved.get("evaluation", {}).get("seeds") != given["evaluation"]["seeds"]:
            odd.append("evaluation.seeds")
        if odd:
            raise SettingsError(
                f"the run in {folder} was made with other settings ({', '.join(odd)}), so its test texts may differ; "
                "give the experiment that made it"
            )

    def unseen(
        self, texts: Sequence[str], labels: Sequence[str | int] | None = None, name: str = "your data"
    ) -> "UnseenTexts":
        """Texts to measure the model on, without those that it learned from.

        Args:
            texts: The texts.
            labels: Their classes, as names or as the model numbers them; without any, all are of the first class.
            name: What a message calls them.

        Returns:
            The texts that are left, with a sentence about those left out.
        """
        from lexical_sae.runs.unseen import unseen_of

        known = labels_of(self.model)
        given = [0] * len(texts) if labels is None else labels
        numbers = [label_index(known, one, "label") if isinstance(one, str) else one for one in given]
        return unseen_of(self, TextSplit(tuple(texts), tuple(numbers)), name)

    def report(
        self, out: Path | None = None, texts: int | None = None, on_step: OnStep = silent, *, all_tokens: bool = False
    ) -> tuple[Path, Sequence[str]]:
        """Write the run's page.

        Args:
            out: The file; by default `report.html` in the folder.
            texts: How many test texts to explain.
            on_step: Gets progress.
            all_tokens: Whether word pieces and symbols are named too.

        Returns:
            Where it is, and a sentence for each thing that it could not show.
        """
        from lexical_sae.runs.pages.report import write_report

        return write_report(self, out, texts, on_step, all_tokens=all_tokens)


def find_run(path: str | Path) -> Path | None:
    """The folder of a run, given it or its model's folder; None if there is no run."""
    place = Path(path).expanduser()
    nearby = (place, place.resolve().parent)
    return next((folder for folder in nearby if (folder / CONFIG).is_file()), None)
