from dataclasses import replace
from itertools import chain, combinations

import pytest
import torch

from lexical_sae.inference import explain, find_reasons
from lexical_sae.mechanistic.attribution import attribute_code, identity_error
from lexical_sae.mechanistic.exact import WordSets, leave_one_out, predict_removal, remove
from lexical_sae.mechanistic.exact.path import along_path
from lexical_sae.models.table_head import TableHead
from tests.literal import TEXTS, UNSEEN, batch_of, literal_model, opened


def table(size=7, labels=3):
    torch.manual_seed(0)
    head = TableHead.Config().build(size, labels)
    with torch.no_grad():
        head.word_vectors.copy_(torch.randn(size, labels))
        head.class_bias.copy_(torch.randn(labels))
    return head


def state_of(model, *texts):
    with torch.no_grad():
        return model.read(model.encode_sparse(*batch_of(model, *texts)))


def test_a_decision_is_the_sum_of_rows_and_the_bias():
    head = table()
    s = torch.tensor([[2.0, 0, 0, -1.0, 0, 0, 0]])
    expected = 2 * head.word_vectors[0] - head.word_vectors[3] + head.class_bias
    state = head(s)
    torch.testing.assert_close(state.logits[0], expected)
    assert identity_error(state) < 1e-6
    torch.testing.assert_close(state.W_eff[0], head.word_vectors.T)
    assert torch.equal(state.b_eff[0], head.class_bias)


def test_chosen_words_give_the_decision_of_all_of_them():
    head, words = table(), torch.tensor([5, 0, 3])
    s = torch.zeros(2, 7)
    s[:, words] = torch.randn(2, 3)
    some = head(s[:, words], words)
    torch.testing.assert_close(some.logits, head(s).logits)
    assert (identity_error(some) < 1e-6).all()


def test_reading_a_sparse_code_gives_the_decision_of_the_dense_vector():
    model = literal_model()
    state = state_of(model, *TEXTS)
    dense = model.head()(state.code.dense())
    torch.testing.assert_close(state.logits, dense.logits)
    for row in range(len(TEXTS)):
        here = state.code.text(row)
        terms = model.head().word_vectors[state.code.ids[here]] * state.code.values[here, None]
        torch.testing.assert_close(terms.sum(0) + model.head().class_bias, state.logits[row])


def test_attribution_along_the_path_is_direct_attribution():
    model = literal_model()
    state = state_of(model, *TEXTS)
    labels = state.logits.argmax(-1)
    direct = attribute_code(state, labels, centered=True)
    path = attribute_code(along_path(model.head(), state), labels, centered=True)
    assert torch.equal(direct, path)
    assert direct.abs().max() > 0.1


def test_the_effect_of_removing_a_word_is_exactly_its_contribution():
    model = literal_model()
    direct = explain(model, TEXTS[0], all_tokens=True)
    assert len(direct.words) > 5
    ours = {word.word: word.contribution for word in direct.words}
    assert {word.word: -word.if_removed for word in direct.words} == pytest.approx(ours, abs=1e-6)
    assert not any(word.region_changed for word in direct.words)
    for method in ("leave_one_out", "path"):
        theirs = explain(model, TEXTS[0], method=method, all_tokens=True)
        assert {word.word: word.contribution for word in theirs.words} == pytest.approx(ours, abs=1e-6)
        assert theirs.bias == pytest.approx(direct.bias, abs=1e-6)


def label_with(model, state, kept):
    code, head = state.code, model.head()
    rows = head.word_vectors.double()[code.ids[list(kept)]] * code.values.double()[list(kept), None]
    return model.labels["classify"][int((rows.sum(0) + head.class_bias.double()).argmax())]


