import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.evaluation.circuit_words import Rankings
from lexical_sae.evaluation.metrics.eraser import EraserCollector
from lexical_sae.evaluation.metrics.removability import RemovabilityCollector
from tests.evaluation.corpora import random_head
from tests.evaluation.planted_circuits import PLANTED, fed, planted_head, planted_texts, some_vectors


def test_erasing_the_planted_words_takes_the_probability_and_random_words_come_last():
    head, (vectors, _) = planted_head(), planted_texts()
    found = fed(EraserCollector(Rankings(head), [0.15]), head, vectors).result()
    without = vectors.clone()
    without[:, [word for words in PLANTED for word in words]] = 0
    full, left = (head(v).logits.softmax(-1) for v in (vectors, without))
    own = torch.arange(len(vectors)), full.argmax(-1)
    for name in ("direct", "leave_one_out"):
        assert found.orders[name].comprehensiveness.mean == pytest.approx((full - left)[own].mean().item(), abs=0.02)
        assert found.orders[name].sufficiency.mean < 0.05
    assert found.comprehensiveness_advantage.low > 0.2
    assert found.orders["random"].sufficiency.low > 0.2


def test_every_budget_is_brute_force_on_the_predicted_class():
    head, vectors = random_head(), some_vectors()
    found = fed(EraserCollector(Rankings(head), [0.2, 0.5]), head, vectors).result().orders["direct"]
    full = head(vectors)
    predicted = full.logits.argmax(-1)
    W = full.W_eff - full.W_eff.mean(1, keepdim=True)
    said = vectors * W[torch.arange(len(vectors)), predicted]
    lost = {0.2: [], 0.5: []}
    for row, (vector, label) in enumerate(zip(vectors, predicted, strict=True)):
        active = vector.nonzero().flatten()
        before = full.logits[row].softmax(-1)[label]
        for fraction, pairs in lost.items():
            k = min(max(1, round(fraction * len(active))), len(active))
            top = active[said[row, active].argsort(descending=True)[:k]]
            only = torch.zeros_like(vector).index_copy(0, top, vector[top])
            pairs.append([float(before - head(v[None]).logits[0].softmax(-1)[label]) for v in (vector - only, only)])
    for budget in found.budgets:
        comprehensiveness, sufficiency = torch.tensor(lost[budget.fraction]).mean(0).tolist()
        assert budget.comprehensiveness.mean == pytest.approx(comprehensiveness, abs=1e-6)
        assert budget.sufficiency.mean == pytest.approx(sufficiency, abs=1e-6)
    assert found.comprehensiveness.mean == pytest.approx(
        sum(budget.comprehensiveness.mean for budget in found.budgets) / 2
    )


def test_planted_words_flip_the_label_and_random_words_do_not():
    head, (vectors, _) = planted_head(), planted_texts()
    found = fed(RemovabilityCollector(Rankings(head), [1, 2, 100]), head, vectors).result()
    one, two, everything = found.removed
    # Two thirds are not the class that wins without words.
    assert found.everything.mean == pytest.approx(2 / 3)
    assert one.orders["direct"].mean == 0
    assert two.orders["direct"].mean > 0.6
    assert two.orders["random"].high < 0.15
    assert two.advantage.low > 0.4
    assert [order.mean for order in everything.orders.values()] == pytest.approx([2 / 3] * 3)


@settings(max_examples=5)
@given(st.integers(0, 500))
def test_the_exact_effect_is_first_on_single_removals(seed):
    head, vectors = random_head(classes=2, seed=seed), some_vectors(seed=seed)
    (one,) = fed(RemovabilityCollector(Rankings(head), [1]), head, vectors).result().removed
    best = one.orders["leave_one_out"].mean
    assert all(order.mean <= best + 1e-12 for order in one.orders.values())
    flips = []
    for vector in vectors:
        label = head(vector[None]).logits.argmax()
        singles = vector - torch.diag(vector)[vector != 0]
        flips.append(len(singles) > 0 and bool((head(singles).logits.argmax(-1) != label).any()))
    assert best == pytest.approx(sum(flips) / len(flips))
