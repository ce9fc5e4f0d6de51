from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.mechanistic.attribution import attribute, attribute_code, code_identity_error, identity_error
from lexical_sae.mechanistic.exact import (
    WordSets,
    along_path,
    attribute_towards,
    class_centered,
    contrast,
    for_class,
    leave_one_out,
    predict_removal,
    removal,
    remove,
    strongest,
    towards,
)
from lexical_sae.mechanistic.exact.path import share_on
from lexical_sae.models.heads import BcosHead, ReluHead
from lexical_sae.models.sparse_code import SparseCode
from tests.strategies import sparse_vectors

ROWS, SIZE, CLASSES, WIDTH = 4, 9, 3, 6
HEADS = {"relu": ReluHead.Config(hidden_units=WIDTH), "bcos": BcosHead.Config(hidden_units=WIDTH)}
LABELS = torch.tensor([0, 2, 1, 2])
OTHERS = torch.tensor([1, 0, 0, 1])


def build(kind="relu", seed=0, dtype=torch.float64, whole=False):
    """A random head; with `whole` numbers sums are free of rounding, and units at exactly zero are common."""
    torch.manual_seed(seed)
    head = HEADS[kind].build(SIZE, CLASSES).to(dtype)
    for parameter in head.parameters():
        parameter.data = torch.randn_like(parameter).round() if whole else torch.randn_like(parameter)
    return head.requires_grad_(False)


@st.composite
def relu_cases(draw):
    """A two-layer ReLU head and ragged texts, some of them empty."""
    whole = draw(st.booleans())
    vectors = draw(sparse_vectors(ROWS, SIZE))
    return build(seed=draw(st.integers(0, 999)), whole=whole), vectors.ceil() if whole else vectors


def read(head, vectors):
    return head.read(SparseCode.from_dense(vectors))


def is_on(head, vectors):
    return vectors @ head.word_vectors + head.hidden_bias > 0


def without(vectors, ids):
    """Each text without the word of this id."""
    return vectors.scatter(-1, ids[:, None], 0)


def close(found, expected, tolerance=1e-10):
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)


def without_each(vectors):
    """Each text once for every active word, and what is left of it without that word."""
    rows, ids = vectors.nonzero(as_tuple=True)
    return vectors[rows], without(vectors[rows], ids)


def adjacent_pairs(code):
    """Every two adjacent words of a text as one set."""
    first = (code.rows[1:] == code.rows[:-1]).nonzero().flatten()
    members = torch.stack([first, first + 1], dim=-1).flatten()
    return WordSets(code.rows[first], members, 2 * torch.arange(len(first) + 1))


def example_head(word_vectors, hidden_bias, class_weights):
    head = ReluHead.Config(hidden_units=len(hidden_bias)).build(len(word_vectors), len(class_weights)).double()
    head.word_vectors.data = torch.tensor(word_vectors, dtype=torch.float64)
    head.hidden_bias.data = torch.tensor(hidden_bias, dtype=torch.float64)
    head.class_weights.data = torch.tensor(class_weights, dtype=torch.float64)
    return head


@settings(max_examples=15)
@given(relu_cases())
def test_leaving_one_word_out_equals_deciding_again_without_it(case):
    head, vectors = case
    found = leave_one_out(head, read(head, vectors))
    texts, left = without_each(vectors)
    close(found.effects.per_class, head(texts).logits - head(left).logits)
    assert torch.equal(found.region_changed, (is_on(head, texts) != is_on(head, left)).any(-1))
    assert torch.equal(found.effects.rows, vectors.nonzero()[:, 0])


@settings(max_examples=15)
@given(relu_cases())
def test_direct_attribution_predicts_a_removal_exactly_unless_a_unit_switches(case):
    head, vectors = case
    state = read(head, vectors)
    found = leave_one_out(head, state)
    sets = WordSets.singly(state.code, torch.ones(len(state.code.ids), dtype=torch.bool))
    same = ~found.region_changed
    close(predict_removal(state, sets).per_class[same], found.effects.per_class[same])


