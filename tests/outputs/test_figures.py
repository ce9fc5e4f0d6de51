"""Figures of labels and numbers, beside those of scikit-learn and scipy."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    mean_absolute_error,
    precision_score,
    recall_score,
    root_mean_squared_error,
)

from lexical_sae.outputs import Labels, Number
from lexical_sae.outputs.figures import paired

NAMES = ("a", "b", "c")


def decisions(seed=0, texts=80):
    draw = np.random.default_rng(seed)
    gold = draw.random((texts, 3)) < (0.5, 0.2, 0.1)
    logits = torch.from_numpy(2.0 * gold + draw.normal(size=gold.shape) - 1)
    return gold.astype(int).tolist(), logits


def test_label_figures_are_those_of_scikit_learn():
    gold, logits = decisions()
    found = Labels().figures(logits, gold, NAMES)
    values, chosen = {one.key: one.value for one in found.figures}, (logits > 0).numpy()
    assert values["macro_f1"] == pytest.approx(f1_score(gold, chosen, average="macro"))
    assert values["micro_f1"] == pytest.approx(f1_score(gold, chosen, average="micro"))
    assert values["exact_match"] == pytest.approx(accuracy_score(gold, chosen)) == np.mean(found.is_correct)
    assert [row.f1 for row in found.per_label] == pytest.approx(f1_score(gold, chosen, average=None))
    assert [row.precision for row in found.per_label] == pytest.approx(precision_score(gold, chosen, average=None))
    assert [row.recall for row in found.per_label] == pytest.approx(recall_score(gold, chosen, average=None))
    assert [row.texts for row in found.per_label] == np.sum(gold, 0).tolist()
    assert all(one.low < one.value < one.high for one in found.figures)


def test_number_figures_are_those_of_scikit_learn_and_scipy():
    draw = np.random.default_rng(0)
    gold = draw.integers(1, 6, 120).astype(float)
    output = Number().fitted(gold.tolist())
    logits = output.targets((gold + draw.normal(size=120)).tolist())[:, None]
    predicted = output.numbers(logits).numpy()
    found = {one.key: one for one in output.figures(logits, gold.tolist(), ("stars",)).figures}
    assert found["mae"].value == pytest.approx(mean_absolute_error(gold, predicted))
    assert found["rmse"].value == pytest.approx(root_mean_squared_error(gold, predicted))
    assert found["spearman"].value == pytest.approx(spearmanr(gold, predicted).statistic)
    assert all(one.low < one.value < one.high for one in found.values())


def test_a_constant_number_has_no_order():
    output = Number(centre=3.0, spread=1.0)
    found = output.figures(torch.zeros(20, 1), list(range(20)), ("stars",))
    assert found.figures[-1].value == 0.0


def test_a_label_that_never_occurs_does_not_count():
    found = Labels().figures(torch.tensor([[1.0, -1.0]] * 6), [(1, 0)] * 6, ("a", "b"))
    assert found.figures[0].value == 1.0


def test_a_paired_interval_is_narrower_than_those_of_the_two():
    gold, logits = decisions(texts=200)
    worse = logits.clone()
    worse[:20] -= 1
    ours, theirs = Labels().measure(logits, gold), Labels().measure(worse, gold)
    mean, low, high = paired(ours, theirs, 200, ["micro_f1"])["micro_f1"]
    own = Labels().figures(logits, gold, NAMES).figures[1]
    assert mean > 0
    assert high - low < own.high - own.low
    assert paired(ours, ours, 200, ["micro_f1"])["micro_f1"] == (0, 0, 0)
