import dataclasses

import pytest
import torch
from hypothesis import given

from lexical_sae.mechanistic.attribution import (
    attribute,
    attribute_centered,
    attribute_code,
    code_identity_error,
    compute_attribution_tensor,
    identity_error,
)
from lexical_sae.models.circuit_state import SparseCircuitState, compute_active_slice_weff
from lexical_sae.models.heads import UNDECIDED, BcosHead, ReluHead
from lexical_sae.models.sparse_code import SparseCode
from tests.strategies import sparse_vectors

SIZE, CLASSES = 12, 3
HEADS = {
    "relu": ReluHead.Config(hidden_units=7),
    "bcos": BcosHead.Config(hidden_units=7),
    "bcos-3": BcosHead.Config(hidden_units=7, layers=3),
    "bcos-5": BcosHead.Config(hidden_units=7, layers=5, exponent=1.5),
}
BCOS = [kind for kind in HEADS if kind != "relu"]


def build(kind, dtype=torch.float64):
    torch.manual_seed(3)
    head = HEADS[kind].build(SIZE, CLASSES).to(dtype)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return head


@pytest.mark.parametrize("kind", HEADS)
@given(vectors=sparse_vectors(5, SIZE))
def test_attributions_and_bias_sum_to_every_logit(kind, vectors):
    state = build(kind)(vectors)
    logits, sparse_vector, W_eff, b_eff = state
    total = torch.einsum("bv,bcv->bc", sparse_vector, W_eff) + b_eff
    torch.testing.assert_close(total, logits, atol=1e-10, rtol=1e-10)
    assert (identity_error(state) <= 1e-10).all()


@pytest.mark.parametrize("kind", HEADS)
@given(vectors=sparse_vectors(5, SIZE, dtype=torch.float32))
def test_identity_holds_in_single_precision(kind, vectors):
    assert (identity_error(build(kind, torch.float32)(vectors)) <= 1e-5).all()


def test_relu_head_is_the_two_layer_network_of_the_formula():
    head = build("relu")
    s = torch.rand(4, SIZE, dtype=torch.float64)
    hidden = torch.relu(s @ head.word_vectors + head.hidden_bias)
    torch.testing.assert_close(head(s).logits, hidden @ head.class_weights.T + head.class_bias)


def test_relu_head_effective_weights_are_its_gradient():
    head = build("relu")
    s = torch.rand(SIZE, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: head(x).logits, s)
    torch.testing.assert_close(head(s).W_eff, jacobian)


@pytest.mark.parametrize("kind", BCOS)
def test_bcos_head_and_its_effective_weights_match_the_layer_formula_computed_by_hand(kind):
    head, config = build(kind), HEADS[kind]
    s = torch.rand(SIZE, dtype=torch.float64)
    x, product = s, torch.eye(SIZE, dtype=torch.float64)
    layers = [head.word_weights.T, *head.hidden_weights, head.class_weights]
    assert len(layers) == config.layers
    for weights in layers:
        dynamic = torch.stack(
            [((w @ x) / w.norm() / x.norm()).abs() ** (config.exponent - 1) * w / w.norm() for w in weights]
        )
        x, product = dynamic @ x, dynamic @ product
    state = head(s)
    torch.testing.assert_close(state.logits, x, atol=1e-14, rtol=1e-10)
    torch.testing.assert_close(state.W_eff, product, atol=1e-14, rtol=1e-10)
    assert torch.equal(state.b_eff, torch.zeros(CLASSES, dtype=torch.float64))


@pytest.mark.parametrize("kind", BCOS)
def test_every_layer_of_a_bcos_head_learns_and_a_text_without_words_spoils_nothing(kind):
    head = build(kind)
    s = torch.rand(3, SIZE, dtype=torch.float64)
    s[1] = 0
    head(s).logits.square().sum().backward()
    for parameter in head.parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.norm() > 0


def test_a_bcos_head_of_two_layers_is_saved_as_before_and_fewer_are_refused():
    assert set(build("bcos").state_dict()) == {"word_weights", "class_weights"}
    with pytest.raises(ValueError, match="layers"):
        BcosHead.Config(layers=1)