def test_direct_attribution_can_have_the_wrong_sign():
    # Word 0 feeds the first unit and holds the second one down; without it the second unit speaks louder.
    head = example_head([[1, -2], [0, 1]], [0, 0], [[1, 3], [0, 0]])
    state = read(head, torch.ones(1, 2, dtype=torch.float64))
    found = leave_one_out(head, state)
    assert found.effects.per_class[:, 0].tolist() == [-2, 0]
    assert found.region_changed.tolist() == [True, False]
    assert attribute_code(state, torch.tensor([0]), centered=False).tolist() == [1, 0]


@pytest.mark.parametrize("kind", HEADS)
@settings(max_examples=15)
@given(vectors=sparse_vectors(ROWS, SIZE), count=st.integers(0, 5))
def test_removing_words_together_equals_deciding_again_without_them(kind, vectors, count):
    head = build(kind)
    state = read(head, vectors)
    direct = attribute_towards(state, class_centered(state.logits, LABELS))
    chosen = strongest(state.code, direct, count)
    sets = WordSets.together(state.code, chosen)
    found = remove(head, state, sets)
    left = vectors.clone()
    left[state.code.rows[chosen], state.code.ids[chosen]] = 0
    assert ((vectors != 0).sum(-1) - (left != 0).sum(-1)).tolist() == state.code.counts.clamp(max=count).tolist()
    close(found.effects.per_class, state.logits - head(left).logits)
    close(found.effects.logits_without(state.logits), head(left).logits)
    assert not found.region_changed[sets.counts == 0].any()
    raw = torch.stack([attribute_code(state, torch.full((ROWS,), c), centered=False) for c in range(CLASSES)], dim=-1)
    predicted = torch.zeros_like(state.logits).index_add_(0, state.code.rows[chosen], raw[chosen])
    close(predict_removal(state, sets).per_class, predicted)


@settings(max_examples=15)
@given(vectors=sparse_vectors(ROWS, SIZE))
def test_a_head_that_is_not_piecewise_linear_decides_again(vectors):
    head = build("bcos")
    found = leave_one_out(head, read(head, vectors))
    texts, left = without_each(vectors)
    close(found.effects.per_class, head(texts).logits - head(left).logits)
    assert found.region_changed.all()


def test_strongest_words_are_those_of_largest_size_whatever_their_sign():
    code = SparseCode.from_dense(torch.tensor([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]]))
    scores = torch.tensor([0.5, -3.0, 1.0, 2.0, -2.0, 0.0])
    assert strongest(code, scores, 2).tolist() == [False, True, True, True, True, False]
    assert strongest(code, scores, 1).tolist() == [False, True, False, True, False, False]
    assert strongest(code, scores, 9).all()


@pytest.mark.parametrize(
    ("slope", "start", "share"),
    [(4, -1, 0.75), (-4, 1, 0.25), (0, 1, 1), (0, 0, 0), (0, -1, 0), (2, 0, 1), (-2, 0, 0), (1, -1, 0), (-1, 1, 1)]
    + [(3, 2, 1), (-1, 2, 1), (1, -2, 0), (-3, -1, 0)],
)
def test_share_of_the_path_that_a_unit_is_on(slope, start, share):
    assert share_on(torch.tensor([float(slope)]), torch.tensor([float(start)])).item() == share


def test_share_of_the_path_does_not_cancel_in_single_precision():
    slope, start = torch.tensor([1e-9, -1e-9, 3e-30]), torch.tensor([1.0, 1.0, -1e-30])
    torch.testing.assert_close(share_on(slope, start), torch.tensor([1.0, 1.0, 2 / 3]))


@settings(max_examples=15)
@given(relu_cases())
def test_path_attributions_and_the_empty_text_sum_to_every_logit(case):
    head, vectors = case
    path = along_path(head, read(head, vectors))
    close(path.b_eff, head(torch.zeros_like(vectors)).logits)
    assert (code_identity_error(path) <= 1e-10).all()


