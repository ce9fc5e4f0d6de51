"""The encoder may run in half precision; from its logits on, nothing does, and contributions add up."""

import itertools

import pytest
import torch

from lexical_sae.circuits.losses import separation_contrastive, separation_cosine
from lexical_sae.inference import explain, predict
from lexical_sae.mechanistic.attribution import (
    attribute,
    attribute_centered,
    attribute_code,
    code_identity_error,
    identity_error,
)
from lexical_sae.mechanistic.exact.directions import class_centered, towards
from lexical_sae.mechanistic.exact.path import along_path
from lexical_sae.mechanistic.exact.removal import WordSets, leave_one_out, predict_removal
from lexical_sae.models.config import ModelConfig
from lexical_sae.utils.precision import cpu_problem_with_bfloat16, full_precision
from tests import tiny

GATES, POOLS, HEADS = ("drelu", "gated_jumprelu", "jumprelu"), ("max", "attention"), ("relu", "bcos")


@pytest.fixture(params=["float16", "bfloat16"])
def lower(request):
    """Autocast in half precision, where this processor can."""
    if request.param == "bfloat16" and (problem := cpu_problem_with_bfloat16()):
        pytest.skip(problem)
    return lambda: torch.autocast("cpu", dtype=getattr(torch, request.param))


def model(gate="jumprelu", pool="max", head="relu", **others):
    parts = {"gate": {"kind": gate, "initial_threshold": 0.5}, "pool": pool, "head": head, **others}
    made = tiny.model(ModelConfig.model_validate(parts))
    made.start_from_backbone()
    return made


def gap(logits, total):
    return float((logits - total).abs().max())


@pytest.mark.parametrize(("gate", "pool", "head"), list(itertools.product(GATES, POOLS, HEADS)))
@torch.no_grad()
def test_the_identity_holds_inside_autocast(lower, gate, pool, head):
    made = model(gate, pool, head)
    ids, mask = tiny.batch()
    with lower():
        state = made.classify_document(ids, mask)
        code = made.read(made.encode_sparse(ids, mask))
        slow = made.classify(made(ids, mask), mask)
        classes = state.logits.argmax(-1)
        errors = [identity_error(one) for one in (state, slow)] + [code_identity_error(code)]
        W_eff, contributions = state.W_eff, attribute(state, classes)
        of_code, centered = attribute_code(code, classes, centered=True), attribute_centered(state, classes)
    assert (state.sparse_vector > 0).any()
    assert max(float(error.max()) for error in errors) <= 1e-5
    for found in (*state, code.logits, W_eff, contributions, of_code, centered):
        assert found.dtype == torch.float32
    size = contributions.abs().sum(-1).clamp(min=1)
    own = state.logits.gather(1, classes[:, None])[:, 0] - state.b_eff.gather(1, classes[:, None])[:, 0]
    assert ((own - contributions.sum(-1)).abs() / size).max() <= 1e-5
    torch.testing.assert_close(torch.einsum("bcv,bv->bc", W_eff, state.sparse_vector) + state.b_eff, state.logits)
    torch.testing.assert_close(slow.logits, state.logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(code.logits, state.logits, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_the_encoder_itself_does_run_in_half_precision_and_what_it_gives_is_single(lower):
    made = model()
    ids, mask = tiny.batch()
    full = made.encoder_states(ids, mask)
    with lower():
        states = made.encoder_states(ids, mask)
        hidden = made.backbone.transform(states)
    assert states.dtype == hidden.dtype == torch.float32
    assert gap(states[mask], full[mask]) > 1e-4


@torch.no_grad()
def test_exact_answers_are_the_same_inside_autocast(lower):
    made = model()
    ids, mask = tiny.batch()
    state, head = made.read(made.encode_sparse(ids, mask)), made.head()
    sets = WordSets.singly(state.code, torch.ones_like(state.code.ids, dtype=torch.bool))

    def answers():
        asked = towards(state, class_centered(state.logits, state.logits.argmax(-1)))
        return (
            asked.readout,
            along_path(head, state).b_eff,
            leave_one_out(head, state).effects.per_class,
            predict_removal(state, sets).per_class,
        )

    with lower():
        found = answers()
    for ours, theirs in zip(found, answers(), strict=True):
        assert torch.equal(ours, theirs)


def test_separation_is_the_same_inside_autocast(lower):
    attr, labels, seen = torch.rand(5, 9), torch.tensor([0, 1, 2, 0, 1]), torch.ones(3, dtype=torch.bool)
    centroids = torch.rand(3, 9)

    def losses():
        yield separation_cosine(centroids, seen)
        yield separation_contrastive(attr, labels, centroids, seen, 0.3)

    with lower():
        found = list(losses())
    for ours, theirs in zip(found, losses(), strict=True):
        assert torch.equal(ours, theirs)


@torch.no_grad()
def test_tags_add_up_inside_autocast_too(lower):
    made = model(expander={"token_ids": tuple(tiny.wordpiece().convert_tokens_to_ids(["good", "film"]))})
    ids, mask = tiny.batch()
    with lower():
        state = made.read(made.encode_positions(ids, mask, mask), "tag")
        slow = made.tag_state(made(ids, mask), mask)
        assert code_identity_error(state).max() <= 1e-5
    torch.testing.assert_close(state.logits, slow.logits, atol=1e-4, rtol=1e-4)


def test_full_precision_ends_with_its_block():
    with torch.autocast("cpu", dtype=torch.float16):
        with full_precision():
            assert not torch.is_autocast_enabled("cpu")
        assert torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("cast", ["half", "bfloat16"])
def test_a_model_cast_to_half_precision_is_refused_with_the_remedy(cast):
    made = getattr(model(), cast)()
    ids, mask = tiny.batch()
    vectors = torch.rand(2, len(made.dimensions))
    asked = [
        lambda: made(ids, mask),
        lambda: made.classify_document(ids, mask),
        lambda: made.encode_sparse(ids, mask),
        lambda: made.encode_positions(ids, mask, mask),
        lambda: made.decide(vectors, "classify"),
        lambda: explain(made, "a good film"),
        lambda: predict(made, ["a good film"]),
    ]
    name = {"half": "float16", "bfloat16": "bfloat16"}[cast]
    for ask in asked:
        with pytest.raises(ValueError, match=rf"were cast to {name}.*call model\.float\(\)"):
            ask()
    made.float()
    assert identity_error(made.classify_document(ids, mask)).max() <= 1e-5
