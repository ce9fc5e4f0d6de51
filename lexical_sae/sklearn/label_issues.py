"""Labels that are probably wrong: rows that disagree with what the others teach, and words that go with them.

1. Texts are cut into folds, equal texts in one; each is predicted by a classifier that never saw it.
2. Confident learning (Northcutt et al. 2021, arXiv:1911.00068): a row disagrees if another class is at least as
   probable as that class is, on average, for texts labelled with it, and more probable than the row's own label.
   Rows are ranked by the probability of their own label, as cleanlab ranks them.
3. A word disagrees too often if more of its texts do than the share of all texts would have by chance: a one-sided
   binomial test per word. Benjamini-Yekutieli keeps the expected share of falsely named words at most at `level`,
   however the tests depend on each other.

A word that is named points at texts to look at: their labels may be wrong in the same way, or they may just be hard.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest, false_discovery_control
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils import check_consistent_length

from lexical_sae.data.tables.cell_values import label_text
from lexical_sae.models.calibration import words_of
from lexical_sae.sklearn.inputs import classes_of, texts_of
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import write_text
from lexical_sae.utils.progress import OnStep, Step, silent

REFERENCE = "Benjamini and Yekutieli 2001, The Annals of Statistics 29(4)"
LEAST_TEXTS = 5
"""Texts that a word must have to be tested."""
COLUMNS = ("text", "label", "suggested", "probability_of_label", "disagrees", "words", "row")


@dataclass(frozen=True)
class RowIssue:
    """A row, and what the classifier that never saw it says of its label."""

    row: int
    """Its place in the data, from 0."""
    text: str
    label: Any
    suggested: Any
    """The most probable class."""
    probability_of_label: float
    """Out-of-fold probability of the given label; rows with the least come first."""
    disagrees: bool
    """Whether another class is confidently more probable."""
    words: tuple[str, ...]
    """The named words that the text has."""


@dataclass(frozen=True)
class WordIssue:
    """A word whose texts disagree with their labels too often."""

    word: str
    texts: int
    disagree: int
    """Texts with the word whose label disagrees."""
    expected: float
    """How many would by chance."""
    p_value: float
    q_value: float
    """The smallest `level` at which the word is named (Benjamini-Yekutieli)."""
    rows: tuple[int, ...]
    """Rows that have the word and disagree."""


@dataclass(frozen=True, repr=False)
class LabelIssues:
    """All rows, the most doubtful first, and the words whose texts disagree too often."""

    rows: tuple[RowIssue, ...]
    words: tuple[WordIssue, ...]
    rate: float
    """Share of all rows that disagree."""
    level: float

    def __repr__(self) -> str:
        """How much was found, and where to look: all rows would be a page each."""
        named = ", ".join(f"{word.word} ({word.disagree} of {word.texts} texts)" for word in self.words) or "none"
        return f"<LabelIssues: {len(self.doubtful)} of {len(self.rows)} rows disagree (.doubtful); .words: {named}>"

    @property
    def doubtful(self) -> tuple[RowIssue, ...]:
        """The rows that disagree."""
        return tuple(row for row in self.rows if row.disagrees)

    def to_csv(self) -> str:
        """All rows as a CSV with columns `text` and `label`: correct the labels, and train on the file.

        Rows with a named word come first, then the others that disagree, then the rest.
        """
        file = io.StringIO(newline="")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in sorted(self.rows, key=lambda row: (not (row.disagrees and row.words), not row.disagrees)):
            said = (row.suggested, f"{row.probability_of_label:.4f}", "yes" if row.disagrees else "")
            writer.writerow([row.text, row.label, *said, " ".join(row.words), row.row])
        return file.getvalue()

    def write_csv(self, path: str | Path) -> Path:
        """Write `to_csv` to a new file; one that is there, with corrections perhaps, is left alone."""
        target = Path(path).expanduser()
        if target.exists():
            raise SettingsError(f"{target} exists already and may hold your corrections; choose another name")
        return write_text(target, self.to_csv())

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame, the most doubtful first."""
        import pandas as pd

        return pd.DataFrame([[getattr(row, name) for name in COLUMNS] for row in self.rows], columns=pd.Index(COLUMNS))