@pytest.mark.parametrize("kind", BCOS)
def test_bcos_attribution_is_exact_but_not_gradient_times_input(kind):
    head = build(kind)
    s = torch.rand(SIZE, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: head(x).logits, s)
    assert not torch.allclose(head(s).W_eff, jacobian, rtol=1e-2)


@pytest.mark.parametrize("kind", HEADS)
def test_a_text_without_words_gets_the_bias(kind):
    state = build(kind)(torch.zeros(2, SIZE, dtype=torch.float64))
    torch.testing.assert_close(state.logits, state.b_eff)
    assert state.logits.isfinite().all()


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_any_leading_dimensions_work(kind, leading):
    head = build(kind)
    s = torch.rand(*leading, SIZE, dtype=torch.float64)
    state = head(s)
    assert state.W_eff.shape == (*leading, CLASSES, SIZE)
    assert identity_error(state).shape == leading
    one_by_one = torch.stack([head(row).logits for row in s.reshape(-1, SIZE)]).reshape(*leading, CLASSES)
    torch.testing.assert_close(state.logits, one_by_one)


@pytest.mark.parametrize("kind", HEADS)
def test_parts_of_the_effective_weights_equal_the_dense_matrix(kind):
    state = build(kind)(torch.rand(4, SIZE, dtype=torch.float64))
    classes, words = torch.tensor([0, 2, 1, 2]), torch.tensor([1, 5, 6])
    torch.testing.assert_close(state.effective_rows(classes), state.W_eff[torch.arange(4), classes])
    torch.testing.assert_close(state.effective_columns(words), state.W_eff[..., words])
    expected = compute_attribution_tensor(state.sparse_vector, state.W_eff, classes)
    torch.testing.assert_close(attribute(state, classes), expected)


@given(vectors=sparse_vectors(4, SIZE))
def test_active_slice_holds_the_words_active_anywhere_and_no_other(vectors):
    state = build("relu")(vectors)
    for weights in (state.W_eff, state):
        W_active, active_ids = compute_active_slice_weff(state.sparse_vector, weights)
        assert active_ids.tolist() == sorted({j for row in vectors for j in row.nonzero().flatten().tolist()})
        torch.testing.assert_close(W_active, state.W_eff[:, :, active_ids])


