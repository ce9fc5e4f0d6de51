"""The dense twin of a tagger: the same encoder, rows, epochs and casing information, without words in between."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from splade.data import TaggedDataset, TaggedSplit
from splade.data.batches import length_buckets, shuffled_buckets
from splade.data.word_rows import Place, WordRows
from splade.device import resolve_device, set_seed
from splade.models.dense import DenseTagger
from splade.models.layers.shapes import ShapeFeatures
from splade.progress import OnStep, Step, silent
from splade.training.baselines import DENSE_RATES
from splade.training.optim import AdamWEMA, ParameterGroup
from splade.training.tagging import positions
from splade.training.tasks import IGNORED, Positions

Tags = Sequence[Sequence[str]]
Judge = Callable[[Tags, Tags], float]
"""How good predicted tags are, given the true ones first."""


@dataclass(frozen=True)
class DenseTags:
    """What the twin predicts on the test sentences, and how it was chosen."""

    predicted: tuple[tuple[str, ...], ...]
    setting: str
    validation: dict[str, float]
    """What the judge said on the validation sentences, by setting."""


@dataclass(frozen=True)
class _Given:
    """A split as the twin reads it."""

    split: TaggedSplit
    task: Positions
    rows: WordRows

    def shapes(self, some: Sequence[int], width: int, count: int) -> Bool[Tensor, "B L S"]:
        """The shapes of a padded batch; of no columns for a twin that is told none."""
        padded = torch.zeros(len(some), width, count, dtype=torch.bool)
        for i, row in enumerate(some):
            if self.task.shapes is not None:
                padded[i, : len(self.task.shapes[row])] = self.task.shapes[row]
        return padded


def dense_tagger_twin(
    dataset: TaggedDataset,
    backbone: str,
    judge: Judge,
    *,
    shapes: ShapeFeatures.Config | None,
    epochs: int,
    batch_size: int,
    max_length: int,
    rates: Sequence[float] = DENSE_RATES,
    seed: int = 0,
    device: str = "auto",
    on_step: OnStep = silent,
) -> DenseTags:
    """The encoder fine-tuned as a tagger: best of a few learning rates, by what the judge says on validation."""
    described = shapes and shapes.build(0)
    kept: dict[str, DenseTagger] = {}
    found: dict[str, float] = {}
    names = dataset.tag_names
    for rate in rates:
        set_seed(seed)
        model = DenseTagger(backbone, len(names), len(described) if described else 0).to(resolve_device(device))
        train, validation = (
            _Given(split, *positions(model.tokenizer, split, names, max_length, described))
            for split in (dataset.train, dataset.validation)
        )
        _fit(model, train, epochs, batch_size, rate, seed, on_step)
        name = f"lr={rate:g}"
        found[name] = judge(validation.split.tags, _predict(model, validation, names, on_step))
        if found[name] == max(found.values()):
            kept = {name: copy.deepcopy(model)}
    ((best, model),) = kept.items()
    test = _Given(dataset.test, *positions(model.tokenizer, dataset.test, names, max_length, described))
    return DenseTags(tuple(_predict(model, test, names, on_step)), best, found)


def _fit(
    model: DenseTagger, given: _Given, epochs: int, batch_size: int, rate: float, seed: int, on_step: OnStep
) -> None:
    texts, tags = given.task.texts, given.task.tags
    steps = epochs * -(-len(texts) // batch_size)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimiser = AdamWEMA.Config(schedule="linear", ema=None).build([ParameterGroup("all", parameters, rate)], steps)
    model.train()
    for epoch in range(epochs):
        for some in shuffled_buckets(texts, batch_size, np.random.default_rng([seed, epoch])):
            logits = _logits(model, given, some)
            labels = torch.full(logits.shape[:2], IGNORED)
            for i, row in enumerate(some):
                labels[i, : len(tags[row])] = torch.tensor(tags[row])
            loss = cross_entropy(logits.flatten(0, 1), labels.flatten().to(logits.device), ignore_index=IGNORED)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            on_step(Step(f"dense twin, lr {rate:g}", optimiser.steps, steps, {"loss": loss.item()}))


def _logits(model: DenseTagger, given: _Given, some: Sequence[int]) -> Float[Tensor, "B L C"]:
    batch, device = given.task.texts.batch(some), model.shapes.device
    shapes = given.shapes(some, batch.input_ids.shape[1], len(model.shapes))
    return model(batch.input_ids.to(device), batch.attention_mask.to(device), shapes.to(device))


@torch.no_grad()
def _predict(model: DenseTagger, given: _Given, names: Sequence[str], on_step: OnStep) -> list[tuple[str, ...]]:
    """The tags of each sentence, decoded as the twin's model with words is."""
    model.eval()
    rows = given.rows

    def decided() -> Iterator[tuple[list[Place], Float[Tensor, "N C"]]]:
        done = 0
        for some in length_buckets(rows.texts, 64):
            logits = _logits(model, given, some)
            first = [(i, *token) for i, row in enumerate(some) for token in rows.first_tokens(row)]
            places = [(rows.sentences[some[i]], word) for i, _, word in first]
            yield places, logits[[i for i, _, _ in first], [position for _, position, _ in first]]
            done += len(some)
            on_step(Step("dense twin, tagging", done, len(rows.texts)))

    return rows.decode(decided(), names)
