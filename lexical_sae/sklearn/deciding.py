"""What estimators that decide share, whatever they decide on: training, the table of words, edits and a report."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.inference import explain
from lexical_sae.inference.reading import answers
from lexical_sae.intervene import SuppressedModel, WordTable, model_table
from lexical_sae.models.lexical_sae import CLASSIFY
from lexical_sae.outputs import TaskScores
from lexical_sae.report import task
from lexical_sae.report.classifier import ClassWord, classifier_html
from lexical_sae.report.page import Example, Figures, Page, page_html
from lexical_sae.runs.in_memory import train_model
from lexical_sae.runs.inputs import chosen_unlabelled
from lexical_sae.sklearn.inputs import texts_of
from lexical_sae.sklearn.splits import with_validation
from lexical_sae.sklearn.words import WordCodeEstimator
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import write_text

BATCH = 32
FEWEST_WORDS, MOST_WORDS = 4, 24
"""Words of a class that a notebook shows, and of all classes together."""
LEAST_TEXTS = 5
"""Training texts that they should be in."""

E = TypeVar("E", bound="DecidingEstimator")


class Judged(NamedTuple):
    """Decisions on texts with known labels."""

    rows: Sequence[tuple[str, str, str]]
    """Figures for people: name, value, remark."""
    decided: Sequence[str]
    gold: Sequence[str]


def task_rows(found: TaskScores) -> list[tuple[str, str, str]]:
    """The figures of an output kind for people."""
    return task.task_rows([asdict(figure) for figure in found.figures])


class DecidingEstimator(WordCodeEstimator):
    """An estimator with a head that decides."""

    frequencies_: dict[str, int]

    def _fit_on(
        self, rows: TextSplit, names: tuple[str, ...], output: str, callbacks: Sequence[Any], unlabelled: Any
    ) -> None:
        """Train on rows of an output kind, as the command line does; those without weight are left out."""
        more = None if unlabelled is None else texts_of(unlabelled, "unlabelled")
        settings, seed = self._settings(without_context=not self.context), self._new_seed()
        with self._training(callbacks) as watchers:
            if rows.weights is not None and min(rows.weights) == 0:
                rows = rows.take([row for row, weight in enumerate(rows.weights) if weight])
            carved = with_validation(rows, names, TextSplit((), ()), self.validation_fraction, seed)
            parts = (carved.train, carved.validation, carved.test, carved.notes)
            dataset = TextDataset("texts", names, *parts, output=output)
            if more is not None:
                chosen, notes = chosen_unlabelled(more, dataset, seed)
                dataset = replace(dataset, unlabelled=chosen)
                for note in notes:
                    watchers.on_note(note)
            model, fitted = train_model(settings, dataset, seed=seed, device=self.device, watchers=watchers)
        self.model_, self.seed_ = model, seed
        self._take_words((fitted.joined or dataset.train).texts)

    def _outputs(self, texts: Sequence[str]) -> np.ndarray:
        """The logits of every text, in the model's order."""
        model = self._fitted_model()
        rows = answers(model, texts, BATCH, lambda read: list(read.state.logits.double().cpu().numpy()))
        return np.array(list(rows)).reshape(-1, len(model.labels[CLASSIFY]))

    def _judged(self, texts: list[str], y: Any) -> Judged:
        """Decisions on texts that were not trained on."""
        raise NotImplementedError

    def lexicon(self) -> WordTable:
        """The table of words: every word with its weight for each class, the largest first.

        Weights are class-centred logits of a word without context in a text of sixteen tokens. `to_csv()` writes the
        table for a spreadsheet.
        """
        model = self._fitted_model()
        if model.literal is None:
            raise SettingsError(
                f"recipe {self.recipe!r} keeps no table: what a word contributes depends on the text. Save the model "
                "and see `lexical-sae corpus`, or fit with recipe='anchored'"
            )
        return model_table(model, self.frequencies_)

    def _html_repr(self) -> str:
        """What a notebook shows: fitted with a table, its strongest words; otherwise scikit-learn's diagram."""
        if not self.__sklearn_is_fitted__() or self.model_.literal is None:
            return super()._html_repr()
        table = self.lexicon()
        top = max(FEWEST_WORDS, MOST_WORDS // len(table.labels))
        classes = [(label, _strongest(table, place, top)) for place, label in enumerate(table.labels)]
        return classifier_html(type(self).__name__, classes, len(table.rows))

    def suppress(self: E, words: str | Iterable[str]) -> E:
        """A new fitted estimator that cannot use these words, or their case variants and plurals.

        This one keeps them. Both share their weights, and the columns of `transform`.
        """
        return self._with_model(SuppressedModel(self._fitted_model(), words))

    def report(self, X: Any, y: Any, path: str | Path, examples: int = 50) -> Path:
        """Write a page about texts that were not trained on: figures, words, and decisions with their reasons.

        Args:
            X: Texts.
            y: Their labels.
            path: The HTML file to write.
            examples: Texts to show at most, wrong decisions first.

        Returns:
            The file.
        """
        model, texts = self._fitted_model(), self._texts(X)
        found = self._judged(texts, y)
        first = sorted(range(len(texts)), key=lambda row: found.decided[row] == found.gold[row])[:examples]
        rows = [
            *found.rows,
            ("words per text", f"{np.diff(self._code(texts).indptr).mean():.1f}", "active on average"),
        ]
        whys = explain(model, [texts[i] for i in first])
        shown = [Example(why, found.gold[row]) for row, why in zip(first, whys, strict=True)]
        page = Page("Decisions and their words", headline=Figures("These texts", rows), examples=shown)
        return write_text(Path(path).expanduser(), page_html(page))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _strongest(table: WordTable, place: int, top: int) -> list[ClassWord]:
    """The words with the greatest weight for a class, those of several texts if there are any."""
    usable = [row for row in table.rows if not row.suppress and row.weights is not None]
    often = [row for row in usable if (row.texts or 0) >= LEAST_TEXTS] or usable
    words = [ClassWord(row.word, row.weights[place], row.texts) for row in often if row.weights is not None]
    return [word for word in sorted(words, key=lambda word: -word.weight)[:top] if word.weight > 0]