@pytest.mark.parametrize("kind", HEADS)
@given(vectors=sparse_vectors(5, SIZE))
def test_reading_the_active_words_alone_gives_the_same_decision_and_attributions(kind, vectors):
    head = build(kind)
    dense, sparse = head(vectors), head.read(SparseCode.from_dense(vectors))
    torch.testing.assert_close(sparse.logits, dense.logits, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(sparse.b_eff, dense.b_eff, atol=1e-12, rtol=1e-12)
    classes = torch.tensor([0, 1, 2, 1, 0])
    rows, ids = vectors.nonzero(as_tuple=True)
    for centered, reference in ((False, attribute), (True, attribute_centered)):
        expected = reference(dense, classes)[rows, ids]
        torch.testing.assert_close(attribute_code(sparse, classes, centered=centered), expected, atol=1e-12, rtol=1e-12)
    assert (code_identity_error(sparse) <= 1e-10).all()


@pytest.mark.parametrize("wrong_class", range(CLASSES))
def test_sparse_identity_error_sees_a_wrong_decomposition_of_any_class(wrong_class):
    state = build("relu").read(SparseCode.from_dense(torch.rand(3, SIZE, dtype=torch.float64)))
    b_eff = state.b_eff.clone()
    b_eff[1, wrong_class] += 0.5
    broken = SparseCircuitState(state.logits, state.code, state.readout, state.word_vectors, b_eff)
    error = code_identity_error(broken)
    assert error[1] > 1e-3
    assert error[0] < 1e-10


def test_attribution_of_the_worked_example():
    W_eff = torch.tensor([[[1.0, 1.0], [3.0, 5.0]]])
    found = compute_attribution_tensor(torch.tensor([[2.0, 0.0]]), W_eff, torch.tensor([1]))
    assert found.tolist() == [[6.0, 0.0]]


def test_centered_contributions_do_not_move_when_all_classes_do():
    head = build("relu")
    s, classes = torch.rand(4, SIZE, dtype=torch.float64), torch.tensor([0, 1, 2, 0])
    raw, centered = attribute(head(s), classes), attribute_centered(head(s), classes)
    with torch.no_grad():
        head.class_weights.add_(torch.randn(7, dtype=torch.float64))
    assert not torch.allclose(attribute(head(s), classes), raw, rtol=0.1)
    torch.testing.assert_close(attribute_centered(head(s), classes), centered)


def test_centered_contribution_of_two_classes_is_half_the_difference():
    torch.manual_seed(0)
    head = ReluHead.Config(hidden_units=5).build(SIZE, 2)
    state = head(torch.rand(3, SIZE))
    first, second = (attribute(state, torch.full((3,), c)) for c in (0, 1))
    torch.testing.assert_close(attribute_centered(state, torch.zeros(3, dtype=torch.long)), (first - second) / 2)


@pytest.mark.parametrize("wrong_class", range(CLASSES))
def test_identity_error_sees_a_wrong_decomposition_of_any_class(wrong_class):
    state = build("relu")(torch.rand(3, SIZE, dtype=torch.float64))
    b_eff = state.b_eff.clone()
    b_eff[:, wrong_class] += 0.5
    broken = dataclasses.replace(state, b_eff=b_eff)
    assert (identity_error(broken) > 1e-3).all()


@pytest.mark.parametrize("kind", HEADS)
def test_heads_compute_in_full_precision_while_autocast_runs(kind):
    head, s = build(kind, torch.float32), torch.rand(3, SIZE)
    expected = head(s).logits
    with torch.autocast("cpu", dtype=torch.float16):
        found = head(s.half().float()).logits
        same = head(s).logits
    assert found.dtype == torch.float32
    assert torch.equal(same, expected)


def test_no_tensor_of_hidden_by_vocabulary_per_text_is_made():
    head = ReluHead.Config(hidden_units=64).build(4000, 2)
    s = torch.zeros(16, 4000)
    biggest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal biggest
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                biggest = max(biggest, result.numel())
            return result

    with Watch():
        attribute(head(s), torch.zeros(16, dtype=torch.long))
    assert biggest <= 64 * 4000  # the word vectors themselves; [B, H, V] would be 16 times that


def test_word_vectors_start_near_each_other_for_words_that_are_near():
    torch.manual_seed(0)
    head = ReluHead.Config(hidden_units=64, start_from_embeddings=True).build(200, 2)
    embeddings = torch.randn(200, 32)
    embeddings[1] = embeddings[0] + 0.05 * torch.randn(32)
    head.start_from(embeddings)
    cosine = torch.nn.functional.cosine_similarity
    near, far = cosine(*head.word_vectors[:2], dim=0), cosine(head.word_vectors[0], head.word_vectors[2:], dim=1)
    assert near > 0.95
    assert far.abs().mean() < 0.3
    plain = ReluHead.Config(hidden_units=64).build(200, 2)
    before = plain.word_vectors.detach().clone()
    plain.start_from(embeddings)
    assert torch.equal(plain.word_vectors, before)


@pytest.mark.parametrize(("activation", "is_changed"), [(0.01, False), (20.0, True)])
def test_a_head_that_has_learned_nothing_is_not_sure(activation, is_changed):
    head = ReluHead.Config(hidden_units=16).build(50, 3)
    vectors = activation * torch.rand(40, 50)
    before = head.class_weights.detach().clone()
    head.calm(vectors)
    logits = head(vectors).logits
    size = (logits - logits.mean(-1, keepdim=True)).square().mean().sqrt().item()
    assert (not torch.equal(head.class_weights, before)) == is_changed
    assert size <= UNDECIDED + 1e-5
    assert size == pytest.approx(UNDECIDED) or not is_changed


def test_calming_a_head_with_no_text_changes_nothing():
    head = ReluHead.Config(hidden_units=4).build(5, 2)
    before = head.class_weights.detach().clone()
    head.calm(torch.zeros(0, 5))
    assert torch.equal(head.class_weights, before)
