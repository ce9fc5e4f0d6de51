import json

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from lexical_sae.data.sources.senses import ContextPair, SenseExample, SensesOfWord, mention_of
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.virtual_expander import VirtualExpander
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.report.studies.polysemy import polysemy_page
from lexical_sae.report.tables import tables_html
from lexical_sae.studies.polysemy import measuring as polysemy
from lexical_sae.studies.polysemy import word_in_context
from lexical_sae.studies.polysemy.measuring import PolysemyPlan, measure_polysemy
from lexical_sae.studies.polysemy.sense_slots import measure_slots, purity
from lexical_sae.studies.polysemy.word_in_context import best_threshold, code_cosine, read_in_context
from lexical_sae.studies.polysemy.word_states import codes_of, picked_slots, read_mentions, with_senses_merged
from tests import tiny

ids = tiny.wordpiece().convert_tokens_to_ids


def split_model(num_senses: int = 2):
    expander = VirtualExpander.Config(token_ids=(ids("plot"), ids("bank")), num_senses=num_senses)
    return tiny.model(ModelConfig(gate="drelu", expander=expander))


@pytest.fixture(scope="module")
def model():
    return split_model()


def mentions(count: int = 24) -> list[SenseExample]:
    """A bank of money and a bank of a river."""
    sides = ("the {} bank has money", "the bank is a {} river")
    adjectives = ("good", "bad", "great", "awful", "happy", "boring")
    texts = [(sides[i % 2].format(adjectives[i % 6]), i % 2) for i in range(count)]
    return [SenseExample(mention_of(t, t.split().index("bank"), "made"), ("money", "river")[s]) for t, s in texts]


def pairs(count: int = 20) -> list[ContextPair]:
    found = mentions(2 * count)
    chosen = [(found[2 * i], found[2 * i + (0 if i % 2 else 1)]) for i in range(count)]
    return [ContextPair("bank", (a.mention, b.mention), a.sense == b.sense) for a, b in chosen]


# Slots


def test_slots_that_follow_senses_are_told_from_slots_that_do_not():
    senses = ["a", "b"] * 40
    hidden = np.random.default_rng(0).normal(size=(80, 4)) + 20 * np.array([[s == "a"] for s in senses])
    follows = measure_slots("bank", np.array([0, 1] * 40), senses, hidden, 2)
    assert follows.mutual_information == follows.purity == 1.0
    assert follows.clusters == pytest.approx(1.0)
    assert abs(follows.mutual_information_shuffled) < 0.05
    assert 0.5 <= follows.purity_shuffled < 0.65
    at_random = measure_slots("bank", np.random.default_rng(1).integers(2, size=80), senses, hidden, 2)
    assert abs(at_random.mutual_information) < 0.1
    one_slot = measure_slots("bank", np.zeros(80, dtype=int), senses, hidden, 2)
    assert (one_slot.mutual_information, one_slot.purity, one_slot.slots_used) == (0.0, 0.5, 1)


def test_one_sense_in_one_slot_is_no_discovery():
    found = measure_slots("bank", np.zeros(9, dtype=int), ["a"] * 9, np.zeros((9, 2)), 12)
    assert found.mutual_information == 0.0
    assert found.clusters is None


def test_purity_is_the_share_of_each_slots_commonest_sense():
    assert purity(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])) == 0.75


# Words where they stand


def test_a_mention_is_read_at_its_own_token(model):
    found = mentions(5)
    states = read_mentions(model, [one.mention for one in found], batch_size=2)
    assert states.rows == (0, 1, 2, 3, 4)
    for row, one in enumerate(found):
        tokens = model.tokenizer(one.mention.sentence, return_tensors="pt")
        at = tokens["input_ids"][0].tolist().index(ids("bank"))
        mask = tokens["attention_mask"].bool()
        encoded = model(tokens["input_ids"], mask)[0]
        torch.testing.assert_close(states.at_word.dense()[row], encoded[at], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(states.in_sentence.dense()[row], encoded.amax(0), atol=1e-4, rtol=1e-4)
        hidden = model.backbone.hidden(tokens["input_ids"], mask)[0, at]
        torch.testing.assert_close(states.hidden[row], hidden, atol=1e-4, rtol=1e-4)


def test_the_slot_that_is_picked_is_the_one_that_carries_the_logit(model):
    hidden = torch.randn(7, model.backbone.width)
    slots = model.expander.slot_logits(hidden, torch.ones(7, 2))
    assert torch.equal((slots > -torch.inf).int().argmax(-1), picked_slots(model.expander, hidden))


def test_merged_senses_are_the_words_of_a_model_without_slots(model):
    states = read_mentions(model, [one.mention for one in mentions(4)])
    size = model.backbone.vocab_size
    columns = model.expander.slot_columns(size)
    for code in (states.at_word, states.in_sentence):
        dense, merged = code.dense(), with_senses_merged(code, model.expander, size).dense()
        torch.testing.assert_close(merged[:, columns[:, 0]], dense[:, columns].amax(-1))
        assert not merged[:, size:].any()
        others = [i for i in range(size) if i not in columns[:, 0].tolist()]
        assert torch.equal(merged[:, others], dense[:, others])


def test_words_that_were_cut_are_left_out(model):
    far = "the " * 80 + "bank"
    found = [mention_of(far, 80, "made"), mention_of("a bank", 1, "made")]
    assert read_mentions(model, found).rows == (1,)
    with pytest.raises(ValueError, match="saw none of the words"):
        read_mentions(model, found[:1])


def test_codes_with_and_without_senses_stand_side_by_side(model):
    states = read_mentions(model, [one.mention for one in mentions(3)])
    assert [name for name in codes_of(model, states) if "merged" in name] != []
    plain = tiny.model()
    assert list(codes_of(plain, read_mentions(plain, [one.mention for one in mentions(3)]))) == [
        "words at the token",
        "words of the sentence",
        "hidden state",
    ]


# Pairs


@example([(1, False), (1, True), (1, True)])  # equal values cannot be told apart
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=9))
def test_no_threshold_is_better_than_the_best(pairs):
    values, answers = torch.tensor([float(v) for v, _ in pairs]), torch.tensor([a for _, a in pairs])

    def right(threshold: float) -> int:
        return int(((values > threshold) == answers).sum())

    assert right(best_threshold(values, answers)) == max(right(t - 0.5) for t in range(7))


