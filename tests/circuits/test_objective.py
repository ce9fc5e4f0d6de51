import dataclasses

import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from lexical_sae.circuits.balances import RunningMean, Sum, Uncertainty, Weighted
from lexical_sae.circuits.objective import Objective, TermConfig
from lexical_sae.circuits.terms import (
    ActiveCount,
    CompletenessKL,
    DFFlops,
    FrequencyPenalty,
    SeparationContrastive,
    SeparationCosine,
)
from lexical_sae.models.circuit_state import circuit_mask
from lexical_sae.models.heads import ReluHead
from lexical_sae.models.layers.activation import GateOutput
from tests.circuits.views import document_view, model, position_view

KINDS = [
    "completeness_ce",
    "completeness_kl",
    "separation_cosine",
    "separation_contrastive",
    "hoyer",
    "df_flops",
    "l1_l0",
    "gate_l0",
    "frequency",
    "active_count",
    "own_words",
]
# Settings under which every word of a tiny model is asked for something at the very first step.
EAGER = {"frequency": {"quiet_steps": 0, "least_frequency": 0.99}, "active_count": {"target": 1.0}}
PER_SAMPLE = ["completeness_ce", "completeness_kl", "hoyer", "l1_l0", "gate_l0", "own_words"]


def config(kind, **others):
    return TypeAdapter(TermConfig).validate_python({"kind": kind, **EAGER.get(kind, {}), **others})


def objective(*kinds, balance="sum", size, num_labels=3):
    settings = {"terms": [config(kind).model_dump() for kind in kinds], "balance": balance}
    return Objective.Config.model_validate(settings).build(size, num_labels)


def gradients(of):
    return {name: p.grad for name, p in of.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}