def find_label_issues(
    clf: Any, X: Any, y: Any, *, cv: int = 5, level: float = 0.05, random_state: int = 0, on_step: OnStep = silent
) -> LabelIssues:
    """Rows whose labels are probably wrong, and words whose texts disagree with their labels too often.

    Args:
        clf: A classifier of texts with `predict_proba`, such as `LexicalClassifier`; fitted or not, it is cloned.
        X: Texts.
        y: Their labels.
        cv: Folds; at most as many as the rarest class has different texts.
        level: Expected share of falsely named words at most (false discovery rate).
        random_state: Of the folds.
        on_step: Gets progress.

    Returns:
        All rows in the order of doubt, and the words, the surest first.
    """
    if not 0 < level < 1:
        raise SettingsError(f"level is {level!r}; give a share between 0 and 1, such as 0.05")
    texts = texts_of(X)
    check_consistent_length(texts, y)
    labels, classes = classes_of(y)
    own = np.array([classes.names.index(name) for name in classes.of_rows])
    found = _out_of_fold(clf, texts, labels, own, classes.names, cv, random_state, on_step)
    disagrees = confident_disagreement(found, own)
    words = tuple(_words(texts, disagrees, level))
    named = defaultdict(list)
    for word in words:
        for row in word.rows:
            named[row].append(word.word)
    order = np.argsort(found[np.arange(len(texts)), own], kind="stable").tolist()
    values = classes.values.tolist()
    rows = [
        RowIssue(
            row, texts[row], values[own[row]], values[int(found[row].argmax())], float(found[row, own[row]]),
            bool(disagrees[row]), tuple(named[row]),
        )
        for row in order
    ]  # fmt: skip
    return LabelIssues(tuple(rows), words, float(disagrees.mean()), level)


def _out_of_fold(
    clf: Any,
    texts: Sequence[str],
    labels: np.ndarray,
    own: np.ndarray,
    names: Sequence[str],
    cv: int,
    seed: int,
    on_step: OnStep,
) -> np.ndarray:
    """The probability of every class for each text, by a classifier that never saw the text."""
    keys = [" ".join(text.casefold().split()) for text in texts]
    groups = np.unique(keys, return_inverse=True)[1]
    rarest = min(len(set(groups[own == label])) for label in set(own.tolist()))
    if not 2 <= cv <= rarest:
        raise SettingsError(f"cv is {cv}; it must be from 2 to {rarest}, the different texts of the rarest class")
    folds = StratifiedGroupKFold(cv, shuffle=True, random_state=seed)
    found = np.zeros((len(texts), len(names)))
    for fold, (train, test) in enumerate(folds.split(keys, own, groups)):
        made: Any = clone(clf)
        made.fit([texts[row] for row in train], labels[train])
        # A class whose texts all lie in this fold was not learned: it is not suggested here.
        columns = [names.index(label_text(value)) for value in made.classes_]
        found[test[:, None], columns] = made.predict_proba([texts[row] for row in test])
        on_step(Step("predicting each text by a model that never saw it", fold + 1, cv))
    return found


def confident_disagreement(probabilities: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Which rows have another class that is confidently more probable than their label.

    Example: labels 0 and 1 are on average given 0.8 where they stand; a row labelled 0 with (0.1, 0.9) disagrees, one
    with (0.4, 0.6) does not
    """
    count = probabilities.shape[1]
    usual = np.array([probabilities[own == label, label].mean() for label in range(count)])
    confident = np.where(probabilities >= usual, probabilities, -1.0)
    best = confident.argmax(1)
    rows = np.arange(len(own))
    return (confident[rows, best] >= 0) & (probabilities[rows, best] > probabilities[rows, own])


def _words(texts: Sequence[str], disagrees: np.ndarray, level: float) -> list[WordIssue]:
    """The words whose texts disagree too often, the surest first."""
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        for word in set(words_of(text)):
            rows_of[word].append(row)
    tested = sorted(word for word, rows in rows_of.items() if len(rows) >= LEAST_TEXTS)
    rate = float(disagrees.mean())
    if not tested or not 0 < rate < 1:
        return []
    counts = [int(disagrees[rows_of[word]].sum()) for word in tested]
    p_values = [
        float(binomtest(count, len(rows_of[word]), rate, alternative="greater").pvalue)
        for word, count in zip(tested, counts, strict=True)
    ]
    q_values = false_discovery_control(p_values, method="by")
    issues = [
        _issue(word, rows_of, count, rate, p, float(q), disagrees)
        for word, count, p, q in zip(tested, counts, p_values, q_values, strict=True)
        if q <= level
    ]
    return sorted(issues, key=lambda issue: (issue.p_value, issue.word))


def _issue(
    word: str, rows_of: Mapping[str, list[int]], count: int, rate: float, p: float, q: float, disagrees: np.ndarray
) -> WordIssue:
    rows = rows_of[word]
    return WordIssue(word, len(rows), count, rate * len(rows), p, q, tuple(row for row in rows if disagrees[row]))
