import pytest
import torch
from torch.nn.functional import normalize

from lexical_sae.studies.post_hoc_sae import fitting as posthoc_sae
from lexical_sae.studies.post_hoc_sae.fitting import (
    FITTERS,
    SAESettings,
    SteeredL1,
    fit_random_dictionary,
    fit_relu_sae,
    fit_topk_sae,
)

WIDTH, PLANTED, ACTIVE = 12, 16, 2
SETTINGS = SAESettings(features_per_unit=2, steps=400, batch_size=64, learning_rate=3e-2)


def planted(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """States that are each the sum of two of 16 directions, and the directions."""
    directions = normalize(torch.randn(PLANTED, WIDTH, generator=torch.Generator().manual_seed(9)), dim=-1)
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.rand(count, PLANTED, generator=generator).argsort(1)[:, :ACTIVE]
    activations = 0.5 + torch.rand(count, ACTIVE, generator=generator)
    return (activations[..., None] * directions[chosen]).sum(1), directions


def recovered(sae, directions) -> float:
    """Mean over planted directions of the cosine with the nearest feature."""
    return float((normalize(sae.dictionary, dim=-1) @ directions.T).amax(0).mean())


def rebuilt(sae, states) -> float:
    error = (sae(states) - states).square().sum()
    return 1 - float(error / (states - states.mean(0)).square().sum())


@pytest.fixture(scope="module")
def fitted():
    states, _ = planted(2000, seed=0)
    return {name: fitter(states, ACTIVE, SETTINGS) for name, fitter in FITTERS.items()}


def test_a_planted_dictionary_is_recovered_and_a_random_one_is_not_near(fitted):
    _, directions = planted(1, seed=0)
    assert recovered(fitted["TopK SAE"], directions) > 0.85
    assert recovered(fitted["ReLU SAE"], directions) > 0.85
    assert recovered(fitted["random dictionary"], directions) < 0.7


def test_held_out_states_are_rebuilt_far_better_than_by_random_directions(fitted):
    unseen, _ = planted(500, seed=1)
    shares = {name: rebuilt(sae, unseen) for name, sae in fitted.items()}
    assert shares["TopK SAE"] > 0.8
    # Like with like: as many features, of the same kind. The penalty of the ReLU features makes them too weak.
    assert shares["random dictionary"] < shares["TopK SAE"] - 0.3
    assert shares["random dictionary"] < shares["ReLU SAE"] - 0.05


def test_as_many_features_are_active_as_were_asked_for(fitted):
    unseen, _ = planted(500, seed=1)
    active = {name: float((sae.encode(unseen) > 0).sum(-1).float().mean()) for name, sae in fitted.items()}
    assert active["TopK SAE"] <= ACTIVE
    assert active["ReLU SAE"] == pytest.approx(ACTIVE, rel=0.5)


def test_the_random_dictionary_stays_as_it_was_drawn():
    states, _ = planted(50, seed=0)
    one, other = (fit_random_dictionary(states, ACTIVE, SETTINGS.model_copy(update={"steps": n})) for n in (1, 9))
    assert torch.equal(one.dictionary, other.dictionary)
    assert not torch.equal(one.reader, other.reader)


@pytest.mark.parametrize("fitter", [fit_relu_sae, fit_topk_sae], ids=["relu", "topk"])
def test_a_fit_depends_on_its_seed_alone(fitter):
    states, _ = planted(60, seed=0)
    few = SETTINGS.model_copy(update={"steps": 8, "revivals": 2})
    first, second = (fitter(states, ACTIVE, few).dictionary for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, fitter(states, ACTIVE, few.model_copy(update={"seed": 1})).dictionary)


def test_dead_features_come_back_to_life():
    states, _ = planted(1000, seed=0)
    few = SETTINGS.model_copy(update={"steps": 60})

    def dead(revivals: int) -> int:
        sae = fit_topk_sae(states, ACTIVE, few.model_copy(update={"revivals": revivals}))
        return int((sae.encode(states) > 0).any(0).logical_not().sum())

    assert dead(revivals=4) < dead(revivals=0)


def test_features_that_come_back_are_no_twins(monkeypatch):
    states, _ = planted(1000, seed=0)
    found = []
    revive = posthoc_sae._revive

    def watched(sae, *rest):
        revive(sae, *rest)
        found.append((sae.dictionary.detach() @ sae.dictionary.detach().T).fill_diagonal_(0).max())

    monkeypatch.setattr(posthoc_sae, "_revive", watched)
    # More dead features than states in a batch: some must wait.
    wide = SAESettings(features_per_unit=16, steps=12, batch_size=16, revivals=3)
    fit_topk_sae(states, ACTIVE, wide)
    assert len(found) == 3
    assert max(found) < 1 - 1e-5


def test_the_penalty_rises_while_too_many_features_are_active():
    penalty = SteeredL1(active=1)
    penalty(torch.ones(2, 3))
    assert penalty.weight > SteeredL1.START
    for _ in range(3):
        penalty(torch.zeros(2, 3))
    assert penalty.weight < SteeredL1.START


def test_too_few_states_are_refused_and_progress_is_told():
    with pytest.raises(ValueError, match="at least two texts"):
        fit_topk_sae(torch.ones(1, 4), 1)
    steps = []
    fit_topk_sae(torch.randn(9, 4), 1, SAESettings(steps=3), steps.append)
    assert [step.done for step in steps] == [1, 2, 3]
