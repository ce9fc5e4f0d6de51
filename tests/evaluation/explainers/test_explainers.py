import math
import sys
from itertools import combinations, permutations

import pytest
import torch

from lexical_sae.data.sampling import sample_rows
from lexical_sae.evaluation.explainers.attention import Attention, received_attention
from lexical_sae.evaluation.explainers.attribution import DIRECT, LEAVE_ONE_OUT, OCCLUSION, PATH, Chance
from lexical_sae.evaluation.explainers.case import logits_masked, read_case
from lexical_sae.evaluation.explainers.explainer import ArenaSettings
from lexical_sae.evaluation.explainers.gradients import GRADIENT, GRADIENT_TIMES_STRENGTH, SampledPath
from lexical_sae.evaluation.explainers.methods import line_up
from lexical_sae.evaluation.explainers.shapley import ShapleySampling, added_in_order
from tests import tiny
from tests.evaluation.explainers.cases import case, explained_of, model, small_case

HEADS = ["relu", "bcos"]


def whole_minus_nothing(of):
    return explained_of(of, range(of.num_active)) - explained_of(of, [])


@pytest.mark.parametrize("head", HEADS)
def test_leave_one_out_is_brute_force(head):
    of = case(head=head)
    every = set(range(of.num_active))
    brute = [explained_of(of, every) - explained_of(of, every - {word}) for word in every]
    assert LEAVE_ONE_OUT.explain(of, 0).active.tolist() == pytest.approx([float(b) for b in brute], abs=1e-10)


def test_path_sums_to_what_the_words_change_and_sampling_comes_near():
    of = case()
    path = PATH.explain(of, 0).active
    assert path.sum().item() == pytest.approx(whole_minus_nothing(of).item(), abs=1e-10)
    few, many = (SampledPath(steps).explain(of, 0).active for steps in (3, 3000))
    assert torch.allclose(many, path, atol=2e-3 * float(path.abs().max()))
    assert not torch.allclose(few, path, atol=2e-3 * float(path.abs().max()))


def test_the_sampled_path_takes_the_middle_of_each_step():
    # Not of a B-cos head, whose slopes are the same all along the path.
    of = case()
    code = of.state.code

    def mean_slope(shares):
        points = torch.tensor(shares, dtype=torch.float64)[:, None] * code.dense()
        points.requires_grad_()
        (slopes,) = torch.autograd.grad(of.explained(of.model.head()(points).logits).sum(), points)
        return slopes.mean(0)[code.ids] * code.values

    two_steps = SampledPath(2).explain(of, 0).active
    torch.testing.assert_close(two_steps, mean_slope([0.25, 0.75]))
    assert not torch.allclose(two_steps, mean_slope([0.5, 1.0]), rtol=1e-3), "the ends would say something else"


@pytest.mark.parametrize("head", HEADS)
def test_gradient_is_the_difference_quotient(head):
    of, step = case(head=head), 1e-6
    slopes = GRADIENT.explain(of, 0).active
    vector = of.state.code.dense()
    for place in (0, of.num_active // 2, of.num_active - 1):
        ends = vector.repeat(2, 1)
        ends[0, of.state.code.ids[place]] += step
        ends[1, of.state.code.ids[place]] -= step
        up, down = of.explained(of.model.head()(ends).logits).tolist()
        assert float(slopes[place]) == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-6)


def test_direct_attribution_is_gradient_times_strength_for_relu_and_not_for_bcos():
    gaps = {}
    for head in HEADS:
        of = case(head=head)
        direct, slopes = (one.explain(of, 0).active for one in (DIRECT, GRADIENT))
        gaps[head] = float((direct - slopes * of.state.code.values).abs().max())
    assert gaps["relu"] < 1e-10
    assert gaps["bcos"] > 1e-3