@pytest.mark.parametrize("gate", ["drelu", "gated_jumprelu", "jumprelu"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_term_pulls_on_the_model(kind, gate):
    sae = model(gate)
    term = config(kind).build(len(sae.dimensions), 3)
    loss = term(document_view(sae))
    loss.backward()
    pulled = gradients(sae)
    assert loss.item() > 0
    assert any(name.startswith("gate." if kind == "frequency" else "backbone.encoder") for name in pulled)
    assert all(grad.isfinite().all() for grad in pulled.values())


@pytest.mark.parametrize("kind", KINDS)
def test_every_term_pulls_on_a_tagger(kind):
    sae = model()
    term = config(kind).build(len(sae.dimensions), 4)
    term(position_view(sae)).backward()
    assert gradients(sae)


@pytest.mark.parametrize("kind", ["completeness_kl", "separation_cosine", "separation_contrastive", "hoyer"])
def test_terms_on_attributions_pull_on_the_head_and_read_the_asked_gauge(kind):
    sae = model()
    values = []
    for centered in (True, False):
        sae.zero_grad()
        loss = config(kind, centered=centered).build(len(sae.dimensions), 3)(document_view(sae))
        loss.backward()
        values.append(loss.item())
        assert any(name.startswith("heads.classify") for name in gradients(sae))
    assert values[0] != pytest.approx(values[1], rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_common_shift_of_all_classes_changes_no_centered_term(kind):
    sae = model()
    found = []
    for _ in range(2):
        found.append(config(kind).build(len(sae.dimensions), 3)(document_view(sae)).item())
        with torch.no_grad():
            sae.heads["classify"].class_weights.add_(torch.randn(256))
    assert found[1] == pytest.approx(found[0], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("kind", PER_SAMPLE)
def test_accumulating_a_per_sample_term_over_parts_gives_the_batch(kind):
    sae = model()
    term = config(kind).build(len(sae.dimensions), 3)
    whole = term(document_view(sae))
    parts = (term(document_view(sae, slice(0, 2))) * 2 + term(document_view(sae, slice(2, 6))) * 4) / 6
    torch.testing.assert_close(whole, parts, rtol=1e-4, atol=1e-6)


def test_the_contrastive_term_adds_up_over_parts_once_the_centroids_are_given():
    sae = model()
    term = SeparationContrastive.Config().build(len(sae.dimensions), 3)
    term(document_view(sae))
    term.eval()
    whole = term(document_view(sae))
    parts = (term(document_view(sae, slice(0, 2))) * 2 + term(document_view(sae, slice(2, 6))) * 4) / 6
    assert whole > 0
    torch.testing.assert_close(whole, parts, rtol=1e-4, atol=1e-6)


def test_completeness_is_asked_of_a_text_that_is_really_ablated():
    sae = model()
    view = document_view(sae)
    seen = []

    def head(activations):
        seen.append(activations.detach())
        return view.head(activations)

    CompletenessKL.Config().build(len(sae.dimensions), 3)(dataclasses.replace(view, head=head))
    left = seen[0].abs().sum(-1) / view.state.sparse_vector.abs().sum(-1)
    assert (left < 0.6).all()
    active = view.state.sparse_vector != 0
    mask = circuit_mask(view.attributions(centered=True), active, 0.1, 10.0)
    torch.testing.assert_close(seen[0], view.state.sparse_vector * mask)


@pytest.mark.parametrize("kind", ["completeness_kl", "completeness_ce"])
def test_minimising_completeness_makes_small_circuits_sufficient(kind):
    torch.manual_seed(0)
    size, head = 200, ReluHead.Config(hidden_units=16).build(200, 2)
    activations, labels = torch.rand(64, size) * (torch.rand(64, size) < 0.3), torch.arange(64) % 2
    activations[labels == 0, 3], activations[labels == 1, 7] = 1.0, 1.0
    document = document_view(model())
    term = config(kind).build(size, 2)
    before = term(_plain_view(document, head, activations, labels)).item()
    optimizer = torch.optim.Adam(head.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        view = _plain_view(document, head, activations, labels)
        (torch.nn.functional.cross_entropy(view.state.logits, labels) + term(view)).backward()
        optimizer.step()
    view = _plain_view(document, head, activations, labels)
    assert term(view).item() < min(0.05, before / 3)
    # The planted words are in the circuit of nearly every text.
    mask = circuit_mask(view.attributions(centered=True), activations != 0, 0.1, float("inf"))
    planted = torch.where(labels == 0, 3, 7)
    assert mask.gather(1, planted[:, None]).mean() > 0.95


def _plain_view(view, head, activations, labels):
    """The view with a head and strengths of our own."""
    gate = GateOutput(activations, (activations > 0).float(), activations.clamp(max=1))
    state, theta = head(activations), torch.ones(activations.shape[-1])
    return dataclasses.replace(
        view, state=state, gate=gate, labels=labels, head=head, thresholds=theta, excess=None, own=None
    )


def test_training_against_the_contrastive_term_cannot_shrink_the_margin_below_its_floor():
    sae = model()
    term = SeparationContrastive.Config(margin=0.3, least_margin=0.1).build(len(sae.dimensions), 3)
    assert term.margin().item() == pytest.approx(0.3)
    optimizer, view = torch.optim.SGD(term.parameters(), lr=5.0), document_view(sae)
    for _ in range(200):
        optimizer.zero_grad()
        term(view).backward(retain_graph=True)
        optimizer.step()
    assert 0.1 <= term.margin().item() < 0.2
    term.eval()
    # Evaluated with the initial margin, so that a shrinking margin does not look like progress.
    first = SeparationContrastive.Config(margin=0.3, least_margin=0.1).build(len(sae.dimensions), 3).eval()
    first.tracker.load_state_dict(term.tracker.state_dict())
    assert torch.equal(term(document_view(sae)), first(document_view(sae)))


def test_a_margin_at_its_floor_is_refused():
    with pytest.raises(ValidationError, match="must be above least_margin"):
        SeparationContrastive.Config(margin=0.1, least_margin=0.1)


@pytest.mark.parametrize("kind", ["separation_cosine", "separation_contrastive", "df_flops", "frequency"])
def test_evaluation_leaves_the_trackers_alone(kind):
    sae = model()
    term = config(kind).build(len(sae.dimensions), 3)
    term(document_view(sae))
    before = {name: value.clone() for name, value in term.state_dict().items()}
    term.eval()
    assert term(document_view(sae)).item() > 0
    assert all(torch.equal(value, before[name]) for name, value in term.state_dict().items())


def test_separation_skips_classes_that_never_appeared():
    sae = model()
    view = document_view(sae)
    term = SeparationCosine.Config().build(len(sae.dimensions), 77)
    assert term(view).item() == pytest.approx(
        SeparationCosine.Config().build(len(sae.dimensions), 3)(document_view(sae)).item()
    )


def test_the_frequency_penalty_is_silent_at_first():
    sae = model()
    term = FrequencyPenalty.Config(least_frequency=0.99).build(len(sae.dimensions), 3)
    values = [term(document_view(sae)).item() for _ in range(52)]
    assert values[:50] == [0] * 50
    assert values[51] > 0


@pytest.mark.parametrize("gate", ["drelu", "gated_jumprelu", "jumprelu"])
def test_active_count_is_the_surplus_of_open_words_whatever_the_kernel_says(gate):
    view = document_view(model(gate))
    count = view.is_open.sum(-1).double().mean().item()
    for factor, surplus in ((0.5, 1.0), (1.0, 0.0), (1.01, 0.0)):
        term = ActiveCount.Config(target=factor * count).build(view.state.sparse_vector.shape[-1], 3)
        assert term(view).item() == pytest.approx(surplus, abs=1e-6)


@pytest.mark.parametrize("kind", ["completeness_ce", "completeness_kl"])
def test_the_circuit_is_that_of_the_label_in_training_and_of_the_decision_in_evaluation(kind):
    sae = model()
    view = document_view(sae)
    wrong = dataclasses.replace(view, labels=(view.state.logits.argmax(-1) + 1) % 3)
    trained, decided = (config(kind, of_prediction=it).build(len(sae.dimensions), 3) for it in (False, True))
    assert trained(wrong).item() != pytest.approx(decided(wrong).item(), rel=1e-3)
    assert trained.eval()(wrong).item() == decided(wrong).item() == decided.eval()(wrong).item()


def test_own_words_reports_what_it_misses():
    view = dataclasses.replace(document_view(model()), own=None)
    with pytest.raises(ValueError, match="needs StepView.excess and StepView.own"):
        config("own_words").build(10, 3)(view)


def test_the_objective_returns_the_balanced_loss_and_the_plain_values():
    sae = model()
    asked = {
        "terms": [{"kind": "completeness_kl", "weight": 2.0}, {"kind": "gate_l0", "weight": 0.5}],
        "balance": "weighted",
    }
    whole = Objective.Config.model_validate(asked).build(len(sae.dimensions), 3)
    total, values = whole(document_view(sae))
    assert list(values) == ["completeness_kl", "gate_l0"]
    torch.testing.assert_close(total, 2 * values["completeness_kl"] + 0.5 * values["gate_l0"])
    assert whole.score({name: value.item() for name, value in values.items()}) == pytest.approx(total.item())
    assert not any(value.requires_grad for value in values.values())
    total.backward()
    assert gradients(sae)


def test_the_warm_up_asks_only_for_what_does_not_wait():
    sae = model()
    asked = {
        "terms": [{"kind": "gate_l0", "weight": 0.5, "in_warmup": True}, {"kind": "completeness_kl", "weight": 2.0}],
        "balance": "uncertainty",
    }
    whole = Objective.Config.model_validate(asked).build(len(sae.dimensions), 3)
    total, values = whole.warm_up(document_view(sae))
    assert list(values) == ["gate_l0"]
    torch.testing.assert_close(total, 0.5 * values["gate_l0"])
    total.backward()
    assert gradients(sae)
    assert not gradients(whole)


def test_all_terms_share_one_attribution_and_one_backward():
    sae = model()
    whole = objective(*KINDS, balance="uncertainty", size=len(sae.dimensions))
    total, values = whole(document_view(sae))
    total.backward()
    assert set(values) == set(KINDS)
    assert {"terms.separation_contrastive.raw_margin", "balance.raw_log_variance"} <= set(gradients(whole))


def test_no_terms_and_no_samples_cost_nothing():
    sae = model()
    for asked, rows in ((objective(size=4), slice(None)), (objective("hoyer", size=len(sae.dimensions)), slice(0))):
        view = document_view(sae)
        if rows.stop == 0:
            state = view.head(view.state.sparse_vector[:0])
            gate = view.gate.map(lambda field: field[:0])
            view = dataclasses.replace(view, state=state, gate=gate, labels=view.labels[:0], excess=None, own=None)
        for total, values in (asked(view), asked.warm_up(view)):
            total.backward(retain_graph=True)
            assert total.item() == 0
            assert values == {}


def test_a_kind_twice_or_unknown_is_refused():
    with pytest.raises(ValidationError, match="names a kind twice"):
        Objective.Config.model_validate({"terms": ["hoyer", "hoyer"]})
    with pytest.raises(ValidationError, match="does not match any of the expected tags"):
        Objective.Config.model_validate({"terms": ["hoyr"]})


def test_settings_survive_a_round_trip_as_plain_data():
    settings = Objective.Config.model_validate({"terms": KINDS, "balance": "running_mean"})
    assert Objective.Config.model_validate(settings.model_dump(mode="json")) == settings


def test_a_checkpointed_objective_goes_on_exactly():
    sae = model()
    first = objective(*KINDS, balance="running_mean", size=len(sae.dimensions))
    first(document_view(sae))
    first.end_of_epoch()
    second = objective(*KINDS, balance="running_mean", size=len(sae.dimensions))
    second.load_state_dict(first.state_dict())
    totals = [whole(document_view(sae)).total for whole in (first, second)]
    assert torch.equal(*totals)


def test_an_epoch_ends_for_every_term():
    sae = model()
    whole = objective("df_flops", "hoyer", "frequency", size=len(sae.dimensions))
    whole(document_view(sae))
    term = whole.terms["df_flops"]
    assert isinstance(term, DFFlops)
    before = term.tracker.counts.clone()
    whole.end_of_epoch()
    torch.testing.assert_close(term.tracker.counts, 0.9 * before)


def test_sum_takes_no_weights_and_weighted_does():
    values = torch.tensor([1.0, 2.0])
    assert Sum.Config().build([1, 1])(values).item() == 3
    assert Weighted.Config().build([2, 0.5])(values).item() == 3
    with pytest.raises(ValueError, match="use balance 'weighted'"):
        Sum.Config().build([1, 2])


def test_running_mean_makes_terms_equally_large_but_blows_up_nothing():
    balance = RunningMean.Config(floor=0.01).build([1, 1])
    values = torch.tensor([50.0, 1e-9], requires_grad=True)
    for _ in range(3):
        total = balance(values)
    total.backward()
    assert total.item() == pytest.approx(1.0, rel=1e-4)
    assert values.grad is not None
    assert values.grad.tolist() == pytest.approx([1 / 50, 100])


def test_running_mean_stands_still_in_evaluation():
    balance = RunningMean.Config(decay=0.5).build([1])
    balance(torch.tensor([4.0]))
    balance.eval()
    assert balance(torch.tensor([8.0])).item() == 2
    assert balance.average.tolist() == [4]
    balance.train()
    assert balance(torch.tensor([8.0])).item() == pytest.approx(8 / 6)


def test_uncertainty_is_the_formula_and_stays_bounded_for_a_vanishing_loss():
    balance = Uncertainty.Config(limit=4.0).build([1, 1])
    assert balance(torch.tensor([1.0, 3.0])).item() == pytest.approx(2)
    optimizer = torch.optim.Adam(balance.parameters(), lr=0.05)
    for _ in range(500):
        optimizer.zero_grad()
        balance(torch.zeros(2)).backward()
        optimizer.step()
    v = balance.log_variance()
    assert (v.abs() <= 4).all()
    assert v.max().item() < -3
    assert balance(torch.zeros(2)).item() >= -4
    # And it comes back when the loss does.
    for _ in range(500):
        optimizer.zero_grad()
        balance(torch.full((2,), 5.0)).backward()
        optimizer.step()
    assert balance.log_variance().tolist() == pytest.approx([torch.tensor(5.0).log().item()] * 2, abs=0.05)
