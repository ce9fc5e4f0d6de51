import copy
import math
import random

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from torch import nn

from lexical_sae.training.optim import (
    AdamWEMA,
    OptimizerConfig,
    ParameterGroup,
    ScheduleFree,
    centralise_gradients,
    schedule_factor,
)
from lexical_sae.training.preparation.lr_range import (
    FEWEST,
    LARGEST,
    SMALLEST,
    Reading,
    lr_range_test,
    rate_after_fall,
    rate_with_words,
)
from lexical_sae.training.resuming.random_state import chance_as_found
from tests.training.bitwise import same

CONFIGS = [AdamWEMA.Config(), AdamWEMA.Config(ema=None, schedule="linear"), ScheduleFree.Config()]
TARGET = torch.tensor([[1.0, -2.0, 3.0]])


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))


def groups_of(model: nn.Module, lr: float = 0.01) -> list[ParameterGroup]:
    return [
        ParameterGroup("encoder", list(model[0].parameters()), lr),
        ParameterGroup("head", list(model[3].parameters()), 5 * lr),
    ]


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        (model(torch.randn(4, 3)) - TARGET).square().mean().backward()
        optimizer.step()


def weights(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


def equal(left, right):
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_every_optimizer_lowers_the_loss_of_the_weights_it_scores(config):
    model = network()
    optimizer = config.build(groups_of(model), 300)
    x = torch.randn(64, 3)

    def scored():
        with optimizer.averaged_weights(), torch.no_grad():
            return (model.eval()(x) - TARGET).square().mean().item()

    before = scored()
    train(model.train(), optimizer, 300)
    assert scored() < before / 5


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
@pytest.mark.parametrize("fails", [False, True])
def test_the_weights_that_learn_come_back_bitwise(config, fails):
    model = network()
    optimizer = config.build(groups_of(model), 50)
    train(model, optimizer, 7)
    before, objects = weights(model), list(model.parameters())
    try:
        with optimizer.averaged_weights():
            shown = weights(model)
            model[0].weight.data.fill_(9)
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert equal(before, weights(model))
    assert all(a is b for a, b in zip(objects, model.parameters(), strict=True))
    assert equal(before, shown) == (config == CONFIGS[1])
    train(model, optimizer, 1)


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_looking_at_the_average_does_not_change_the_course(config):
    runs = []
    for looks in (False, True):
        model = network()
        optimizer = config.build(groups_of(model), 20)
        torch.manual_seed(1)
        for _ in range(20):
            train(model, optimizer, 1)
            if looks:
                with optimizer.averaged_weights(), optimizer.averaged_weights():
                    pass
        runs.append(weights(model))
    assert equal(*runs)


def test_schedule_free_scores_the_weights_of_its_own_evaluation_mode():
    model = network()
    optimizer = ScheduleFree.Config().build(groups_of(model), 50)
    train(model, optimizer, 9)
    with optimizer.averaged_weights():
        shown = weights(model)
        assert not optimizer.inner.param_groups[0]["train_mode"]
    optimizer.inner.eval()
    assert equal(shown, weights(model))


def test_schedule_free_decays_by_a_tenth_of_each_rate():
    optimizer = ScheduleFree.Config().build(groups_of(network(), 3e-4), 50)
    assert [group["weight_decay"] for group in optimizer.inner.param_groups] == pytest.approx([3e-5, 15e-5])


@pytest.mark.parametrize("steps", [1, 2, 30])
def test_the_average_is_the_textbook_bias_corrected_one(steps):
    model = network()
    optimizer = AdamWEMA.Config(ema=0.9).build(groups_of(model), 30)
    total = [torch.zeros_like(p) for p in model.parameters()]
    for _ in range(steps):
        train(model, optimizer, 1)
        total = [0.9 * t + 0.1 * p.detach() for t, p in zip(total, model.parameters(), strict=True)]
    with optimizer.averaged_weights():
        for parameter, t in zip(model.parameters(), total, strict=True):
            torch.testing.assert_close(parameter.detach(), t / (1 - 0.9**steps))


def test_a_short_run_does_not_keep_the_initial_weights():
    model = network()
    initial = weights(model)
    optimizer = AdamWEMA.Config(ema=0.999, schedule="constant", warmup=0).build(groups_of(model, 0.05), 20)
    train(model, optimizer, 20)
    moved = sum((a - b).norm() for a, b in zip(weights(model), initial, strict=True))
    with optimizer.averaged_weights():
        averaged = sum((a - b).norm() for a, b in zip(weights(model), initial, strict=True))
    # Without the correction 0.999^20 = 98 % of the average would be the initial weights.
    assert averaged > 0.3 * moved


def test_the_average_before_the_first_step_is_the_weights_themselves():
    model = network()
    before = weights(model)
    with AdamWEMA.Config().build(groups_of(model), 5).averaged_weights():
        assert equal(before, weights(model))


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_no_step_and_no_checkpoint_while_the_average_is_shown(config):
    model = network()
    optimizer = config.build(groups_of(model), 5)
    train(model, optimizer, 1)
    with optimizer.averaged_weights():
        with pytest.raises(RuntimeError, match="inside averaged_weights"):
            optimizer.step()
        with pytest.raises(RuntimeError, match="inside averaged_weights"):
            optimizer.state_dict()


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_a_loaded_state_goes_on_bitwise_and_shares_no_memory(config):
    model = network()
    optimizer = config.build(groups_of(model), 20)
    train(model, optimizer, 5)
    twin = network()
    resumed = config.build(groups_of(twin, lr=0.5), 7)
    twin.load_state_dict(model.state_dict())
    resumed.load_state_dict(optimizer.state_dict())
    with chance_as_found():
        train(model, optimizer, 5)
    train(twin, resumed, 5)
    assert equal(weights(model), weights(twin))
    assert optimizer.learning_rates() == resumed.learning_rates()
    with optimizer.averaged_weights(), resumed.averaged_weights():
        assert equal(weights(model), weights(twin))


def test_a_state_of_other_parameters_or_another_optimizer_is_refused():
    model = network()
    groups = groups_of(model)
    optimizer = AdamWEMA.Config().build(groups, 5)
    train(model, optimizer, 1)
    state = optimizer.state_dict()
    with pytest.raises(ValueError, match="optimiser 'adamw', this one is 'schedule_free'"):
        ScheduleFree.Config().build(groups, 5).load_state_dict(state)
    with pytest.raises(ValueError, match="group 'encoder' does not fit 'head'"):
        AdamWEMA.Config().build(groups[::-1], 5).load_state_dict(state)
    with pytest.raises(ValueError, match="2 parameter groups, not 1"):
        AdamWEMA.Config().build(groups[:1], 5).load_state_dict({**state, "ema": state["ema"][:2]})
    with pytest.raises(ValueError, match="averages 0 parameters, this optimiser 4"):
        optimizer.load_state_dict({**state, "ema": []})


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_no_number_moves_nothing(config, bad):
    model = network()
    optimizer = config.build(groups_of(model), 5)
    train(model, optimizer, 1)
    before = weights(model)
    model[0].weight.grad[0, 0] = bad
    with pytest.raises(FloatingPointError, match="at step 2; lower the learning rates"):
        optimizer.step()
    assert equal(before, weights(model))
    assert optimizer.steps == 1


def test_gradients_are_clipped_together_and_the_norm_before_is_reported():
    model = network()
    optimizer = AdamWEMA.Config(clip=0.5).build(groups_of(model), 5)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert optimizer.step().item() == pytest.approx(math.sqrt(count))
    clipped = math.sqrt(sum(float(parameter.grad.square().sum()) for parameter in model.parameters()))
    assert clipped == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
@pytest.mark.parametrize("planned", [1, 2, 7, 100])
def test_the_rate_rises_for_six_percent_then_never_again_and_every_planned_step_learns(schedule, planned):
    factors = [schedule_factor(schedule, step, planned, 0.06) for step in range(planned)]
    top = max(1, round(0.06 * planned))
    assert factors[top - 1] == max(factors) == 1.0
    assert factors[: top - 1] == sorted(factors[: top - 1])
    assert factors[top:] == sorted(factors[top:], reverse=True)
    assert min(factors) > 0
    assert schedule_factor(schedule, planned + 5, planned, 0.06) == (1.0 if schedule == "constant" else 0.0)


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_rates_are_given_by_group_name_and_in_proportion(config):
    model = network()
    optimizer = config.build(groups_of(model), 100)
    for step in range(8):
        rates = optimizer.learning_rates()
        assert rates["head"] == pytest.approx(5 * rates["encoder"])
        assert rates["encoder"] == pytest.approx(0.01 * min(1, max(1, step) / 6), rel=0.01)
        train(model, optimizer, 1)


def test_groups_that_cannot_be_trained_are_refused():
    model = network()
    head, encoder = groups_of(model)
    with pytest.raises(ValueError, match="share a name"):
        AdamWEMA.Config().build([head, head], 5)
    with pytest.raises(ValueError, match="nothing to train"):
        ScheduleFree.Config().build([ParameterGroup("encoder", [], 1.0)], 5)
    with pytest.raises(ValueError, match="planned_steps is 0"):
        AdamWEMA.Config().build([encoder], 0)


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_a_frozen_encoder_leaves_an_empty_group(config):
    model = network()
    optimizer = config.build([ParameterGroup("encoder", [], 1.0), groups_of(model)[1]], 5)
    train(model, optimizer, 2)
    with optimizer.averaged_weights():
        pass
    assert set(optimizer.learning_rates()) == {"encoder", "head"}


def test_configs_are_distinguished_by_kind():
    menu = TypeAdapter(OptimizerConfig)
    assert menu.validate_python({"kind": "adamw", "ema": None}) == AdamWEMA.Config(ema=None)
    assert menu.validate_python({"kind": "schedule_free"}) == ScheduleFree.Config()
    with pytest.raises(ValidationError):
        AdamWEMA.Config(ema=1.0)


def test_centralised_gradients_have_rows_of_mean_zero_and_vectors_stay():
    model = network()
    (model(torch.randn(4, 3)) - TARGET).square().mean().backward()
    bias = model[0].bias.grad.clone()
    mean = model[0].weight.grad.mean(1).abs().max()
    head = model[3].weight.grad.clone()
    centralise_gradients(model[0].parameters())
    assert mean > 1e-3
    assert model[0].weight.grad.mean(1).abs().max() < 1e-7
    assert torch.equal(model[0].bias.grad, bias)
    assert torch.equal(model[3].weight.grad, head)


class Watched(nn.Module):
    """A network with dropout and buffers that training moves, one in place and one by assignment."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network()
        self.register_buffer("seen", torch.tensor(0.0))
        self.register_buffer("count", torch.tensor(0), persistent=False)

    def loss(self, rows: torch.Tensor) -> torch.Tensor:
        self.seen.lerp_(rows.mean(), 0.1)
        self.count = self.count + 1
        return (self.net(rows) - TARGET).square().mean()


@pytest.mark.parametrize("fails", [False, True])
def test_the_range_test_leaves_everything_bitwise_as_found(fails):
    model = Watched()
    generator, torch_generator = np.random.default_rng(5), torch.Generator().manual_seed(5)
    generators = {"order": generator, "sampler": torch_generator}
    groups = groups_of(model.net)
    optimizer = AdamWEMA.Config().build(groups, 10)
    train(model.net, optimizer, 2)
    model.net[2].eval()

    def snapshot():
        return copy.deepcopy(
            (
                [p.detach() for p in model.parameters()],
                [p.grad for p in model.parameters()],
                [*model.buffers()],
                [part.training for part in model.modules()],
                optimizer.state_dict(),
            )
        )

    def loss_step(i):
        if fails and i == 50:
            raise KeyboardInterrupt
        model.train()
        torch.rand(1, generator=torch_generator)
        random.random()
        np.random.rand()
        return Reading(model.loss(torch.from_numpy(generator.normal(size=(4, 3))).float()), 1.0)

    def draws():
        # Not of Python's own generator, from which the type checker of the tests draws as well.
        return (np.random.rand(), generator.random(), torch.rand(2, generator=torch_generator))

    with chance_as_found(generators):
        expected = [*draws(), torch.rand(3)]
    before, objects = snapshot(), [*model.buffers()]
    try:
        lr_range_test(loss_step, groups, [model], generators)
    except KeyboardInterrupt:
        assert fails
    assert same(snapshot(), before)
    assert all(a is b for a, b in zip(objects, model.buffers(), strict=True))
    assert same([*draws(), torch.rand(3)], expected)


def test_the_range_test_finds_a_rate_that_trains_and_stays_in_bounds():
    model = Watched()
    found = lr_range_test(lambda _: Reading(model.loss(torch.randn(16, 3)), 1.0), groups_of(model.net), [model])
    assert len(found.rates) == len(found.losses) <= 100
    assert found.rates[0] == pytest.approx(1e-7)
    # A toy this small falls fastest at the very top, which is cut.
    assert found.lr == LARGEST


def test_the_range_test_stops_when_the_loss_runs_away():
    weight = nn.Linear(1, 1)
    calls = []

    def loss_step(i):
        calls.append(i)
        return Reading(weight(torch.ones(1, 1)).sum() * 0 + (math.nan if i == 30 else 1.0), 1.0)

    group = ParameterGroup("all", list(weight.parameters()), 3e-5)
    found = lr_range_test(loss_step, [group], [weight])
    assert calls == [*range(100), *range(31)], "every batch before the first step, then up to the one that failed"
    assert found.lr == 3e-5, "a loss that never falls keeps the rate that was asked for"


def test_a_loss_that_falls_because_every_word_closed_is_not_followed():
    """Guessing has a lower loss than an untrained head: without words there is no rate that trains."""
    for has_words in (True, False):
        weight = nn.Parameter(torch.tensor(1.0))
        group = ParameterGroup("all", [weight], 3e-5)

        def read(_, weight=weight, has_words=has_words):
            is_closed = weight.item() < 0.995
            loss = (1.4 if is_closed else 1.5) + (weight - weight.detach())
            return Reading(loss, float(has_words or not is_closed))

        found = lr_range_test(read, [group], [nn.ParameterList([weight])])
        if has_words:
            assert found.lr > 1e-4, "positive control: the same fall with words is followed"
        else:
            assert len(found.losses) < 100
            assert found.lr == 3e-5, "no rate makes it fall: the given one is kept"
        assert found.active == (1.0,) * 100


def test_a_rate_at_which_words_die_out_is_lowered_until_they_stay(caplog):
    tried = []

    def share_left(rate):
        tried.append(rate)
        return 1.0 if rate < 1e-4 else 0.5 * FEWEST

    assert rate_with_words(3.9e-4, share_left) == pytest.approx(3.9e-4 / 9)
    assert tried == pytest.approx([3.9e-4, 1.3e-4, 3.9e-4 / 9])
    assert "at a learning rate of 3.9e-04 only 5.0 % of the words stay active; trying 1.3e-04" in caplog.text
    assert rate_with_words(5e-5, share_left) == 5e-5
    assert rate_with_words(1e-4, lambda _: 0.0) == SMALLEST, "it ends"


@pytest.mark.parametrize("at", [1e-6, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("seed", range(3))
def test_the_rate_has_brought_most_of_a_noisy_fall(at, seed):
    rates = np.geomspace(1e-7, 1e-2, 100)
    fall = 2 - 1 / (1 + np.exp(-2 * np.log(rates / at)))
    noisy = fall + np.random.default_rng(seed).normal(scale=0.05, size=100)
    # The first batch was a hard one: the steepest fall of all, before anything can have been learned.
    noisy[0] += 2
    found = rate_after_fall(tuple(rates.tolist()), noisy.tolist())
    assert found is not None
    assert abs(math.log(found / (at * math.sqrt(3)))) < math.log(2), "three quarters of a logistic of this slope"
    assert rate_after_fall(tuple(rates.tolist()), (4 - fall).tolist()) is None


def test_the_range_test_does_not_depend_on_batches_that_are_harder_than_others():
    """A slow learner on batches whose difficulty differs by far more than any step changes."""
    found = []
    for scale in (0.0, 5.0):
        weight = nn.Parameter(torch.tensor(1.0))
        difficulty = np.random.default_rng(0).normal(scale=scale, size=100)
        group = ParameterGroup("all", [weight], 1.0)
        found.append(
            lr_range_test(
                lambda i, d=difficulty, w=weight: Reading(w.square() + float(d[i]), 1.0),
                [group],
                [nn.ParameterList([weight])],
            )
        )
    plain, uneven = (np.array(range_test.losses) - range_test.losses[0] for range_test in found)
    assert uneven == pytest.approx(plain, abs=1e-5)
    assert found[0].lr == pytest.approx(found[1].lr)
