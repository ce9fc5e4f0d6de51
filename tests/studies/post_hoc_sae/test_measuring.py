import json

import numpy as np
import pytest
import torch

from lexical_sae.evaluation.code_probe import CodeProbe, code_matrix, fit_probe
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.studies.post_hoc_sae import reconstruction as word_reconstruction
from lexical_sae.studies.post_hoc_sae.measuring import LabelledCodes, compare_codes
from lexical_sae.studies.post_hoc_sae.reconstruction import rebuild_from_words
from lexical_sae.studies.post_hoc_sae.states import document_states, first_state, mean_state
from tests import tiny


def codes(count: int, seed: int, *, tell: bool = True) -> LabelledCodes:
    """Feature 0 or 1 tells the class, or both are always on; the four others are sampled at random."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 2
    told = torch.nn.functional.one_hot(labels, 2).double() if tell else torch.ones(count, 2, dtype=torch.float64)
    lot = torch.rand(count, 4, generator=generator, dtype=torch.float64)
    return LabelledCodes(SparseCode.from_dense(torch.cat([told, lot * (lot > 0.5)], dim=1)), labels)


def test_removing_from_a_probe_is_reading_the_code_without_the_features():
    code = codes(20, seed=0).code
    probe = CodeProbe(torch.randn(6, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64))
    gone = torch.rand(len(code.ids)) < 0.4
    dense = code.dense()
    dense[code.rows[gone], code.ids[gone]] = 0
    torch.testing.assert_close(probe.logits_without(code, gone), dense @ probe.weights + probe.bias)


def test_contributions_and_bias_sum_to_the_logit_of_the_class():
    code = codes(20, seed=0).code
    probe = CodeProbe(torch.randn(6, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64))
    classes = torch.arange(20) % 3
    sums = torch.zeros(20, dtype=torch.float64).index_add(0, code.rows, probe.contributes_to(code, classes))
    torch.testing.assert_close(sums + probe.bias[classes], probe.logits(code)[torch.arange(20), classes])


@pytest.mark.parametrize("absent", [None, 2], ids=["all classes", "a class without texts"])
def test_a_probe_learns_what_the_code_tells(absent):
    given = codes(60, seed=0)
    probe = fit_probe(given.code, given.labels, 2 if absent is None else 3)
    held = codes(40, seed=1)
    assert torch.equal(probe.logits(held.code).argmax(-1), held.labels)


def test_a_probe_needs_two_classes():
    given = codes(6, seed=0)
    with pytest.raises(ValueError, match="two classes"):
        fit_probe(given.code, torch.zeros(6, dtype=torch.long), 2)


def test_the_matrix_is_the_code():
    code = codes(9, seed=3).code
    np.testing.assert_allclose(code_matrix(code).toarray(), code.dense().numpy())


def test_a_code_that_tells_the_class_is_told_from_one_that_does_not():
    fit, held = codes(200, seed=0), codes(100, seed=1)
    states = torch.randn(100, 5)
    good = compare_codes("good", fit, held, states, states, 2)
    assert good.accuracy.mean == 1.0
    assert good.reconstruction.mean == 1.0
    assert good.active.mean == pytest.approx(float(held.code.counts.double().mean()))
    assert (good.features, good.features_used) == (6, 6)
    assert good.flips[0].strongest.mean > good.flips[0].random.mean + 0.2
    assert good.top_effect.mean > 0.2
    mute = codes(200, seed=0, tell=False), codes(100, seed=1, tell=False)
    bad = compare_codes("mute", *mute, states, states.mean(0).expand_as(states), 2)
    assert bad.accuracy.mean < 0.8
    assert bad.reconstruction.mean == pytest.approx(0, abs=1e-9)
    assert json.loads(json.dumps(good.as_dict()))["flips"][1]["features"] == 3


def test_words_rebuild_states_that_are_linear_in_them_and_no_others():
    fit, held = codes(300, seed=0).code, codes(80, seed=1).code
    weights = torch.randn(6, 4, dtype=torch.float64)
    found, penalty = rebuild_from_words(fit, fit.dense() @ weights, held)
    target = held.dense() @ weights
    left = (found - target).square().sum() / (target - target.mean(0)).square().sum()
    assert float(left) < 0.01
    assert penalty == 0.1
    noise, penalty = rebuild_from_words(fit, torch.randn(300, 4, dtype=torch.float64), held)
    assert float(noise.var(0).mean()) < 0.2
    assert penalty == 100.0


def test_the_decoder_of_words_is_fitted_on_a_bounded_number_of_texts_by_lot(monkeypatch):
    sizes, solve = [], np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda square, target: sizes.append(len(square)) or solve(square, target))
    monkeypatch.setattr(word_reconstruction, "FITTED_AT_MOST", 100)
    fit, held = codes(400, seed=0).code, codes(80, seed=1).code
    weights = torch.randn(6, 4, dtype=torch.float64)
    states = fit.dense() @ weights
    # The first texts tell of nothing: whoever fits on them alone rebuilds nothing.
    states[:100] = 0
    found, _ = rebuild_from_words(fit, states, held)
    assert max(sizes) == 100
    target = held.dense() @ weights
    assert float((found * target).sum() / (found.norm() * target.norm())) > 0.9


def test_the_intercept_costs_words_nothing():
    """Few texts and many words: without an intercept of its own, words would have to make up the mean."""
    generator = torch.Generator().manual_seed(0)
    often = torch.rand(200, generator=generator) ** 3 * 0.4
    weights = torch.randn(200, 32, generator=generator, dtype=torch.float64)

    def drawn(count: int) -> torch.Tensor:
        activations = 2 * torch.rand(count, 200, generator=generator, dtype=torch.float64)
        return activations * (torch.rand(count, 200, generator=generator) < often)

    fit, held = drawn(300), drawn(400)
    found, _ = rebuild_from_words(SparseCode.from_dense(fit), fit @ weights + 3, SparseCode.from_dense(held))
    target = held @ weights + 3
    left = (found - target).square().sum() / (target - target.mean(0)).square().sum()
    assert float(left) < 0.015


def test_states_are_pooled_over_real_tokens_alone():
    states = torch.tensor([[[1.0], [3.0], [9.0]], [[8.0], [2.0], [4.0]]])
    mask = torch.tensor([[True, True, False], [False, True, True]])
    assert mean_state(states, mask).tolist() == [[2.0], [3.0]]
    assert first_state(states, mask).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("pool", ["mean", "cls"])
def test_the_state_of_a_text_does_not_depend_on_its_batch(pool):
    backbone = tiny.backbone()
    texts = ["a good film", "the acting was terrible and the plot boring", "happy"]

    def read(some, size):
        return document_states(backbone.encoder_states, backbone.tokenizer, some, 32, pool, size)

    together = read(texts, 3)
    torch.testing.assert_close(together, torch.cat([read([text], 1) for text in texts]), atol=1e-5, rtol=1e-5)
    assert together.shape == (3, 32)


def test_an_unknown_pool_and_no_text_are_refused():
    backbone = tiny.backbone()
    with pytest.raises(ValueError, match="choose from mean, cls"):
        document_states(backbone.encoder_states, backbone.tokenizer, ["a"], 32, "max")
    with pytest.raises(ValueError, match="at least one"):
        document_states(backbone.encoder_states, backbone.tokenizer, [], 32)