@given(vectors=sparse_vectors(ROWS, SIZE, dtype=torch.float32), seed=st.integers(0, 999))
def test_path_attributions_are_complete_in_single_precision(vectors, seed):
    head = build(seed=seed, dtype=torch.float32)
    assert (code_identity_error(along_path(head, read(head, vectors))) <= 1e-5).all()


@pytest.mark.parametrize("seed", range(3))
def test_path_attributions_equal_integrated_gradients_of_many_steps(seed):
    head, steps = build(seed=seed), 100_000
    s = torch.rand(SIZE, dtype=torch.float64) * (torch.rand(SIZE) < 0.6)
    times = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
    points = (times[:, None] * s).requires_grad_()
    label = torch.tensor(seed % CLASSES)
    (gradients,) = torch.autograd.grad(head(points).logits[:, label].sum(), points)
    found = attribute(along_path(head, head(s)), label)
    close(found, s * gradients.mean(0), 1e-4)
    assert not torch.allclose(attribute(head(s), label), found, atol=1e-2)


def test_path_attribution_refuses_a_head_without_a_closed_form():
    head = build("bcos")
    with pytest.raises(ValueError, match="BcosHead has no path attribution in closed form.*'relu'"):
        along_path(head, head(torch.rand(2, SIZE, dtype=torch.float64)))


@pytest.mark.parametrize("leading", [(), (5,), (2, 3)])
def test_dense_decisions_of_any_leading_dimensions_have_the_same_path(leading):
    head = build()
    s = torch.rand(*leading, SIZE, dtype=torch.float64) * (torch.rand(*leading, SIZE) < 0.4)
    dense, sparse = head(s), read(head, s.reshape(-1, SIZE))
    labels = torch.randint(CLASSES, leading)
    path = along_path(head, dense)
    assert (identity_error(path) <= 1e-10).all()
    entries = attribute_code(along_path(head, sparse), labels.reshape(-1), centered=False)
    close(attribute(path, labels), replace(sparse.code, values=entries).dense().reshape(s.shape))


def answers(head, state, direction):
    """All the methods in one direction, in the order of the code."""
    return {
        "direct": attribute_towards(state, direction),
        "path": attribute_towards(along_path(head, state), direction),
        "leave one out": leave_one_out(head, state).effects.towards(direction),
    }


@settings(max_examples=5)
@given(relu_cases())
def test_every_method_takes_every_direction(case):
    head, vectors = case
    state = read(head, vectors)
    logits = state.logits
    per_class = [answers(head, state, for_class(logits, torch.full_like(LABELS, c))) for c in range(CLASSES)]
    chosen = answers(head, state, for_class(logits, LABELS))
    other = answers(head, state, for_class(logits, OTHERS))
    why, why_not = (answers(head, state, contrast(logits, *two)) for two in ((LABELS, OTHERS), (OTHERS, LABELS)))
    centered = answers(head, state, class_centered(logits, LABELS))
    centered_other = answers(head, state, class_centered(logits, OTHERS))
    for method in chosen:
        close(why[method], chosen[method] - other[method])
        close(why[method], -why_not[method])
        close(why[method], centered[method] - centered_other[method])
        close(centered[method], chosen[method] - sum(each[method] for each in per_class) / CLASSES)
    close(chosen["direct"], attribute_code(state, LABELS, centered=False))
    close(centered["direct"], attribute_code(state, LABELS, centered=True))


@pytest.mark.parametrize("kind", HEADS)
def test_a_decision_in_a_direction_is_a_decision_taken_apart_exactly(kind):
    head, s = build(kind), torch.rand(ROWS, SIZE, dtype=torch.float64)
    dense, sparse = head(s), read(head, s)
    direction = contrast(dense.logits, LABELS, OTHERS)
    expected = dense.logits.gather(-1, LABELS[:, None]) - dense.logits.gather(-1, OTHERS[:, None])
    asked, asked_sparse = towards(dense, direction), towards(sparse, direction)
    close(asked.logits, expected)
    close(asked_sparse.logits, expected)
    assert (identity_error(asked) <= 1e-10).all()
    assert (code_identity_error(asked_sparse) <= 1e-10).all()


