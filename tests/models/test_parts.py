import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.models.circuit_state import largest_k_mask
from lexical_sae.models.layers.masking import WordMasking
from lexical_sae.models.layers.pooling import AttentionPool, MaxPool, TopK
from lexical_sae.models.layers.saturation import Identity, Log1p
from lexical_sae.models.layers.virtual_expander import VirtualExpander
from tests import tiny
from tests.strategies import tensors


def test_saturations_are_log1p_and_nothing():
    x = torch.tensor([0.0, 1.0, 7.0])
    torch.testing.assert_close(Log1p.Config().build()(x), torch.tensor([0.0, 0.693147, 2.079442]))
    assert torch.equal(Identity.Config().build()(x), x)


@given(tensors(2, 4, 5, low=0))
def test_padding_never_wins_and_never_weighs(sequence):
    mask = torch.tensor([[True, True, False, False], [True, True, True, True]])
    loud = sequence.clone()
    loud[0, 2:] = 1e6
    for pool in (MaxPool.Config().build(5), AttentionPool.Config().build(5).double()):
        assert torch.equal(pool(loud, mask), pool(loud.masked_fill(~mask[..., None], 0), mask))
        assert pool(loud, mask)[0].max() < 1e5


def test_a_text_without_tokens_has_no_words():
    sequence, mask = torch.ones(1, 3, 4), torch.zeros(1, 3, dtype=torch.bool)
    for pool in (MaxPool.Config().build(4), AttentionPool.Config().build(4)):
        assert (pool(sequence, mask) == 0).all()


def test_attention_pool_is_the_softmax_weighted_mean():
    pool = AttentionPool.Config().build(2)
    with torch.no_grad():
        pool.score.copy_(torch.tensor([1.0, -1.0]))
    sequence = torch.tensor([[[2.0, 0.0], [0.0, 1.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    weights = torch.tensor([2.0, -1.0]).softmax(0)
    expected = weights[0] * sequence[0, 0] + weights[1] * sequence[0, 1]
    torch.testing.assert_close(pool(sequence, mask)[0], expected)
    pool(sequence, mask)[0, 0].backward()
    assert pool.score.grad.abs().sum() > 0


@given(tensors(3, 8), st.integers(0, 10))
def test_largest_k_keeps_exactly_k_and_the_largest(values, k):
    values = (values * 2).round()  # many ties
    mask = largest_k_mask(values, k)
    assert (mask.sum(-1) == min(k, 8)).all()
    for row, kept in zip(values.tolist(), mask.tolist(), strict=True):
        order = sorted(range(8), key=lambda i: (-row[i], i))[:k]
        assert kept == [i in order for i in range(8)]


def test_largest_k_takes_a_count_per_row():
    values = torch.tensor([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0], [3.0, 1.0, 2.0]])
    mask = largest_k_mask(values, torch.tensor([0, 1, 2]))
    assert mask.tolist() == [[False, False, False], [True, False, False], [True, False, True]]


def test_topk_cuts_at_inference_only():
    sequence = torch.tensor([[[3.0, 1.0, 2.0], [0.0, 0.0, 5.0]]])
    topk = TopK(2)
    assert torch.equal(topk.train()(sequence), sequence)
    assert torch.equal(topk.eval()(sequence), torch.tensor([[[3.0, 0.0, 2.0], [0.0, 0.0, 5.0]]]))
    assert torch.equal(TopK(0).eval()(sequence), sequence)


def test_words_are_masked_in_training_at_the_configured_rate_and_never_at_inference():
    torch.manual_seed(0)
    masking = WordMasking.Config(low=0.1, high=0.3).build()
    vector = torch.ones(400, 500)
    kept = masking.train()(vector).mean(-1)
    assert kept.mean().item() == pytest.approx(0.8, abs=0.01)
    assert kept.min() < 0.75
    assert kept.max() > 0.85
    assert torch.equal(masking.eval()(vector), vector)


def test_masking_range_must_be_in_order():
    with pytest.raises(ValidationError, match="above masking.high"):
        WordMasking.Config(low=0.5, high=0.2)


class TestVirtualExpander:
    vocabulary = Vocabulary(tiny.wordpiece())
    bank, film = vocabulary.tokens.index("bank"), vocabulary.tokens.index("film")

    def build(self, **settings):
        torch.manual_seed(0)
        config = VirtualExpander.Config(token_ids=(self.bank, self.film), num_senses=3, **settings)
        return config, config.build(8)

    def test_each_position_gives_the_words_logit_to_one_slot_and_nothing_to_the_others(self):
        _, expander = self.build()
        hidden, logits = torch.randn(5, 7, 8), torch.randn(5, 7, self.vocabulary.size)
        wide = expander(hidden, logits)
        assert wide.shape[-1] == self.vocabulary.size + 4
        for column, word in enumerate((self.bank, self.film)):
            appended = wide[..., self.vocabulary.size + 2 * column :][..., :2]
            slots = torch.cat([wide[..., word : word + 1], appended], -1)
            assert (slots.isfinite().sum(-1) == 1).all()
            assert torch.equal(slots.amax(-1), logits[..., word])
        others = [i for i in range(self.vocabulary.size) if i not in (self.bank, self.film)]
        assert torch.equal(wide[..., others], logits[..., others])

    def test_the_choice_of_sense_learns_as_if_the_softmax_had_chosen(self):
        _, expander = self.build()
        hidden, logits = torch.randn(4, 8), torch.randn(4, 2) + 3
        slots = expander.slot_logits(hidden, logits)
        slots[slots.isfinite()].sum().backward()
        found = expander.scores.weight.grad.clone()
        expander.zero_grad()
        probabilities = expander.scores(hidden).unflatten(-1, (2, 3)).softmax(-1)
        (probabilities.amax(-1) * logits).sum().backward()
        torch.testing.assert_close(found, expander.scores.weight.grad)
        assert found.abs().sum() > 0

    def test_slots_are_named_after_their_word(self):
        config, _ = self.build()
        names = [dimension.name for dimension in config.dimensions(self.vocabulary)]
        assert names == ["bank@sense1", "bank@sense2", "film@sense1", "film@sense2"]

    def test_words_outside_the_vocabulary_are_refused(self):
        with pytest.raises(ValueError, match="not words of this encoder"):
            VirtualExpander.Config(token_ids=(10_000,)).dimensions(self.vocabulary)
        with pytest.raises(ValueError, match="not words of this encoder"):
            VirtualExpander.Config(token_ids=(0,)).dimensions(self.vocabulary)
        with pytest.raises(ValidationError, match="twice"):
            VirtualExpander.Config(token_ids=(7, 7))
