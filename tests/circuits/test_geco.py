import json
import logging
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from lexical_sae.circuits.geco import ControllerConfig, CountConstraint, ce_at_accuracy

BOTH = ["geco", "relative_geco"]


def controller(kind="geco", steps_per_epoch=100, total_steps=1000, active_target=100, tau=0.5, **settings):
    config = TypeAdapter(ControllerConfig).validate_python({"kind": kind, "tau_ce": tau, **settings})
    geco = config.build(steps_per_epoch=steps_per_epoch, total_steps=total_steps, active_target=active_target)
    if tau is not None:
        geco.finish_warmup()
    return geco


@given(st.lists(st.floats(0, 3), min_size=1, max_size=30), st.sampled_from([1, 10, 500]))
def test_the_papers_form_is_the_formula(ces, steps_per_epoch):
    geco = controller(steps_per_epoch=steps_per_epoch, tau=0.4)
    eta, average, log_lambda = 2 / (steps_per_epoch + 1), ces[0] - 0.4, 0.0
    for index, ce in enumerate(ces):
        average = average if index == 0 else (1 - eta) * average + eta * (ce - 0.4)
        log_lambda = min(5, max(-5, log_lambda + eta * average))
        geco.step(ce)
    assert geco.multiplier == pytest.approx(math.exp(log_lambda))
    assert geco.violation == pytest.approx(average)


@pytest.mark.parametrize("kind", BOTH)
def test_an_infeasible_constraint_drives_lambda_to_its_clamp_and_says_so_once(kind, caplog):
    geco = controller(kind)
    with caplog.at_level(logging.WARNING):
        for _ in range(3000):
            geco.step(1.5)
    assert geco.multiplier == pytest.approx(math.exp(5))
    assert geco.is_on_clamp
    assert [record.message for record in caplog.records] == [
        "GECO's lambda sits on its clamp at 148: the constraint cannot be met as things are"
    ]


@pytest.mark.parametrize("kind", BOTH)
def test_slack_drives_lambda_down_and_a_met_constraint_leaves_it(kind):
    free = {"least": 0.01} if kind == "relative_geco" else {}
    geco, still = controller(kind, **free), controller(kind)
    for _ in range(500):
        geco.step(0.2)
        still.step(0.5)
    assert geco.multiplier < 0.5
    assert still.multiplier == 1
    assert not still.is_on_clamp
    assert geco.violation is not None
    assert geco.violation < 0


@pytest.mark.parametrize("kind", BOTH)
def test_lambda_leaves_its_clamp_when_the_constraint_is_met_again(kind):
    geco = controller(kind)
    for _ in range(5000):
        geco.step(2.0)
    for _ in range(1000):
        geco.step(0.1)
    assert not geco.is_on_clamp or geco.multiplier < 1


def test_the_papers_lambda_hardly_moves_and_ours_does_whatever_the_length_of_the_run():
    for epochs, steps_per_epoch in ((2, 50), (3, 400)):
        total = epochs * steps_per_epoch
        papers = controller("geco", steps_per_epoch, total)
        ours = controller("relative_geco", steps_per_epoch, total, change_per_run=3.0)
        for _ in range(total):
            papers.step(0.55)
            ours.step(0.55)
        assert math.log(papers.multiplier) == pytest.approx(0.1 * epochs, rel=0.05)
        assert math.log(ours.multiplier) == pytest.approx(3.0, rel=1e-6)


def test_the_relative_lambda_never_stops_the_task_from_being_learned():
    geco = controller("relative_geco")
    for _ in range(500):
        geco.step(0.01)
    assert geco.multiplier == 1
    assert not geco.is_on_clamp
    for _ in range(500):
        geco.step(2.0)
    assert geco.multiplier > 1


def test_the_relative_form_does_not_care_for_the_scale_of_the_loss():
    small, large = controller("relative_geco", tau=0.01), controller("relative_geco", tau=2.0)
    for _ in range(100):
        small.step(0.012)
        large.step(2.4)
    assert small.multiplier == pytest.approx(large.multiplier)
    assert small.multiplier > 1


def test_one_wild_loss_does_not_throw_the_relative_lambda_to_its_clamp():
    geco = controller("relative_geco", total_steps=1000, tau=0.1)
    geco.step(50.0)
    assert math.log(geco.multiplier) == pytest.approx(0.03)


def test_only_a_call_moves_lambda_so_micro_batches_count_once():
    geco = controller(steps_per_epoch=9)
    before = geco.multiplier
    geco.step(float(np.mean([0.4, 0.8])))
    assert before == 1
    assert geco.multiplier == pytest.approx(math.exp(0.2 * 0.1))


def test_tau_is_the_first_quartile_of_the_last_fifty_warm_up_steps():
    geco = controller(tau=None)
    for ce in np.linspace(9, 1, 80):
        geco.record_warmup(ce)
    assert geco.finish_warmup() == pytest.approx(np.quantile(np.linspace(9, 1, 80)[-50:], 0.25))


def test_a_few_warm_up_steps_give_their_mean_and_say_so(caplog):
    geco = controller(tau=None)
    for ce in (3.0, 2.0, 1.0):
        geco.record_warmup(ce)
    with caplog.at_level(logging.WARNING):
        assert geco.finish_warmup() == 2.0
    assert "mean of only 3 warm-up steps" in caplog.text


def test_no_warm_up_step_is_refused_unless_tau_is_given():
    with pytest.raises(ValueError, match=r"raise training\.warmup_fraction, or training\.max_epochs .*, or set tau_ce"):
        controller(tau=None).finish_warmup()
    assert controller(tau=0.7).tau == 0.7
    assert controller(tau=None).finish_warmup(ce_level=0.3) == 0.3