@pytest.mark.parametrize("head", HEADS)
def test_shapley_over_all_orders_is_the_sum_over_subsets(head):
    of = small_case(4, head=head)
    count = of.num_active
    exact = []
    for word in range(count):
        others = [other for other in range(count) if other != word]
        total = 0.0
        for size in range(count):
            weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
            gains = [explained_of(of, {*s, word}) - explained_of(of, s) for s in combinations(others, size)]
            total += weight * float(sum(gains))
        exact.append(total)
    orders = [added_in_order(of, torch.tensor(order)) for order in permutations(range(count))]
    assert torch.stack(orders).mean(0).tolist() == pytest.approx(exact, abs=1e-10)
    sampled = ShapleySampling(400).explain(of, 0).active
    assert sampled.tolist() == pytest.approx(exact, abs=0.2 * max(map(abs, exact)))


def test_one_order_already_sums_to_what_the_words_change():
    of = case()
    one = ShapleySampling(1).explain(of, 5).active
    assert one.sum().item() == pytest.approx(whole_minus_nothing(of).item(), abs=1e-10)


@pytest.mark.parametrize("explainer", [ShapleySampling(2), Chance()], ids=["shapley", "random"])
def test_what_is_drawn_follows_the_seed_and_the_place(explainer):
    first, again, other = (explainer.explain(case(), seed).active for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, explainer.explain(case(row=1), 0).active)


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "modernbert", "deberta-v2"])
def test_attention_is_the_encoders_own_and_leaves_it_as_it_was(family):
    made = tiny.model(family=family)
    of = read_case(made, 0, "the acting was unhappy")
    kernel = made.backbone.encoder.config._attn_implementation
    received = received_attention(of)
    assert made.backbone.encoder.config._attn_implementation == kernel
    assert received.shape == (len(of.layout),)
    assert float(received.sum()) == pytest.approx(1, abs=1e-5)
    assert float(received.max() - received.min()) > 1e-4
    told = Attention().explain(of, 0)
    assert told.active.tolist() == [float(received[p]) for p in of.state.code.positions]
    # `un` and `##happy` are one word; the special tokens are none.
    assert told.written.tolist() == pytest.approx([*received[1:4].tolist(), float(received[4:6].sum())])


def test_attention_weights_are_those_of_queries_and_keys():
    made = tiny.model()
    of = read_case(made, 0, "a good film")
    layer = made.backbone.encoder.encoder.layer[-1]
    seen = {}
    hook = layer.register_forward_pre_hook(lambda _module, args: seen.update(states=args[0]))
    received = received_attention(of)
    hook.remove()
    attend, states = layer.attention.self, seen["states"][0].detach()
    query, key = (part(states).detach().unflatten(-1, (2, 16)).transpose(0, 1) for part in (attend.query, attend.key))
    weights = (query @ key.transpose(1, 2) / 4).softmax(-1)
    assert torch.allclose(received, weights.mean(0).mean(0), atol=1e-5)


def test_occlusion_masks_each_word_alone():
    of = case("the unhappy film")
    told = OCCLUSION.explain(of, 0).written
    ids = of.read.batch.input_ids
    for word, positions in enumerate(([1], [2, 3], [4])):
        masked = ids.clone()
        masked[0, positions] = of.model.tokenizer.mask_token_id
        with torch.no_grad():
            left = of.model.classify_document(masked, torch.ones_like(masked, dtype=torch.bool)).logits
        assert float(told[word]) == pytest.approx(float(of.explained(of.state.logits) - of.explained(left)), abs=1e-10)


def test_a_set_of_words_that_is_asked_for_twice_has_one_answer():
    of = case()
    left = logits_masked(of, [{0}, set(), {0}, {1, 2}])
    assert torch.equal(left[0], left[2])
    assert torch.allclose(left[1:2], of.state.logits)
    assert not torch.allclose(left[3], left[0])


def test_active_words_are_shared_out_where_they_won():
    of = case()
    scores = torch.arange(of.num_active, dtype=torch.float64)
    expected = [0.0] * of.num_written
    for score, position in zip(scores.tolist(), of.state.code.positions.tolist(), strict=True):
        word = of.layout.token_words[position]
        if word is not None:
            expected[word] += score
    assert of.share_out(scores).tolist() == pytest.approx(expected)
    assert DIRECT.explain(of, 0).at_input(of).tolist() == of.share_out(DIRECT.explain(of, 0).active).tolist()


