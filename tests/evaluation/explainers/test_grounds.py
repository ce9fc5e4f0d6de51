import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.sources.rationales import Rationale
from lexical_sae.evaluation.explainers.attribution import DIRECT, LEAVE_ONE_OUT
from lexical_sae.evaluation.explainers.deletion import DeletionGround
from lexical_sae.evaluation.explainers.erasure import Figures, top_words
from lexical_sae.evaluation.explainers.plausibility import PlausibilityGround, marked_words, run_f1, runs
from lexical_sae.evaluation.explainers.removal import RemovalGround, rank_agreement
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.utils.cost import peak_megabytes, timed, with_cost
from tests.evaluation.explainers.cases import case, explained_of

FRACTIONS = (0.1, 0.5)
FLOATS = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


@given(FLOATS, st.floats(0.01, 1))
def test_the_budget_buys_the_highest_scores_and_at_least_one(values, fraction):
    scores = torch.tensor(values, dtype=torch.float64)
    chosen = top_words(scores, fraction).tolist()
    assert len(chosen) == len(set(chosen)) == max(1, round(torch.tensor(len(values) * fraction).item()))
    left = [value for i, value in enumerate(values) if i not in chosen]
    assert min(values[i] for i in chosen) >= max(left, default=-math.inf)


def test_of_equal_scores_the_earlier_word_goes():
    assert top_words(torch.tensor([1.0, 2.0, 2.0, 1.0]), 0.25).tolist() == [1]


def probability(of, kept):
    """Of the predicted class, and whether it is still predicted, by the dense head."""
    vector = torch.zeros(1, of.state.code.size, dtype=torch.float64)
    places = list(kept)
    vector[0, of.state.code.ids[places]] = of.state.code.values[places]
    with torch.no_grad():
        logits = of.model.head()(vector).logits[0]
    return float(logits.softmax(-1)[of.predicted]), int(logits.argmax()) != of.predicted


def test_removal_is_brute_force_for_any_scores():
    of = case()
    scores = torch.randn(of.num_active, dtype=torch.float64)
    ground = RemovalGround(FRACTIONS, "lot")
    ground.update(of, {"lot": [scores]}, {"lot": True})
    found = ground.result()["lot"]
    every, order = set(range(of.num_active)), scores.argsort(descending=True).tolist()
    full, _ = probability(of, every)
    assert max(abs(budget.comprehensiveness.mean) for budget in found.erasure.budgets) > 1e-3
    for budget, fraction in zip(found.erasure.budgets, FRACTIONS, strict=True):
        top = set(order[: max(1, round(fraction * len(every)))])
        left, has_flipped = probability(of, every - top)
        assert budget.comprehensiveness.mean == pytest.approx(full - left, abs=1e-9)
        assert budget.sufficiency.mean == pytest.approx(full - probability(of, top)[0], abs=1e-9)
        assert budget.flips.mean == has_flipped
    known = [float(explained_of(of, every) - explained_of(of, every - {word})) for word in every]
    off = sum(abs(score - effect) for score, effect in zip(scores.tolist(), known, strict=True))
    assert found.error.mean == pytest.approx(off / sum(map(abs, known)), rel=1e-8)
    assert found.top_word.mean == probability(of, every - {order[0]})[1]
    mean = sum(budget.comprehensiveness.mean for budget in found.erasure.budgets) / 2
    assert found.erasure.comprehensiveness.mean == pytest.approx(mean)


def test_the_known_effect_is_first_on_single_removals_and_chance_is_not():
    ground = RemovalGround(FRACTIONS, "lot")
    for row, text in enumerate(["a good film", "the bank near the river has money", "happy dogs play"]):
        of = case(text, row)
        told = {one.name: [one.explain(of, 0).active] for one in (LEAVE_ONE_OUT, DIRECT)}
        told["lot"] = [torch.rand(of.num_active, dtype=torch.float64) for _ in range(4)]
        ground.update(of, told, {"leave_one_out": True, "direct": True, "lot": False})
    exact, direct, lot = (ground.result()[name] for name in ("leave_one_out", "direct", "lot"))
    assert exact.error.mean == 0
    assert exact.spearman.mean == exact.kendall.mean == pytest.approx(1)
    assert lot.spearman.mean < direct.spearman.mean < 1
    assert direct.error.mean > 0.01
    # A lot is no amount of the logit.
    assert math.isnan(lot.error.mean)
    assert lot.erasure.between_seeds.count == 4
    assert direct.erasure.between_seeds is None
    assert lot.erasure.advantage == Interval(0, None, None, 3)
    assert direct.erasure.advantage.low is not None


