import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.models.layers.activation import DReLU, GatedJumpReLU, JumpReLUGate
from tests.strategies import tensors

SIZE = 6
GATES = {
    "drelu": DReLU.Config(initial_threshold=-0.4),
    "gated": GatedJumpReLU.Config(initial_threshold=0.5),
    "gated_negative": GatedJumpReLU.Config(initial_threshold=-0.5),
    "jump_sigmoid": JumpReLUGate.Config(initial_threshold=0.5),
    "jump_rectangle": JumpReLUGate.Config(initial_threshold=0.5, kernel="rectangle", bandwidth=1.0),
    "with_offset": JumpReLUGate.Config(initial_threshold=0.5, offset=True),
}


def build(name, dtype=torch.float64):
    gate = GATES[name].build(SIZE).to(dtype)
    with torch.no_grad():
        for parameter in gate.parameters():
            parameter.add_(torch.linspace(-0.3, 0.3, SIZE, dtype=dtype))
    return gate.eval()


@pytest.mark.parametrize("name", GATES)
@given(z=tensors(5, SIZE))
def test_gating_the_maximum_equals_the_maximum_of_the_gated(name, z):
    gate = build(name)
    assert torch.equal(gate(z.amax(0)).activated, gate(z).activated.amax(0))


@pytest.mark.parametrize("name", GATES)
@given(z=tensors(5, SIZE))
def test_mask_is_one_exactly_where_the_word_is_active(name, z):
    output = build(name)(z)
    assert torch.equal(output.gate_mask == 1, output.activated > 0)
    assert ((output.gate_mask == 0) | (output.gate_mask == 1)).all()
    assert ((output.open_prob >= 0) & (output.open_prob <= 1)).all()


@pytest.mark.parametrize("name", GATES)
@given(z=tensors(5, SIZE))
def test_a_word_is_active_exactly_above_its_opening_logit(name, z):
    gate = build(name)
    gate.close(torch.tensor([False, True, False, False, False, False]))
    near = (z - gate.opening_logits()).abs() < 1e-9
    assert torch.equal((gate(z).activated > 0)[~near], (z > gate.opening_logits())[~near])


@pytest.mark.parametrize("name", GATES)
@given(z=tensors(4, SIZE))
def test_gate_of_some_words_equals_those_columns_of_the_gate_of_all(name, z):
    gate = build(name)
    gate.close(torch.tensor([False, True, False, False, False, False]))
    words = torch.tensor([[5, 1, 0], [2, 2, 3], [0, 4, 1], [3, 5, 5]])
    found, whole = gate(z.gather(1, words), words), gate(z)
    for some, every in zip(vars(found).values(), vars(whole).values(), strict=True):
        torch.testing.assert_close(some, every.gather(1, words))


@pytest.mark.parametrize("name", GATES)
def test_a_gate_unpacks_as_strength_and_open_probability(name):
    z = torch.tensor([[-2.0, -0.1, 0.2, 0.6, 1.5, 4.0]], dtype=torch.float64)
    gate = build(name)
    whole = gate(z)
    out, gate_probs = whole
    assert out is whole[0] is whole.activated
    assert gate_probs is whole[-1] is whole.open_prob
    assert len(whole) == 2
    if name == "gated":
        assert torch.equal(out, z.relu() * (z > gate.theta))
        torch.testing.assert_close(gate_probs, (z - gate.theta).sigmoid())


@pytest.mark.parametrize("name", GATES)
def test_at_its_threshold_a_word_is_closed(name):
    gate = build(name)
    offset = 0 if gate.offset is None else gate.offset
    at_threshold = gate.thresholds().detach() - offset
    # Rounding of (threshold - offset) + offset may land on either side; nudge below by one step.
    output = gate(torch.nextafter(at_threshold, torch.full_like(at_threshold, -9.0)))
    assert (output.activated == 0).all()
    if gate.offset is None:
        assert (gate(at_threshold).activated == 0).all()


@pytest.mark.parametrize("name", GATES)
def test_minus_infinity_is_closed_and_sends_no_gradient(name):
    gate = build(name).train()
    z = torch.full((2, SIZE), -torch.inf, dtype=torch.float64)
    z[0, :3] = 1.0
    z.requires_grad_()
    output = gate(z)
    assert (output.activated[1] == 0).all()
    assert (output.open_prob[1] == 0).all()
    (output.activated.sum() + output.open_prob.sum()).backward()
    assert z.grad.isfinite().all()
    assert (z.grad[1] == 0).all()
    assert all(p.grad.isfinite().all() for p in gate.parameters())


@pytest.mark.parametrize("name", GATES)
@given(z=tensors(4, SIZE, low=-50, high=50, dtype=torch.float32))
def test_closed_word_is_bitwise_zero_whatever_the_logit(name, z):
    gate = build(name, torch.float32)
    closed = torch.zeros(SIZE, dtype=torch.bool)
    closed[2] = True
    before = gate(z)
    gate.close(closed)
    after = gate(z)
    for field_before, field_after in zip(before, after, strict=True):
        assert (field_after[:, 2] == 0).all()
        assert not torch.signbit(field_after[:, 2]).any()
        assert torch.equal(field_after[:, ~closed], field_before[:, ~closed])


