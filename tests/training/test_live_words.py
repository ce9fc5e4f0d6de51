"""Leaving out words that a step cannot change must change nothing but the time it takes."""

import pytest
import torch

from lexical_sae.circuits.objective import AnyTerm, Objective
from lexical_sae.data import TaggedSplit
from lexical_sae.data.batches import tokenize
from lexical_sae.models.assembly import dimension_embeddings
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.activation import JumpReLUGate
from lexical_sae.recipes import recipe_by_name
from lexical_sae.training.loss.criterion import Criterion
from lexical_sae.training.preparation.calibrated_start import open_about_each
from lexical_sae.training.tasks import Documents, positions
from lexical_sae.training.word_vectors import learn_together
from tests import tiny
from tests.tiny import BAD, GOOD

SENTENCES = tuple(tuple(text.split()) for text in GOOD + BAD)
TAGGED = TaggedSplit(SENTENCES, tuple(tuple("B-PER" if len(word) > 4 else "O" for word in s) for s in SENTENCES))
EVERY_TERM = tuple({"kind": part.model_fields["kind"].default} for part in AnyTerm.__args__)
ASKED = Objective.Config.model_validate({"terms": EVERY_TERM})
KINDS = ("neighbourhood", "all words", "senses", "tags", "tags near words")


def prepared(kind, kernel="rectangle"):
    """A model of the recipe `neighbours` with few words open, and what it learns from."""
    gate = {"kind": "jumprelu", "kernel": kernel, "offset": True, "bandwidth": 0.3}
    changes = {"masking": None, "gate": JumpReLUGate.Config.model_validate(gate)}
    if kind in ("all words", "tags"):
        changes["neighbourhood"] = None
    if kind == "senses":
        split = tuple(tiny.wordpiece().convert_tokens_to_ids(["good", "film"]))
        changes["expander"] = {"token_ids": split, "num_senses": 3}
    if kind.startswith("tags"):
        changes["shapes"] = {}
    parts = recipe_by_name("neighbours").model.model_dump() | changes
    model = tiny.model(ModelConfig.model_validate(parts))
    model.start_from_backbone()
    if kind.startswith("tags"):
        task, _ = positions(model.tokenizer, TAGGED, model.labels["tag"], 16, model.shapes)
    else:
        texts = tokenize(model.tokenizer, GOOD + BAD, 16)
        task = Documents(texts, torch.tensor([0] * len(GOOD) + [2] * len(BAD)))
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    open_about_each(model, (task.encode(model, range(8)).logits for _ in range(1)), 4)
    model.train()
    learn_together(model.head(task.head), dimension_embeddings(model))
    return model, task


def step(kind, *, live_only, nothing_open=False):
    """Loss, its account, gradients and trackers of two training steps; and the columns of the second."""
    torch.manual_seed(0)
    model, task = prepared(kind)
    if nothing_open:
        model.gate.close(torch.ones(len(model.dimensions), dtype=torch.bool))
    settings = recipe_by_name("neighbours").training.model_copy(update={"objective": ASKED, "auxiliary": None})
    criterion = Criterion(model, task.head, settings, (2, 2, 4))
    found = []
    for rows in ([0, 5, 2], [1, 7, 4, 6]):
        encoded = task.encode(model, rows, live_only=live_only)
        loss, seen = criterion.loss(model, encoded, share=1.0, is_constrained=True)
        model.zero_grad()
        loss.backward()
        found.append((loss.item(), seen.active, *seen.terms.values()))
    grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return found, grads, dict(criterion.named_buffers()), encoded, model


@pytest.mark.parametrize("kind", KINDS)
def test_loss_gradients_and_trackers_are_those_of_all_words(kind):
    (slow, slow_grads, slow_kept, _, _), (fast, fast_grads, fast_kept, encoded, model) = (
        step(kind, live_only=live_only) for live_only in (False, True)
    )
    assert encoded.words is not None
    assert len(encoded.words) < len(model.dimensions) - 5
    for ours, theirs in zip(fast, slow, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)
    assert fast_grads.keys() == slow_grads.keys()
    for name, theirs in slow_grads.items():
        torch.testing.assert_close(fast_grads[name], theirs, rtol=1e-4, atol=1e-6, msg=name)
    moving = [name for name, grad in fast_grads.items() if grad.abs().max() > 0]
    assert {"gate.log_theta", "gate.offset"} <= set(moving)
    assert any("parametrizations" in name for name in moving)
    for name, theirs in slow_kept.items():
        torch.testing.assert_close(fast_kept[name], theirs, rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_validation_is_that_of_all_words(kind):
    model, task = prepared(kind)
    settings = recipe_by_name("neighbours").training
    criterion = Criterion(model, task.head, settings, (2, 2, 4))
    narrow = criterion.validate(model, task)

    class Whole:
        texts, heads, samples, content = task.texts, task.heads, task.samples, task.content
        batches, alike = task.batches, task.alike

        def encode(self, model, rows, **_):
            return task.encode(model, rows)

    assert narrow == pytest.approx(criterion.validate(model, Whole()), rel=1e-5, abs=1e-6)


def test_a_gate_under_which_every_word_learns_keeps_all_columns():
    model, task = prepared("all words", kernel="sigmoid")
    assert model.gate.live_words(torch.zeros(1, len(model.dimensions))) is None
    assert task.encode(model, [0, 1], live_only=True).words is None


def test_a_logit_that_is_no_number_is_live():
    model, _ = prepared("all words")
    logits = torch.full((2, len(model.dimensions)), -50.0)
    logits[1, 7] = torch.nan
    model.eval()
    assert model.gate.live_words(logits).nonzero().flatten().tolist() == ([] if model.gate.closed[7] else [7])


def test_the_first_batch_is_read_with_the_width_that_the_gate_then_has():
    gate = JumpReLUGate.Config(initial_threshold=1.0, bandwidth=0.3, kernel="rectangle").build(6)
    logits = torch.tensor([[-20.0, -9, 0.8, 0.3, -5, 5]])
    gate.train()
    live = gate.live_words(logits)
    assert gate.logit_spread > 5
    gate.eval()
    assert live.tolist() == (gate(logits).open_prob[0] > 0).tolist() == [False, False, True, True, False, True]


@pytest.mark.parametrize("kind", ["all words", "neighbourhood", "tags"])
def test_a_batch_in_which_no_word_can_open_is_no_special_case(kind):
    (slow, slow_grads, *_), (fast, fast_grads, _, encoded, model) = (
        step(kind, live_only=live_only, nothing_open=True) for live_only in (False, True)
    )
    assert len(encoded.words) == (len(model.shapes) if model.shapes else 0)
    for ours, theirs in zip(fast, slow, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)
    for name, theirs in slow_grads.items():
        torch.testing.assert_close(fast_grads[name], theirs, rtol=1e-4, atol=1e-6, msg=name)