def test_the_cosine_of_codes_is_that_of_their_vectors():
    first, second = torch.rand(5, 6) * (torch.rand(5, 6) > 0.5), torch.rand(5, 6)
    first[2] = 0
    found = code_cosine(SparseCode.from_dense(first), SparseCode.from_dense(second), rows=2)
    torch.testing.assert_close(found, torch.cosine_similarity(first, second).double())
    assert found[2] == 0


# The whole


def test_everything_is_measured_and_shown(model):
    words = [SensesOfWord("bank", tuple(mentions(20)), tuple(mentions(12)))]
    data = {"train": pairs(20), "dev": pairs(12)}
    plan = PolysemyPlan(mentions_per_word=12, pairs=14)
    result = measure_polysemy(model, words, data, plan)
    assert [slot.word for slot in result.slots] == ["bank"]
    assert result.slots[0].mentions == 12
    assert result.majority is not None
    assert result.majority.count == 12
    names = [reading.code for reading in result.senses]
    assert names == [reading.code for reading in result.in_context]
    assert len(names) == 5
    # The two kinds of sentence have other words: whoever reads the sentence knows the sense.
    by_code = {reading.code: reading.accuracy.mean for reading in result.senses}
    assert by_code["words of the sentence"] == 1.0
    assert result.pairs == 12
    assert result == measure_polysemy(model, words, data, plan)
    page = tables_html(polysemy_page({"this model": json.loads(json.dumps(result.as_dict()))}))
    for part in ("do slots split senses?", "senses merged", "the same meaning in two sentences?", "commonest sense"):
        assert part in page


def test_which_pairs_are_asked_does_not_depend_on_how_many_mentions_a_model_saw(model, monkeypatch):
    asked = []

    def listen(_, train, dev, *rest):
        del rest
        asked.append([[pair.mentions[0].sentence for pair in some] for some in (train, dev)])
        return ()

    monkeypatch.setattr(polysemy, "read_in_context", listen)
    far = SenseExample(mention_of("the " * 80 + "bank", 80, "made"), "money")
    data = {"train": pairs(40), "dev": pairs(40)}
    for test in (mentions(12), [*mentions(11), far]):
        words = [SensesOfWord("bank", tuple(mentions(20)), tuple(test))]
        measure_polysemy(model, words, data, PolysemyPlan(pairs=10))
    assert asked[0] == asked[1]


def test_words_with_one_sense_in_train_are_not_read_and_words_without_slots_have_no_split(model):
    (one, *_), test = [m for m in mentions(12) if m.sense == "money"], mentions(10)
    result = measure_polysemy(model, [SensesOfWord("river", (one,) * 10, tuple(test))], {})
    assert result.slots == ()
    assert result.senses[0].accuracy.count == 0
    # The commonest sense is measured on the same mentions as the codes: here on none.
    assert result.majority is not None
    assert result.majority.count == 0
    assert result.in_context == ()


def test_thresholds_are_chosen_on_train_pairs_and_probes_fitted_on_train_mentions(model, monkeypatch):
    train, dev = pairs(12), pairs(20)[12:]
    seen = []
    monkeypatch.setattr(word_in_context, "best_threshold", lambda values, _: seen.append(len(values)) or 0.5)
    read_in_context(model, train, dev)
    assert set(seen) == {len(train)}
    found, plain = mentions(30), polysemy.fit_probe
    fitted = []
    monkeypatch.setattr(polysemy, "fit_probe", lambda code, *others: fitted.append(len(code)) or plain(code, *others))
    measure_polysemy(model, [SensesOfWord("bank", tuple(found[:24]), tuple(found[24:]))], {})
    assert set(fitted) == {24}
