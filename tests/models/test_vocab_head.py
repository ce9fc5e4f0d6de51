import contextlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from lexical_sae.models.layers import vocab_head
from lexical_sae.models.layers.activation import DReLU, GatedJumpReLU, JumpReLUGate
from lexical_sae.models.layers.neighbourhood import near_logits
from lexical_sae.models.layers.vocab_head import can_open, max_logits, reference_max_logits, winning_positions

GATES = [
    DReLU.Config(initial_threshold=-0.5),
    DReLU.Config(initial_threshold=1.0),
    GatedJumpReLU.Config(initial_threshold=1.0),
    JumpReLUGate.Config(initial_threshold=1.0, kernel="rectangle", bandwidth=0.5),
    JumpReLUGate.Config(initial_threshold=1.0),
]


@contextlib.contextmanager
def constants(**values):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(vocab_head, name, value)
        yield


@st.composite
def problems(draw, dtype=torch.float64):
    """Hidden states, decoder and a ragged mask: left or right padded, some rows empty, some positions tied."""
    batch, length, width, size = draw(st.tuples(*[st.integers(1, n) for n in (4, 6, 5, 40)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    hidden = torch.randn(batch, length, width, generator=generator, dtype=dtype)
    weight = torch.randn(size, width, generator=generator, dtype=dtype)
    if draw(st.booleans()) and length > 1:
        # Whole numbers: products are exact, so positions tie whatever order a product is summed in.
        hidden, weight = hidden.round(), weight.round()
        hidden[:, 1] = hidden[:, 0]
    bias = torch.randn(size, generator=generator, dtype=dtype)
    lengths = torch.randint(0, length + 1, (batch,), generator=generator)
    mask = torch.arange(length)[None] < lengths[:, None]
    return hidden, weight, bias, mask.flip(1) if draw(st.booleans()) else mask


@given(problems())
def test_values_equal_the_reference(problem):
    torch.testing.assert_close(max_logits(*problem), reference_max_logits(*problem), atol=1e-12, rtol=1e-12)


@given(problems(dtype=torch.float32))
def test_support_equals_the_reference_in_single_precision(problem):
    fused, plain = max_logits(*problem), reference_max_logits(*problem)
    torch.testing.assert_close(fused, plain, atol=2e-6, rtol=1e-6)
    far = (plain - 0.5).abs() > 1e-4
    assert torch.equal((fused > 0.5)[far], (plain > 0.5)[far])


@given(problems(), st.sampled_from(GATES), st.booleans(), st.sampled_from([0.0, 1.0]))
def test_gradients_through_any_gate_equal_the_reference(problem, gate_config, saturate, dense_share):
    hidden, weight, bias, mask = problem
    gradients = []
    for function in (max_logits, reference_max_logits):
        leaves = [tensor.clone().requires_grad_() for tensor in (hidden, weight, bias)]
        gate = gate_config.build(weight.shape[0]).double().eval()
        # A share of zero forces whole products, of one gathered pairs.
        with constants(DENSE_SHARE=dense_share):
            output = gate(function(*leaves, mask))
            activation = output.activated.log1p() if saturate else output.activated
            pull = torch.linspace(0.5, 2, weight.shape[0], dtype=hidden.dtype)
            (activation * pull).sum().add(0.1 * output.open_prob.sum()).backward()
        gradients.append([leaf.grad for leaf in leaves] + [p.grad for p in gate.parameters()])
    for fused, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, plain, atol=1e-11, rtol=1e-11)


@settings(max_examples=20)
@given(problems(), st.sampled_from([0.0, 1.0]))
def test_chunks_do_not_change_the_answer(problem, dense_share):
    hidden, weight, bias, mask = problem
    results = []
    for chunk in (3, 10_000):
        leaves = [tensor.clone().requires_grad_() for tensor in (hidden, weight, bias)]
        with constants(VOCABULARY_CHUNK=chunk, PAIR_CHUNK=chunk, DENSE_SHARE=dense_share):
            pooled = max_logits(*leaves, mask)
            pooled.relu().square().sum().backward()
        results.append([pooled, *(leaf.grad for leaf in leaves)])
    for small, large in zip(*results, strict=True):
        torch.testing.assert_close(small, large, atol=1e-12, rtol=1e-12)


@given(problems())
def test_winner_is_the_first_position_that_reaches_the_maximum(problem):
    hidden, weight, bias, mask = problem
    words = torch.arange(weight.shape[0]).expand(len(hidden), -1)
    winners = winning_positions(hidden, weight, mask, words)
    for row in mask.any(1).nonzero().flatten().tolist():
        for word in range(weight.shape[0]):
            logits = [
                float(hidden[row, n] @ weight[word]) if mask[row, n] else -torch.inf for n in range(mask.shape[1])
            ]
            best = max(logits)
            near = [n for n, value in enumerate(logits) if value >= best - 1e-12]
            assert winners[row, word].item() in near
            assert mask[row, winners[row, word]]


def test_of_tied_positions_the_first_receives_the_gradient():
    hidden = torch.ones(1, 3, 2, requires_grad=True)
    weight, bias = torch.ones(1, 2), torch.zeros(1)
    max_logits(hidden, weight, bias, torch.ones(1, 3, dtype=torch.bool)).sum().backward()
    assert torch.equal(hidden.grad[0].sum(-1), torch.tensor([2.0, 0.0, 0.0]))


def test_frozen_decoder_gets_no_gradient_buffer():
    hidden = torch.randn(2, 3, 4, requires_grad=True)
    weight, bias = torch.randn(5, 4), torch.zeros(5)
    max_logits(hidden, weight, bias, torch.ones(2, 3, dtype=torch.bool)).sum().backward()
    assert weight.grad is None
    assert hidden.grad.abs().sum() > 0


@pytest.mark.parametrize("dense_share", [0.0, 1.0])
def test_products_are_in_the_weights_precision_whatever_the_hidden_states_are(dense_share):
    torch.manual_seed(0)
    hidden, weight = torch.randn(2, 3, 4).bfloat16().requires_grad_(), torch.randn(5, 4, requires_grad=True)
    bias, mask = torch.randn(5), torch.ones(2, 3, dtype=torch.bool)
    pull = torch.randn(2, 5)
    with constants(DENSE_SHARE=dense_share):
        logits = max_logits(hidden, weight, bias, mask)
        (logits * pull).sum().backward()
    plain_hidden, plain_weight = (tensor.detach().float().requires_grad_() for tensor in (hidden, weight))
    plain = reference_max_logits(plain_hidden, plain_weight, bias, mask)
    (plain * pull).sum().backward()
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, plain)
    torch.testing.assert_close(weight.grad, plain_weight.grad)
    torch.testing.assert_close(hidden.grad, plain_hidden.grad.bfloat16())


def test_what_is_not_a_number_can_open_unless_the_word_never_opens():
    nan, inf = torch.nan, torch.inf
    logits = torch.tensor([1.0, 0.0, -inf, nan, nan, 1.0, inf])
    opening = torch.tensor([0.0, 0.0, 0.0, 0.0, inf, nan, inf])
    assert can_open(logits, opening).tolist() == [True, False, False, True, False, True, False]


class OnlySinglePrecisionProducts(TorchDispatchMode):
    """Refuses a product in another precision before it runs: some CPUs cannot run one."""

    products = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ARG002
        if "mm" in func.__name__:
            self.products += 1
            assert all(part.dtype == torch.float32 for part in args if isinstance(part, torch.Tensor)), func
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dense_share", [0.0, 1.0])
def test_autocast_changes_no_product_in_either_direction(dense_share):
    hidden, weight = torch.randn(2, 3, 4).bfloat16().requires_grad_(), torch.randn(5, 4, requires_grad=True)
    bias, words = torch.zeros(5, requires_grad=True), torch.randint(0, 5, (2, 3, 2))
    with OnlySinglePrecisionProducts() as seen, constants(DENSE_SHARE=dense_share), torch.autocast("cpu"):
        max_logits(hidden, weight, bias, torch.ones(2, 3, dtype=torch.bool)).sum().backward()
        near_logits(hidden, weight, bias, words).sum().backward()
    assert seen.products >= 4
    assert hidden.grad.abs().sum() > 0