@pytest.mark.parametrize(
    ("scores", "known", "spearman", "kendall"),
    [
        ([1, 2, 3], [10, 20, 30], 1, 1),
        ([3, 2, 1], [10, 20, 30], -1, -1),
        ([1, 2, 3, 4], [1, 3, 2, 4], 0.8, 4 / 6),
        ([5, 5, 5], [1, 2, 3], 0, 0),
        ([1, 2, 3], [7, 7, 7], math.nan, math.nan),
        ([1], [1], math.nan, math.nan),
    ],
    ids=["same", "reversed", "one-swap", "says-nothing", "nothing-known", "one-word"],
)
def test_rank_agreement_of_textbook_cases(scores, known, spearman, kendall):
    found = rank_agreement(torch.tensor(scores).double(), torch.tensor(known).double())
    assert found["spearman"] == pytest.approx(spearman, nan_ok=True)
    assert found["kendall"] == pytest.approx(kendall, nan_ok=True)


def test_deletion_reads_the_masked_text_and_all_explainers_meet():
    of = case("the unhappy film was good")
    told = {"first": [torch.tensor([5.0, 4, 3, 2, 1])], "lot": [torch.tensor([1.0, 2, 3, 4, 5]), torch.zeros(5)]}
    ground = DeletionGround([0.4], "lot")
    ground.update(of, told)
    found = ground.result()
    # [CLS] the un ##happy film was good [SEP]
    hidden = {"first": [1, 2, 3], "last": [5, 6]}
    mask, ids = of.model.tokenizer.mask_token_id, of.read.batch.input_ids

    def lost(positions):
        masked = ids.clone()
        masked[0, positions] = mask
        with torch.no_grad():
            left = of.model.classify_document(masked, torch.ones_like(masked, dtype=torch.bool)).logits
        full = of.state.logits.softmax(-1)[0, of.predicted]
        return float(full - left.softmax(-1)[0, of.predicted])

    first, lot = (found[name].erasure for name in ("first", "lot"))
    assert first.comprehensiveness.mean == pytest.approx(lost(hidden["first"]), abs=1e-9)
    assert first.sufficiency.mean == pytest.approx(lost([4, 5, 6]), abs=1e-9)
    # Of scores all alike the first words go, so the second seed does what `first` does.
    assert lot.comprehensiveness.mean == pytest.approx((lost(hidden["last"]) + lost(hidden["first"])) / 2, abs=1e-9)
    assert lot.between_seeds.count == 2


def test_marks_are_words_that_share_a_character():
    text = Rationale("an awful, awful film", ((3, 8), (17, 20)))
    assert marked_words([(0, 2), (3, 8), (8, 9), (10, 15), (16, 20)], text) == {1, 4}


def test_runs_match_by_half_of_their_union():
    assert runs({9, 1, 2}) == [range(1, 3), range(9, 10)]
    assert run_f1({1, 2, 9}, {1, 2, 3}) == pytest.approx(2 / 3)
    assert run_f1({1}, {1, 2, 3}) == 0
    assert run_f1({4, 5}, {4, 5}) == 1
    assert run_f1(set(), {1}) == 0


def test_whoever_says_what_people_say_agrees_fully_and_the_opposite_least():
    of = case("the acting was terrible and the plot boring")
    marked = {3, 7}
    like = torch.zeros(8).index_fill(0, torch.tensor(sorted(marked)), 1.0)
    ground = PlausibilityGround(0.25, "unlike")
    ground.update(of, marked, {"like": [like], "unlike": [-like], "flat": [torch.zeros(8)]})
    found = ground.result()
    assert (found["like"].auprc.mean, found["like"].token_f1.mean, found["like"].iou_f1.mean) == (1, 1, 1)
    assert found["unlike"].token_f1.mean == 0
    assert found["flat"].auprc.mean == pytest.approx(2 / 8)
    assert found["like"].advantage.mean == pytest.approx(1 - found["unlike"].auprc.mean)


def test_figures_are_means_over_seeds_then_texts():
    figures = Figures()
    figures.add(0, {"a": [{"x": 1.0}, {"x": 3.0}], "b": [{"x": 0.5}]})
    figures.add(1, {"a": [{"x": 2.0}, {"x": 6.0}], "b": [{"x": math.nan}]})
    assert figures.mean("a", "x").mean == 3
    assert figures.mean("b", "x").count == 1
    seeds = figures.between_seeds("a", "x")
    assert (seeds.mean, seeds.count) == (3, 2)
    assert figures.between_seeds("b", "x") is None


def test_cost_is_of_the_work_done():
    made, short = timed(lambda: 7)
    _, long = timed(lambda: sum(range(300_000)))
    assert made == 7
    assert 0 <= short < long
    taken = peak_megabytes(lambda: torch.ones(8_000_000).sum())
    assert taken is None or 25 < taken < 60


def test_work_is_done_once_and_its_time_and_memory_stand_beside_what_it_gives():
    done = []
    made, cost = with_cost(lambda: done.append(float(torch.ones(8_000_000).sum())) or "made")
    assert (made, done) == ("made", [8e6])
    assert cost["seconds"] >= 0
    assert cost["peak_megabytes"] is None or 25 < cost["peak_megabytes"] < 60


def test_work_is_done_where_memory_cannot_be_told(monkeypatch):
    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    assert with_cost(lambda: 7)[1]["peak_megabytes"] is None
    assert with_cost(lambda: 7)[0] == 7