def test_the_override_wins_over_the_level_and_the_level_over_the_quartile():
    geco = controller(tau=0.7)
    geco.record_warmup(2.0)
    assert geco.finish_warmup(ce_level=0.3) == 0.7
    free = controller(tau=None)
    for _ in range(60):
        free.record_warmup(2.0)
    assert free.finish_warmup(ce_level=0.3) == 0.3


def test_a_constrained_step_before_the_warm_up_is_finished_is_refused():
    with pytest.raises(ValueError, match=r"call finish_warmup\(\)"):
        controller(tau=None).step(1.0)


@pytest.mark.parametrize("kind", BOTH)
def test_a_tau_of_zero_divides_nothing(kind):
    geco = controller(kind, tau=None)
    for _ in range(10):
        geco.record_warmup(0.0)
    geco.finish_warmup()
    geco.step(0.0)
    geco.step(0.1)
    assert math.isfinite(geco.multiplier)
    with pytest.raises(ValidationError):
        controller(kind, tau=0.0)


@pytest.mark.parametrize(
    ("active", "factor"), [(10, 1.0), (100, 1.0), (150, 1 + 0.5 * math.log(1.5)), (272, 1.5), (9999, 1.5)]
)
def test_tau_is_relaxed_while_too_many_words_are_active(active, factor):
    geco = controller(sparsity_aware=True, active_target=100)
    assert geco.current_tau(active) == pytest.approx(0.5 * factor, rel=1e-3)
    assert controller().current_tau(active) == 0.5


def test_a_sparsity_aware_tau_needs_the_count():
    with pytest.raises(ValueError, match="needs the number of active words"):
        controller(sparsity_aware=True).step(0.5)


def test_feasible_epochs_are_within_five_percent_of_tau():
    assert controller().is_feasible(0.52, guessing_ce=0.69)
    assert not controller().is_feasible(0.53, guessing_ce=0.69)


@pytest.mark.parametrize("kind", BOTH)
def test_what_guessing_reaches_is_never_feasible(kind):
    """A warm-up that learned nothing leaves a tau at the cross-entropy of guessing, or far above it."""
    guessing = math.log(4)
    for tau in (guessing, 1.01 * guessing, 10 * guessing):
        geco = controller(kind, tau=tau)
        assert not geco.is_feasible(guessing, guessing)
        assert not geco.is_feasible(guessing * (1 - 1e-6), guessing), "a rounding error below it"
        assert geco.is_feasible(0.9 * guessing, guessing)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("cut", [2, 7])
def test_a_resumed_controller_goes_on_bit_for_bit(kind, cut):
    losses = np.random.default_rng(0).uniform(0, 1, 12)

    def play(geco, steps):
        seen = []
        for step in steps:
            if step < 5:
                geco.record_warmup(losses[step])
                continue
            if step == 5:
                geco.finish_warmup()
            geco.step(losses[step])
            seen.append(geco.multiplier)
        return seen

    expected = play(controller(kind, tau=None), range(12))
    first, second = controller(kind, tau=None), controller(kind, tau=None)
    seen = play(first, range(cut))
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert seen + play(second, range(cut, 12)) == expected


def test_the_count_multiplier_rises_above_the_target_and_falls_below_it():
    above, below, met = (
        CountConstraint.Config(change_per_run=1.0).build(total_steps=200, active_target=100) for _ in range(3)
    )
    for _ in range(200):
        above.step(110)
        below.step(80)
        met.step(100)
    assert math.log(above.multiplier) == pytest.approx(1.0)
    assert math.log(below.multiplier) == pytest.approx(-2.0)
    assert met.multiplier == 1
    assert (above.violation, below.violation) == (pytest.approx(0.1), pytest.approx(-0.2))


def test_the_count_multiplier_depends_on_counts_relative_to_the_target_only():
    few, many = (CountConstraint.Config().build(total_steps=50, active_target=target) for target in (10, 1000))
    for _ in range(50):
        few.step(12)
        many.step(1200)
    assert few.multiplier == pytest.approx(many.multiplier)


def test_a_resumed_count_constraint_goes_on_bit_for_bit():
    first, second = (CountConstraint.Config().build(total_steps=50, active_target=10) for _ in range(2))
    first.step(17)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for constraint in (first, second):
        constraint.step(9)
    assert first.multiplier == second.multiplier


def test_an_impossible_count_reaches_the_clamp():
    constraint = CountConstraint.Config(clamp=2.0).build(total_steps=100, active_target=10)
    for _ in range(100):
        constraint.step(500)
    assert constraint.is_on_clamp
    assert constraint.multiplier == pytest.approx(math.exp(2))


def test_a_loss_that_is_no_number_is_refused():
    with pytest.raises(FloatingPointError, match="GECO's lambda became nan"):
        controller().step(math.nan)


def test_the_level_of_an_accuracy_is_the_loss_of_the_first_validation_that_reaches_it(caplog):
    validations = [(0.6, 0.9), (0.8, 0.5), (0.85, 0.4)]
    assert ce_at_accuracy(0.8, validations) == 0.5
    assert ce_at_accuracy(0.9, validations) is None
    assert "0.900 was not reached in warm-up (best 0.850)" in caplog.text


def test_lambda_stays_above_minus_its_clamp_whatever_the_least():
    geco = controller("relative_geco", least=1e-4, clamp=2.0)
    for _ in range(2000):
        geco.step(0.01)
    assert geco.multiplier == pytest.approx(math.exp(-2.0))
