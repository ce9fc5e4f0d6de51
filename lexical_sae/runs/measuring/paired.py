"""Two models on the same texts: what each got right, kept in `decisions.json`, and their difference, paired by text."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from scipy import stats

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.report.studies.comparison import Difference
from lexical_sae.runs.folder import DECISIONS, write_json
from lexical_sae.runs.inputs import digest, text_digests
from lexical_sae.runs.measuring.scoring import Scores
from lexical_sae.utils.errors import SavedFileError

AT_ONCE = 500
"""Texts whose resamples are held in memory."""


class Decisions(NamedTuple):
    """Which test texts a model got right, and which texts those were."""

    digest: str
    """Of the texts and their labels: only equal ones can be paired."""
    is_correct: tuple[bool, ...]
    texts: tuple[str, ...] = ()
    """A hash of each text, so that one which several draws of a split share is known; empty where nobody kept them."""


def write_decisions(folder: Path, test: TextSplit, scores: Scores) -> None:
    """Leave `decisions.json` in a run's folder: a 1 for every text that was got right, a 0 for every other."""
    marks = "".join("1" if is_right else "0" for is_right in scores.is_correct)
    found = {"test_digest": digest(test), "is_correct": marks, "texts": " ".join(text_digests(test))}
    write_json(folder / DECISIONS, found)


def read_decisions(folder: Path) -> Decisions:
    """What `write_decisions` left."""
    path = folder / DECISIONS
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        is_correct = tuple(mark == "1" for mark in saved["is_correct"])
        # Older runs have none.
        return Decisions(saved["test_digest"], is_correct, tuple(saved.get("texts", "").split()))
    except FileNotFoundError as error:
        raise SavedFileError(f"there is no {path}, which training writes; train again to compare it") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise SavedFileError(f"{path} is not what training writes; train that run again to compare it") from error


def require_same_rows(folder: Path, dataset: TextDataset) -> None:
    """Refuse data that changed since the run in a folder was made: what is a test text now, it may have learned from.

    A run that left no decisions passes, as this cannot be checked.
    """
    if (folder / DECISIONS).is_file() and read_decisions(folder).digest != digest(dataset.test):
        raise SavedFileError(
            f"{dataset.name} has changed since the run in {folder} was made, so the model may have learned from its "
            "test texts; restore the data, or train again"
        )


def paired_difference(ours: Sequence[Decisions], theirs: Sequence[Decisions]) -> Difference:
    """Accuracy of ours minus that of theirs, paired by text, one of each per seed.

    A text that several seeds are tested on counts once, with the mean of its differences: runs that share a text do
    not tell independent things about it. The interval is a bootstrap over texts; p is that of the exact sign test.

    Example: ours right on 4 texts where theirs is wrong, never the other way -> 4 won, 0 lost, p 0.125
    """
    means, rights = BootstrapMeans(), _rights(ours, theirs)
    for start in range(0, len(rights), AT_ONCE):
        part = torch.from_numpy(rights[start : start + AT_ONCE])
        means.update(range(start, start + len(part)), {"ours": part[:, 0], "theirs": part[:, 1]})
    interval = means.difference("ours", "theirs", of_shares=True)
    differences = rights[:, 0] - rights[:, 1]
    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    p = float(stats.binomtest(won, won + lost).pvalue) if won + lost else 1.0
    return Difference(mean=interval.mean, low=interval.low, high=interval.high, won=won, lost=lost, p=p)


def _rights(ours: Sequence[Decisions], theirs: Sequence[Decisions]) -> Float[ndarray, "T 2"]:
    """How often ours and theirs are right on each text: the means over the seeds that were tested on it."""
    of_texts: dict[str, list[tuple[bool, bool]]] = {}
    if not all(one.is_correct for one in (*ours, *theirs)):
        raise SavedFileError("numbers are not right or wrong, so they cannot be paired text by text")
    for own, other in zip(ours, theirs, strict=True):
        if own.digest != other.digest:
            raise SavedFileError("the two were tested on other texts, so they cannot be paired; train both again")
        # Seeds may draw other test texts, which still overlap: each text is known by its own hash.
        names = own.texts or other.texts or [f"{own.digest} {i}" for i in range(len(own.is_correct))]
        for name, is_right, is_theirs in zip(names, own.is_correct, other.is_correct, strict=True):
            of_texts.setdefault(name, []).append((is_right, is_theirs))
    return np.array([np.mean(seeds, axis=0) for seeds in of_texts.values()])


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values that hold for all comparisons together: the smallest times their number, and so on.

    Example: `[0.01, 0.04, 0.03] -> [0.03, 0.06, 0.06]`
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, so_far = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        so_far = max(so_far, min(1.0, p_values[i] * (len(p_values) - rank)))
        corrected[i] = so_far
    return corrected
