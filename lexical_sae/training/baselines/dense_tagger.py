"""The dense baseline of a tagger: the same encoder, rows, epochs and casing information, without words in between."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from lexical_sae.data import TaggedDataset, TaggedSplit
from lexical_sae.data.batches import Batch, batches
from lexical_sae.data.word_rows import Place, WordRows
from lexical_sae.models.dense_baseline import DenseTagger
from lexical_sae.models.layers.shapes import ShapeFeatures
from lexical_sae.training.baselines.fine_tuning import DenseTraining, best_of_rates, fine_tune
from lexical_sae.training.tasks import IGNORED, Positions, positions
from lexical_sae.utils.device import resolve_device
from lexical_sae.utils.progress import OnStep

Tags = Sequence[Sequence[str]]
Judge = Callable[[Tags, Tags], float]
"""How good predicted tags are, given the true ones first."""


@dataclass(frozen=True)
class DenseTags:
    """What the dense baseline predicts on the test sentences, and how it was chosen."""

    predicted: tuple[tuple[str, ...], ...]
    setting: str
    validation: dict[str, float]
    """The score on the validation sentences, by setting."""


@dataclass(frozen=True)
class _Given:
    """A split as the dense baseline reads it."""

    split: TaggedSplit
    task: Positions
    rows: WordRows

    def shapes(self, some: Sequence[int]) -> Bool[Tensor, "B L S"]:
        """The shapes of a padded batch; without columns for a dense baseline that gets none."""
        if self.task.shapes is None:
            return torch.zeros(len(some), self.task.texts.width(some), 0, dtype=torch.bool)
        return self.task.shapes(some)


def dense_tagger(
    dataset: TaggedDataset,
    backbone: str,
    judge: Judge,
    asked: DenseTraining,
    *,
    shapes: ShapeFeatures.Config | None,
) -> DenseTags:
    """The encoder fine-tuned as a tagger: best of a few learning rates, by its score on validation."""
    described = shapes and shapes.build(0)
    names = dataset.tag_names

    def given(model: DenseTagger, split: TaggedSplit) -> _Given:
        return _Given(split, *positions(model.tokenizer, split, names, asked.max_length, described))

    def trained(rate: float) -> DenseTagger:
        model = DenseTagger(backbone, len(names), len(described) if described else 0).to(resolve_device(asked.device))
        train = given(model, dataset.train)
        fine_tune(model, train.task.texts, lambda some: _loss(model, train, some), rate, asked)
        return model

    def worth(model: DenseTagger) -> float:
        validation = dataset.validation
        return judge(validation.tags, _predict(model, given(model, validation), names, asked.on_step))

    model, best, found = best_of_rates(asked, trained, worth)
    return DenseTags(tuple(_predict(model, given(model, dataset.test), names, asked.on_step)), best, found)


def _loss(model: DenseTagger, given: _Given, some: Sequence[int]) -> Tensor:
    logits = _logits(model, given, given.task.texts.batch(some))
    labels = torch.full(logits.shape[:2], IGNORED)
    for i, row in enumerate(some):
        tags = given.task.tags[row]
        labels[i, : len(tags)] = torch.tensor(tags)
    return cross_entropy(logits.flatten(0, 1), labels.flatten().to(logits.device), ignore_index=IGNORED)


def _logits(model: DenseTagger, given: _Given, batch: Batch) -> Float[Tensor, "B L C"]:
    device, shapes = model.shapes.device, given.shapes(batch.rows.tolist())
    return model(batch.input_ids.to(device), batch.attention_mask.to(device), shapes.to(device))


@torch.no_grad()
def _predict(model: DenseTagger, given: _Given, names: Sequence[str], on_step: OnStep) -> list[tuple[str, ...]]:
    """The tags of each sentence, decoded as the dense baseline's model with words is."""
    model.eval()
    rows = given.rows

    def decided() -> Iterator[tuple[list[Place], Float[Tensor, "N C"]]]:
        for batch in batches(rows.texts, 64, "dense baseline, tagging", on_step):
            logits, some = _logits(model, given, batch), batch.rows.tolist()
            first = [(i, *token) for i, row in enumerate(some) for token in rows.first_tokens(row)]
            places = [(rows.sentences[some[i]], word) for i, _, word in first]
            yield places, logits[[i for i, _, _ in first], [position for _, position, _ in first]]

    return rows.decode(decided(), names)
