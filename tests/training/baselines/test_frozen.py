from dataclasses import replace

import numpy as np
import pytest
import torch

from lexical_sae.config.load import build_config
from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.runs.measuring.baselines import cheap_baselines
from lexical_sae.training.baselines import frozen as room
from lexical_sae.training.baselines.frozen import (
    STRENGTHS,
    FrozenEncoder,
    cross_validated,
    frozen_baseline,
    mean_states,
)
from lexical_sae.training.folds import stratified_folds
from tests import tiny


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(tiny.saved_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture
def dataset():
    def split(count):
        texts = [f"{text} {'!' * i}" for i in range(count) for text in (*tiny.GOOD, *tiny.BAD)]
        return TextSplit(tuple(texts), (1, 1, 1, 1, 0, 0, 0, 0) * count)

    return TextDataset("reviews", ("negative", "positive"), split(4), split(1), split(1))


def test_mean_states_are_those_of_the_real_tokens_alone(encoder):
    backbone = load_backbone(encoder).eval()
    texts = ["good film", "the acting was wonderful and the plot great"]
    found = mean_states(backbone, texts, 64)
    for row, text in enumerate(texts):
        ids = torch.tensor([backbone.tokenizer(text)["input_ids"]])
        with torch.no_grad():
            expected = backbone.encoder_states(ids, torch.ones_like(ids).bool())[0].mean(0)
        torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=1e-5)


def test_it_learns_what_the_encoder_tells_apart_and_keeps_every_answer(encoder, dataset):
    steps = []
    scores = frozen_baseline(dataset, FrozenEncoder(encoder, max_length=32, device="cpu"), on_step=steps.append)
    assert scores.accuracy == 1.0
    assert len(scores.is_correct) == len(dataset.test)
    assert scores.setting in scores.validation
    assert steps[-1].done == steps[-1].total


def test_neither_validation_nor_test_texts_decide_anything(encoder, dataset):
    def turned(split):
        return TextSplit(split.texts, tuple(1 - label for label in split.labels))

    usual = frozen_baseline(dataset, FrozenEncoder(encoder, max_length=32, device="cpu"))
    other = replace(dataset, validation=turned(dataset.validation), test=turned(dataset.test))
    scores = frozen_baseline(other, FrozenEncoder(encoder, max_length=32, device="cpu"))
    assert scores.accuracy == 0.0
    assert (scores.setting, scores.validation) == (usual.setting, usual.validation)


def test_cross_validation_prefers_a_strong_prior_where_columns_are_noise():
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 2, 200)
    columns = draw.normal(size=(200, 150))
    columns[:, 0] += 2.0 * labels
    found = cross_validated(columns, labels)
    assert [*found] == [*STRENGTHS]
    assert max(found, key=lambda strength: found[strength]) < 0.1
    assert max(found.values()) > found[STRENGTHS[-1]] + 0.02


def test_folds_are_stratified_and_the_same_every_time():
    labels = np.array([0] * 50 + [1] * 10 + [2] * 3)
    folds = stratified_folds(labels, np.random.default_rng(0))
    np.testing.assert_array_equal(folds, stratified_folds(labels, np.random.default_rng(0)))
    assert [np.bincount(folds[labels == label]).max() for label in range(3)] == [10, 2, 1]
    sizes = np.bincount(folds)
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("labels", [[0, 1], [0, 0, 0, 0, 1]])
def test_where_there_are_too_few_texts_to_choose_the_usual_prior_is_taken(labels, encoder):
    assert cross_validated(np.eye(len(labels)), np.array(labels)) == {}
    texts = tuple((tiny.GOOD if label else tiny.BAD)[i % 4] for i, label in enumerate(labels))
    few = TextSplit(texts, tuple(labels))
    scores = frozen_baseline(
        TextDataset("few", ("a", "b"), few, few, few), FrozenEncoder(encoder, max_length=32, device="cpu")
    )
    assert (scores.setting, scores.validation) == (f"C={room.USUAL_STRENGTH:g}", {})


def test_cheap_baselines_are_two_with_their_cost(encoder, dataset, tmp_path):
    config = build_config({"output_dir": str(tmp_path), "model": {"name": encoder, "max_length": 32}})
    runs = cheap_baselines(config, dataset, 7, "cpu")
    assert [run.scores.name for run in runs] == ["TF-IDF", "frozen encoder"]
    assert all(run.seed == 7 and run.cost["seconds"] >= 0 for run in runs)