def test_captum_explains_the_words_of_the_text():
    pytest.importorskip("captum")
    from lexical_sae.evaluation.explainers.captum_methods import captum_explainers

    gradients, lime = captum_explainers(steps=20, samples=60)
    of = read_case(tiny.model(), 0, "a very unhappy film")
    before = torch.random.get_rng_state()
    first, again, other = (lime.explain(of, seed).written for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert first.shape == gradients.explain(of, 0).written.shape == (4,)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    # LIME is about masking: the word whose masking does most has the greatest weight.
    known = OCCLUSION.explain(of, 0).written
    assert int(first.abs().argmax()) == int(known.abs().argmax())


def test_captum_masks_words_and_nothing_else(monkeypatch):
    pytest.importorskip("captum")
    from lexical_sae.evaluation.explainers import captum_methods as captum_ways

    of = case("a very unhappy film")
    gradients, lime = captum_ways.captum_explainers(steps=400, samples=30)
    # Complete: the words share what masking all of them takes away, and the special tokens have nothing.
    all_masked = of.explained(logits_masked(of, [range(of.num_written)]))
    lost = float(of.explained(of.state.logits) - all_masked)
    assert abs(lost) > 1e-3
    assert float(gradients.explain(of, 0).written.sum()) == pytest.approx(lost, abs=0.02 * abs(lost))
    read, decide = [], captum_ways._decide
    monkeypatch.setattr(captum_ways, "_decide", lambda of, ids: read.append(ids) or decide(of, ids))
    lime.explain(of, 0)
    seen, ids = torch.cat(read), of.read.batch.input_ids[0]
    assert (seen[:, [0, -1]] == ids[[0, -1]]).all(), "[CLS] and [SEP] stay"
    assert (seen == of.model.tokenizer.mask_token_id).any(0)[1:-1].all(), "every word goes at times"


def test_lime_weighs_a_masked_text_by_the_words_that_are_left():
    from lexical_sae.evaluation.explainers.captum_methods import nearness

    def weight(*is_left):
        # What the ids are does not matter.
        return nearness(torch.rand(1, 6), torch.rand(1, 6), torch.tensor([is_left]))

    assert weight(1, 1, 1, 1, 1) == weight(0, 1, 1, 1, 1) == 1
    assert weight(1, 1, 1, 0, 1) == weight(1, 0, 1, 1, 1) == pytest.approx(math.exp(-((1 - 0.75**0.5) ** 2) * 8))
    assert weight(1, 0, 0, 0, 0) == pytest.approx(math.exp(-8))


def test_without_captum_the_others_take_part_and_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    found = line_up(model(), ArenaSettings())
    assert len(found.explainers) == 9
    assert any("pip install captum" in reason for reason in found.left_out)


def test_gradient_times_strength_takes_part_where_it_is_not_direct_attribution():
    of = case(head="bcos")
    told = GRADIENT_TIMES_STRENGTH.explain(of, 0).active
    assert torch.equal(told, GRADIENT.explain(of, 0).active * of.state.code.values)
    sides = [line_up(model(head), ArenaSettings(with_captum=False)).explainers for head in HEADS]
    assert [GRADIENT_TIMES_STRENGTH in side for side in sides] == [False, True]


def test_a_head_without_closed_form_is_told():
    found = line_up(model("bcos"), ArenaSettings(with_captum=False))
    assert PATH not in found.explainers
    assert any("piecewise linear" in reason for reason in found.left_out)


@pytest.mark.parametrize(
    ("count", "limit", "expected"), [(5, 0, 5), (5, 9, 5), (50, 7, 7)], ids=["all", "too-few", "drawn"]
)
def test_rows_are_drawn_once_each(count, limit, expected):
    rows = sample_rows(count, limit, seed=1)
    assert len(rows) == len(set(rows)) == expected
    assert rows == sorted(rows)
