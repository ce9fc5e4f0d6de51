"""The vocabulary of ModernBERT, 50,368 words: exact, and without a logit per word and position."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.vocab_head import max_logits, reference_max_logits
from tests import tiny
from tests.models.test_screening import always_screening, never_screening

MODERNBERT_VOCABULARY = 50_368


class LargestTensor(TorchDispatchMode):
    """Notes the size of the largest tensor that any operation returns."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ARG002
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.numel())
        return result


def test_fused_logits_equal_the_reference():
    hidden, weight = torch.randn(3, 7, 16), torch.randn(MODERNBERT_VOCABULARY, 16)
    bias = torch.randn(MODERNBERT_VOCABULARY)
    mask = torch.arange(7)[None] < torch.tensor([7, 4, 1])[:, None]
    leaves = [[tensor.clone().requires_grad_() for tensor in (hidden, weight, bias)] for _ in range(2)]
    for function, ours in zip((max_logits, reference_max_logits), leaves, strict=True):
        (function(*ours, mask) - 8).relu().square().sum().backward()
    torch.testing.assert_close(max_logits(hidden, weight, bias, mask), reference_max_logits(hidden, weight, bias, mask))
    for fused, plain in zip(*leaves, strict=True):
        torch.testing.assert_close(fused.grad, plain.grad, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("way", [always_screening, never_screening])
def test_sparse_code_of_a_modernbert_makes_no_logit_per_word_and_position(way):
    model = tiny.model(ModelConfig(gate="drelu"), "modernbert", vocab_size=MODERNBERT_VOCABULARY)
    # Words beyond the tokenizer are closed for good; here they are open, so that the whole vocabulary takes part.
    model.gate.closed.fill_(False)
    ids, mask = tiny.batch(length=40, rows=6)
    with torch.no_grad(), way():
        greatest = model.max_logits(ids, mask)
        model.gate.theta.fill_(greatest.topk(100).values.min())
        expected = model.encode_document(ids, mask).sparse_vector
        with LargestTensor() as largest:
            code = model.encode_sparse(ids, mask)
        with LargestTensor() as control:
            model(ids, mask)
    assert (code.ids > 40_000).any()
    torch.testing.assert_close(code.dense(), expected, atol=1e-5, rtol=1e-5)
    # The largest is as large as the decoder, never one for every position.
    assert largest.numel <= MODERNBERT_VOCABULARY * model.backbone.width
    assert control.numel >= mask.numel() * MODERNBERT_VOCABULARY


@pytest.mark.parametrize("way", [always_screening, never_screening])
def test_one_document_with_every_word_open_gathers_no_row_per_document_and_word(way):
    model = tiny.model(ModelConfig(gate="drelu"), "modernbert", vocab_size=MODERNBERT_VOCABULARY)
    model.gate.closed.fill_(False)
    ids, mask = tiny.batch(length=20, rows=3)
    with torch.no_grad(), way():
        model.gate.theta.copy_(model.max_logits(ids, mask)[0] - 1e-3)
        expected = model.encode_document(ids, mask).sparse_vector
        with LargestTensor() as largest:
            code = model.encode_sparse(ids, mask)
    assert code.counts[0] == MODERNBERT_VOCABULARY
    torch.testing.assert_close(code.dense(), expected, atol=1e-5, rtol=1e-5)
    assert largest.numel <= MODERNBERT_VOCABULARY * model.backbone.width
