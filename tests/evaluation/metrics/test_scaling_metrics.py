import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from lexical_sae.data.batches import tokenize
from lexical_sae.evaluation.circuit_words import Rankings
from lexical_sae.evaluation.metrics.scaling_metrics import (
    AblationSparsityCollector,
    compute_ablation_sparsity,
    compute_downstream_loss,
    language_figures,
)
from lexical_sae.evaluation.metrics.word_budget import FrontierCollector
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.sparse_code import SparseCode
from tests import tiny
from tests.evaluation.corpora import TEXTS, random_head
from tests.evaluation.planted_circuits import fed, planted_head, planted_texts, some_vectors

LABELS = [row % 3 for row in range(len(TEXTS))]


def test_evidence_on_equal_words_counts_the_words():
    effects, rows = torch.tensor([3.0, -3.0, 5.0]), torch.tensor([0, 0, 2])
    found = compute_ablation_sparsity(effects, rows, 3)
    assert found[[0, 2]].tolist() == [2, 1]
    assert found[1].isnan()


def test_planted_evidence_lies_on_two_words():
    head, (vectors, _) = planted_head(), planted_texts()
    found = fed(AblationSparsityCollector(Rankings(head)), head, vectors).result()
    assert 2 < found.contributions.mean < 2.6
    assert found.effects.mean == pytest.approx(found.contributions.mean, abs=0.1)


@pytest.mark.parametrize("offset", [None, 0.5, -0.5])
def test_a_gate_that_holds_nothing_back_costs_nothing(offset):
    model = tiny.model(ModelConfig(gate={"kind": "drelu", "offset": offset is not None}))
    if offset is not None:
        with torch.no_grad():
            model.gate.offset.fill_(offset)
    found = compute_downstream_loss(model, TEXTS, LABELS)
    assert found.delta.mean == found.kl.mean == 0
    with torch.no_grad():
        model.gate.theta.fill_(2.0)
    closed = compute_downstream_loss(model, TEXTS, LABELS)
    assert closed.kl.mean > 1e-3
    assert closed.ungated_loss.mean == pytest.approx(found.loss.mean, abs=1e-6)
    assert closed.ungated_words.mean == found.ungated_words.mean


@pytest.mark.parametrize("pool", ["max", "attention"])
def test_losses_are_those_of_the_models_own_pooling(pool):
    model = tiny.model(ModelConfig(gate={"kind": "drelu", "initial_threshold": 1.0}, pool=pool))
    found = compute_downstream_loss(model, TEXTS, LABELS, batch_size=3)
    losses, free = [], []
    with torch.no_grad():
        for text, label in zip(TEXTS, LABELS, strict=True):
            batch = tokenize(model.tokenizer, [text], 64).batch([0])
            given, truth = (batch.input_ids, batch.attention_mask), torch.tensor([label])
            losses.append(float(cross_entropy(model.classify_document(*given).logits, truth)))
            ungated = model.saturation(model.encode(*given).logits.relu()) * ~model.gate.closed
            free.append(float(cross_entropy(model.classify(ungated, given[1]).logits, truth)))
    assert found.loss.mean == pytest.approx(sum(losses) / len(losses), abs=1e-5)
    assert found.ungated_loss.mean == pytest.approx(sum(free) / len(free), abs=1e-5)
    assert found.delta.mean == pytest.approx(found.loss.mean - found.ungated_loss.mean)


def test_hidden_tokens_are_guessed_from_the_rest():
    model = tiny.model(ModelConfig(gate="drelu"))
    tokens = tokenize(model.tokenizer, TEXTS, 64)
    rows = [0, 2, 4]
    batch = tokens.batch(rows)
    with torch.no_grad():
        found = language_figures(model, batch, rows, seed=3)
        alone = {row: language_figures(model, tokens.batch([row]), [row], seed=3) for row in rows}
    assert int(found["hidden"].sum()) > 0
    for name, values in found.items():
        expected = torch.cat([alone[row][name] for row in rows])
        torch.testing.assert_close(values, expected, atol=1e-4, rtol=1e-4)
    result = compute_downstream_loss(model, TEXTS, LABELS).language
    assert result.uniform == pytest.approx(math.log(len(model.dimensions)))
    assert result.raw.mean != result.gated.mean


def test_what_is_closed_cannot_guess():
    model = tiny.model(ModelConfig(gate="drelu"))
    model.gate.close(torch.ones(len(model.dimensions), dtype=torch.bool))
    language = compute_downstream_loss(model, TEXTS, LABELS).language
    assert language.gated.mean == pytest.approx(language.uniform, abs=1e-5)
    assert language.raw.mean != pytest.approx(language.uniform, abs=1e-2)


def test_the_strongest_words_decide_alone():
    head, vectors = random_head(), some_vectors()
    predicted = head(vectors).logits.argmax(-1)
    # Every third label is another than the prediction, so that being right is not the same as staying the same.
    labels = torch.where(torch.arange(len(predicted)) % 3 == 0, (predicted + 1) % 3, predicted)
    few, all_words = fed(FrontierCollector(head, [2, 9]), head, vectors, labels.tolist()).result()
    kept = SparseCode.from_dense(vectors).keep_strongest(2).dense()
    alone = head(kept).logits.argmax(-1)
    assert few.agreement.mean == pytest.approx((alone == predicted).double().mean().item())
    assert few.accuracy.mean == pytest.approx((alone == labels).double().mean().item())
    assert few.accuracy.mean != few.agreement.mean
    assert few.active_words.mean == pytest.approx((kept != 0).sum(1).double().mean().item())
    assert all_words.agreement.mean == 1