def test_directions_of_the_worked_examples():
    one, two, three, four = torch.tensor(1), torch.tensor(2), torch.zeros(3), torch.zeros(4)
    assert for_class(three, one).tolist() == [0, 1, 0]
    assert class_centered(four, one).tolist() == [-0.25, 0.75, -0.25, -0.25]
    assert contrast(three, one, two).tolist() == [0, 1, -1]


@settings(max_examples=5)
@given(relu_cases())
def test_centered_answers_do_not_move_when_all_classes_do(case):
    head, vectors = case
    state = read(head, vectors)
    centered = class_centered(state.logits, LABELS)
    before = answers(head, state, centered)
    head.class_weights.add_(torch.randn(WIDTH, dtype=torch.float64))
    after = answers(head, read(head, vectors), centered)
    for method, values in before.items():
        close(after[method], values)


@settings(max_examples=5)
@given(relu_cases(), st.permutations(range(ROWS)))
def test_answers_depend_neither_on_the_order_of_texts_nor_on_the_batch(case, order):
    head, vectors = case
    direction = contrast(torch.zeros(ROWS, CLASSES, dtype=torch.float64), LABELS, OTHERS)
    alone = [answers(head, read(head, vectors[[row]]), direction[[row]]) for row in order]
    batch = answers(head, read(head, vectors[list(order)]), direction[list(order)])
    for method, values in batch.items():
        close(values, torch.cat([each[method] for each in alone]))


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("numbers", [1, 4 * CLASSES * WIDTH])
def test_working_in_parts_gives_the_same_answers(kind, numbers, monkeypatch):
    head = build(kind)
    state = read(head, torch.rand(ROWS, SIZE, dtype=torch.float64) * (torch.rand(ROWS, SIZE) < 0.6))
    chosen = strongest(state.code, state.code.values, 3)
    every = [WordSets.singly(state.code, chosen), WordSets.together(state.code, chosen), adjacent_pairs(state.code)]
    whole = [(remove(head, state, sets), predict_removal(state, sets)) for sets in every]
    monkeypatch.setattr(removal, "NUMBERS_AT_ONCE", numbers)
    for sets, (exact, predicted) in zip(every, whole, strict=True):
        parts = remove(head, state, sets)
        close(parts.effects.per_class, exact.effects.per_class)
        assert torch.equal(parts.region_changed, exact.region_changed)
        close(predict_removal(state, sets).per_class, predicted.per_class)


def test_parts_are_no_larger_than_asked_and_hold_every_set_once():
    code = SparseCode.from_dense(torch.ones(3, 4))
    sets = adjacent_pairs(code)
    parts = list(sets.split(4))
    assert [len(part) for part in parts] == [4, 4, 1]
    assert torch.equal(torch.cat([part.members for part in parts]), sets.members)
    assert torch.equal(torch.cat([part.rows for part in parts]), sets.rows)


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("rows", [0, 2])
def test_texts_without_words_and_batches_without_texts_have_empty_answers(kind, rows):
    head = build(kind)
    state = read(head, torch.zeros(rows, SIZE, dtype=torch.float64))
    none = torch.zeros(0, dtype=torch.bool)
    assert leave_one_out(head, state).effects.per_class.shape == (0, CLASSES)
    together = remove(head, state, WordSets.together(state.code, none))
    assert torch.equal(together.effects.per_class, torch.zeros(rows, CLASSES, dtype=torch.float64))
    assert together.region_changed.tolist() == [False] * rows


def test_a_small_effect_keeps_its_digits_beside_a_large_logit():
    exact, single = build(seed=5), build(seed=5)
    for head in (exact, single):
        head.class_bias.fill_(1e6)
    s = torch.rand(2, SIZE, dtype=torch.float64)
    expected = leave_one_out(exact, read(exact, s)).effects.per_class
    found = leave_one_out(single.float(), read(single, s.float())).effects.per_class
    close(found.double(), expected, 1e-5)
