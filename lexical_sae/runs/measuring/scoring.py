"""One pass over a split: the figures that every run is judged by, and which texts are decided on rightly."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.data import TextSplit
from lexical_sae.data.batches import length_buckets, tokenize
from lexical_sae.inference.reading import read_batch
from lexical_sae.mechanistic.attribution import code_identity_error, worst_gap
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.outputs import Scored
from lexical_sae.training.baselines.scores import macro_f1
from lexical_sae.utils.progress import OnStep, Step, silent


@dataclass(frozen=True)
class Scores:
    """How a model does on texts it was not trained on."""

    task: dict[str, Any]
    """Figures of the output kind. Of classes: `accuracy`; `macro_f1`, the mean F1 of the classes that occur;
    `majority`, the accuracy of always naming the most frequent label. Of others: `TaskScores`, with `output`."""
    active_words: float
    """Mean number of active words per text."""
    identity_error: float
    """Worst relative gap between a logit and its decomposition."""
    texts: int
    texts_cut: int
    """Texts longer than the model reads."""
    is_correct: tuple[bool, ...]
    """Of each text, in order, so that differences can be paired; empty for numbers."""

    @property
    def accuracy(self) -> float:
        """Share of the texts that got the right class."""
        return self.task["accuracy"]

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the classes, or labels."""
        return self.task["macro_f1"]

    @property
    def majority(self) -> float:
        """Accuracy of always naming the most frequent class."""
        return self.task["majority"]

    def as_dict(self) -> dict[str, Any]:
        """The figures, as plain data."""
        return {**self.task, **{k: v for k, v in asdict(self).items() if k not in ("task", "is_correct")}}


@torch.no_grad()
def score(model: LexicalSAE, split: TextSplit, on_step: OnStep = silent, batch_size: int = 64) -> Scores:
    """The figures of the output kind, active words and identity error over a split."""
    model.eval()
    texts = tokenize(model.tokenizer, split.texts, model.max_length)
    model = model.opened_to(texts.ids)
    logits = torch.zeros(len(split), len(model.labels[CLASSIFY]))
    active, worst, done = 0, 0.0, 0
    for rows in length_buckets(texts, batch_size):
        state = read_batch(model, texts.batch(rows))
        logits[rows] = state.logits.float().cpu()
        active += len(state.code.values)
        worst = worst_gap(worst, float(code_identity_error(state).max()))
        done += len(rows)
        on_step(Step("testing", done, len(texts)))
    count = len(split)
    task, is_correct = _task_figures(model, logits, split.labels)
    return Scores(
        task=task,
        active_words=active / count,
        identity_error=worst,
        texts=count,
        texts_cut=texts.num_cut,
        is_correct=is_correct,
    )


def _task_figures(
    model: LexicalSAE, logits: Float[Tensor, "T C"], labels: Sequence[Any]
) -> tuple[dict[str, Any], tuple[bool, ...]]:
    """The figures of the output kind, and which texts are right."""
    if isinstance(model.output, Scored):
        found = model.output.figures(logits, labels, model.labels[CLASSIFY])
        return {"output": model.output.kind, **found.as_dict()}, found.is_correct
    gold, predicted = torch.tensor(labels), logits.argmax(-1)
    figures = {
        "accuracy": int((predicted == gold).sum()) / len(gold),
        "macro_f1": macro_f1(gold.numpy(), predicted.numpy()),
        "majority": int(gold.bincount().max()) / len(gold),
    }
    return figures, tuple((predicted == gold).tolist())