@pytest.mark.parametrize("name", GATES)
def test_thresholds_and_logits_receive_a_gradient(name):
    gate = build(name).train()
    z = torch.linspace(-1, 2, 40 * SIZE, dtype=torch.float64).reshape(40, SIZE).requires_grad_()
    gate(z).activated.sum().backward()
    assert z.grad.abs().sum() > 0
    assert all(p.grad.abs().sum() > 0 for p in gate.parameters())


@given(z=tensors(7, SIZE), width=st.floats(0.1, 2))
def test_jumprelu_gradients_are_those_of_the_paper(z, width):
    gate = JumpReLUGate.Config(initial_threshold=0.5, bandwidth=width).build(SIZE).double().eval()
    z = z.clone().requires_grad_()
    pull_y, pull_gate = torch.full_like(z, 0.7), torch.full_like(z, -0.2)
    output = gate(z)
    torch.autograd.backward([output.activated, output.gate_mask], [pull_y, pull_gate])
    with torch.no_grad():
        r, theta = z.relu(), gate.log_theta.exp()
        p = ((r - theta) / width).sigmoid()
        expected = (-(pull_y * r + pull_gate) * p * (1 - p) * theta / width).sum(0)
        torch.testing.assert_close(gate.log_theta.grad, expected)
        assert torch.equal(z.grad, pull_y * (z > theta))


@given(z=tensors(7, SIZE))
def test_gated_jumprelu_uses_the_sigmoid_for_the_step_in_logit_and_threshold(z):
    gate = build("gated")
    z = z.clone().requires_grad_()
    gate(z).activated.sum().backward()
    with torch.no_grad():
        p = (z - gate.theta).sigmoid()
        kernel = p * (1 - p)
        is_open = (z > gate.theta) & (z > 0)
        torch.testing.assert_close(z.grad, is_open + z.relu() * kernel)
        torch.testing.assert_close(gate.theta.grad, -(z.relu() * kernel).sum(0))


@given(z=tensors(7, SIZE, low=-4, high=6))
def test_open_probability_is_the_integral_of_the_kernel(z):
    """Sigmoid: s(u). Rectangle of width one: u + 1/2, cut to [0, 1]. With u = (z - theta) / width."""
    width, theta = 0.7, 2.0
    u = (z - theta) / width
    expected = {"sigmoid": 1 / (1 + torch.exp(-u)), "rectangle": torch.clamp(u + 0.5, 0, 1)}
    inside = (z > theta - width / 2) & (z < theta + width / 2)
    p = expected["sigmoid"]
    slope = {"sigmoid": p * (1 - p) / width, "rectangle": inside / width}
    for kernel in ("sigmoid", "rectangle"):
        gate = JumpReLUGate.Config(initial_threshold=theta, bandwidth=width, kernel=kernel).build(SIZE).double().eval()
        leaf = z.clone().requires_grad_()
        found = gate(leaf).open_prob
        torch.testing.assert_close(found, expected[kernel], atol=1e-6, rtol=1e-6)
        found.sum().backward()
        torch.testing.assert_close(leaf.grad, slope[kernel].double(), atol=1e-6, rtol=1e-6)
        # The step's own surrogate uses the same kernel.
        gate.zero_grad()
        gate(z).gate_mask.sum().backward()
        pull = -(slope[kernel].double() * (z > 0)).sum(0) * theta
        if (z > 0).all():
            torch.testing.assert_close(gate.log_theta.grad, pull, atol=1e-6, rtol=1e-6)


def test_words_far_below_zero_are_not_almost_open():
    gate = JumpReLUGate.Config(initial_threshold=0.1, kernel="rectangle").build(1000).train()
    z = torch.full((4, 1000), -8.0)
    z[:, :40] = 12.0
    output = gate(z)
    assert gate.logit_spread > 2
    assert output.open_prob.sum(-1).tolist() == [40.0] * 4


@given(z=tensors(5, SIZE))
def test_drelu_open_probability_is_the_sigmoid_of_the_excess(z):
    gate = build("drelu")
    torch.testing.assert_close(gate(z).open_prob, 1 / (1 + torch.exp(-(z - gate.theta))))


def test_kernel_width_follows_the_spread_of_real_logits_not_of_padding():
    gate = JumpReLUGate.Config(bandwidth=0.1).build(1000).train()
    closed = torch.zeros(1000, dtype=torch.bool)
    closed[500:] = True
    gate.close(closed)
    z = torch.randn(64, 1000) * 7
    z[:, 500:] = 1000.0
    z[32:] = -torch.inf
    gate(z)
    assert gate.logit_spread.item() == pytest.approx(7, rel=0.02)
    gate(z * 2)
    assert 7 < gate.logit_spread.item() < 7.3
    gate.eval()
    gate(z * 100)
    assert gate.logit_spread.item() < 7.3


def test_half_precision_logits_are_gated_in_full_precision():
    gate = build("jump_sigmoid", torch.float32)
    assert gate(torch.ones(2, SIZE, dtype=torch.bfloat16)).activated.dtype == torch.float32