@pytest.mark.parametrize("text", [*TEXTS[:4], "a boringly good plot, badly filmed"])
@pytest.mark.parametrize("to", [None, "other"])
def test_the_smallest_sets_of_words_are_those_of_exhaustive_search(text, to):
    model = literal_model()
    view = opened(model, text)
    state = state_of(view, text)
    words = range(len(state.code.ids))
    assert 1 < len(words) < 10
    label = label_with(view, state, words)
    labels = model.labels["classify"]
    to = to and next(other for other in labels if other != label)
    found = find_reasons(model, text, to)
    assert (found.label, found.num_words) == (label, len(words))
    subsets = list(chain.from_iterable(combinations(words, size) for size in range(len(words) + 1)))
    wanted = {to} if to else set(labels) - {label}
    flips = [len(s) for s in subsets if label_with(view, state, set(words) - set(s)) in wanted]
    enough = [len(s) for s in subsets if label_with(view, state, s) == label]
    place = {view.dimensions[i].name: at for at, i in enumerate(state.code.ids.tolist())}
    if flips:
        assert found.flip.is_minimal
        assert len(found.flip.words) == min(flips)
        assert label_with(view, state, set(words) - {place[word] for word in found.flip.words}) == found.flip.label
    else:
        assert found.flip.is_impossible
    assert found.enough.is_minimal
    assert len(found.enough.words) == min(enough)
    assert label_with(view, state, [place[word] for word in found.enough.words]) == label


def test_rows_of_unseen_words_that_are_too_small_to_count_are_empty():
    head = table(labels=2)
    head.make_room(3)
    with torch.no_grad():
        head.unseen_weights.copy_(torch.tensor([[1.0, -1.0], [0, 0], [0, 0], [0.015, -0.015]]))
    rows = head.rows_of_unseen(torch.tensor([[0.0, 1, 1], [0.04, 0, 0], [0.2, 0, 0]]))
    torch.testing.assert_close(rows, torch.tensor([[0.0, 0.0], [0.0, 0.0], [0.215, -0.215]]))
    assert rows[:2].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_table_with_more_rows_shares_the_bias_and_leaves_the_table_as_it_was():
    head = table()
    longer = head.with_more(torch.ones(2, 3))
    assert torch.equal(longer.word_vectors, torch.cat([head.word_vectors, torch.ones(2, 3)]))
    assert len(head.word_vectors) == 7
    assert longer.class_bias is head.class_bias


def test_what_goes_with_words_is_what_direct_attribution_predicts_to_the_last_bit():
    model = literal_model()
    state = state_of(opened(model, *TEXTS, *UNSEEN), *TEXTS, *UNSEEN)
    for sets in (WordSets.singly(state.code, state.code.ids >= 0), WordSets.together(state.code, state.code.ids >= 0)):
        quick, slow = remove(model.head(), state, sets).effects, predict_removal(state, sets)
        assert torch.equal(quick.per_class, slow.per_class)
        assert torch.equal(quick.rows, slow.rows)


def test_the_effect_of_taking_words_away_is_that_of_deciding_without_them():
    model = literal_model()
    state = state_of(model, *TEXTS)
    removal = leave_one_out(model.head(), state)
    code = state.code
    for entry, row in enumerate(code.rows.tolist()):
        kept = replace(code, values=code.values.clone())
        kept.values[entry] = 0.0
        effect = state.logits[row] - model.read(kept).logits[row]
        torch.testing.assert_close(removal.effects.per_class[entry], effect, atol=1e-5, rtol=1e-5)
    assert not removal.region_changed.any()


def test_rows_count_by_the_logit_or_in_a_weak_table_by_its_largest_row():
    head = TableHead.Config(least_row=0.1).build(3, 2)
    strong = torch.tensor([[4.0, -4.0], [0.11, -0.11], [0.09, -0.09]])
    assert (head.emptied(strong, strong) != 0).any(-1).tolist() == [True, True, False]
    weak = strong / 10
    assert (head.emptied(weak, weak) != 0).any(-1).tolist() == [True, False, False]
    weaker = strong / torch.tensor([[40.0], [10.0], [1.0]])
    assert (head.emptied(weaker, weaker) != 0).any(-1).tolist() == [True, True, True]
