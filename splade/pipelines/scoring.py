"""One pass over a split: the figures that every run is judged by, and each text's, so that models can be paired."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from splade.data import TextDataset, TextSplit
from splade.data.batches import length_buckets, tokenise
from splade.inference.reading import read_batch
from splade.mechanistic.attribution import code_identity_error, worst_gap
from splade.models.lexical_sae import LexicalSAE
from splade.pipelines.inputs import digest, text_digests
from splade.progress import OnStep, Step, silent
from splade.training.run_folder import DECISIONS, write_json


@dataclass(frozen=True)
class Scores:
    """How a model does on texts it was not trained on."""

    accuracy: float
    majority: float
    """Accuracy of always naming the most frequent label."""
    active_words: float
    """Mean number of active words per text."""
    identity_error: float
    """Worst relative gap between a logit and its decomposition."""
    texts: int
    texts_cut: int
    """Texts longer than the model reads."""
    is_correct: tuple[bool, ...]
    """Of each text, in order, so that differences can be paired."""

    def as_dict(self) -> dict[str, Any]:
        """The figures, as plain data."""
        return {name: value for name, value in asdict(self).items() if name != "is_correct"}


@torch.no_grad()
def score(model: LexicalSAE, split: TextSplit, on_step: OnStep = silent, batch_size: int = 64) -> Scores:
    """Accuracy, active words and identity error over a split."""
    model.eval()
    texts = tokenise(model.tokenizer, split.texts, model.max_length)
    model = model.opened_to(texts.ids)
    gold = torch.tensor(split.labels)
    is_correct = torch.zeros(len(split), dtype=torch.bool)
    active, worst, done = 0, 0.0, 0
    for rows in length_buckets(texts, batch_size):
        state = read_batch(model, texts.batch(rows))
        is_correct[rows] = state.logits.argmax(-1).cpu() == gold[rows]
        active += len(state.code.values)
        worst = worst_gap(worst, float(code_identity_error(state).max()))
        done += len(rows)
        on_step(Step("testing", done, len(texts)))
    count = len(split)
    return Scores(
        accuracy=int(is_correct.sum()) / count,
        majority=int(gold.bincount().max()) / count,
        active_words=active / count,
        identity_error=worst,
        texts=count,
        texts_cut=texts.num_cut,
        is_correct=tuple(is_correct.tolist()),
    )


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
        # Runs of before it was kept have none.
        return Decisions(saved["test_digest"], is_correct, tuple(saved.get("texts", "").split()))
    except FileNotFoundError as error:
        raise ValueError(f"there is no {path}, which training writes; train that run anew to compare it") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not what training writes; train that run anew to compare it") from error


def require_same_rows(folder: Path, dataset: TextDataset) -> None:
    """Refuse data that changed since the run in a folder was made: what is a test text now, it may have learned from.

    A run that left no decisions cannot be asked, and passes.
    """
    if (folder / DECISIONS).is_file() and read_decisions(folder).digest != digest(dataset.test):
        raise ValueError(
            f"{dataset.name} has changed since the run in {folder} was made, so the model may have learned from its "
            "test texts; restore the data, or train anew"
        )
