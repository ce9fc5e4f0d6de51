"""A word whose threshold lies far above every logit it gets comes back through the frequency penalty of `cajt`."""

import pytest
import torch

from lexical_sae.circuits.terms import FrequencyPenalty
from lexical_sae.data.batches import tokenize
from lexical_sae.recipes import recipe_by_name
from lexical_sae.training.loop import Trainer
from lexical_sae.training.preparation.calibrated_start import proposed_words
from lexical_sae.training.tasks import Documents
from tests import tiny
from tests.tiny import BAD, GOOD

TEXTS, LABELS = (GOOD + BAD) * 2, ([0] * 4 + [2] * 4) * 2
PROPOSALS = 4


def changed(**fields):
    """The objective of `cajt` with other fields of its frequency penalty; without it if there are none."""
    objective = recipe_by_name("cajt").training.objective
    kept = [term for term in objective.terms if not isinstance(term, FrequencyPenalty.Config)]
    penalty = [FrequencyPenalty.Config(least_frequency=0.3, **fields)] if fields else []
    return objective.model_copy(update={"terms": (*kept, *penalty)})


def trainer(objective, epochs=30):
    """`cajt` on a tiny model, its thresholds with a rate that crosses the gap within the run."""
    recipe = recipe_by_name("cajt")
    # The plain start: an offset would shift all logits, and open the word that is planted.
    gate = recipe.model.gate.model_copy(update={"offset": False})
    model = tiny.model(recipe.model.model_copy(update={"gate": gate}))
    model.start_from_backbone()
    changes = {
        "calibrated_start": None,
        "max_epochs": epochs,
        "batch_size": 4,
        "gate_rate": 200.0,
        "patience": epochs,
        "objective": objective,
    }
    task = Documents(tokenize(model.tokenizer, TEXTS, 16), torch.tensor(LABELS))
    return Trainer(model, task, task, recipe.training.model_copy(update=changes), seed=3)


def logits_of(run):
    run.model.eval()
    with torch.no_grad():
        return run.train.encode(run.model, range(len(TEXTS)))


def plant(run):
    """A proposed word of the texts with a threshold so far above its logits that no kernel reaches it."""
    encoded = logits_of(run)
    proposed = proposed_words(run.model, [encoded.logits], PROPOSALS)
    in_its_texts = encoded.logits.masked_fill(~encoded.own | ~proposed, -torch.inf).amax(0)
    word = int(in_its_texts.argmax())
    assert in_its_texts[word] > 1, "its logit is large where it stands"
    spread = encoded.logits[encoded.logits.isfinite()].std()
    with torch.no_grad():
        run.model.gate.log_theta[word] = (encoded.logits[:, word].amax() + 6 * spread).log()
    return word


def opens(run, word):
    encoded = logits_of(run)
    return bool((encoded.gate.gate_mask[:, word] > 0.5).any())


def after_training(objective):
    """The planted word, whether it opens after training, how far its threshold moved, and the run."""
    run = trainer(objective)
    word = plant(run)
    before = float(run.model.gate.log_theta[word].detach())
    assert not opens(run, word)
    run.prepare()
    for _ in range(run.max_epochs):
        run._finish_epoch()
    return word, opens(run, word), float(run.model.gate.log_theta[word].detach()) - before, run


def test_a_dead_word_that_the_lexical_head_proposes_comes_back():
    word, is_open, moved, run = after_training(changed(proposals=PROPOSALS))
    assert is_open
    assert moved < -0.5
    term = run.criterion.objective.terms["frequency"]
    assert isinstance(term, FrequencyPenalty)
    proposed = term.tracker.proposed
    assert proposed[word]
    assert proposed.sum() < 0.7 * (~run.model.gate.closed).sum(), "not the whole vocabulary"
    assert not (proposed & run.model.gate.closed).any()


@pytest.mark.parametrize("fields", [{}, {"proposals": 0}], ids=["no penalty", "only words that opened"])
def test_without_being_proposed_a_dead_word_stays_dead(fields):
    _, is_open, moved, _ = after_training(changed(**fields))
    assert not is_open
    assert moved == pytest.approx(0, abs=1e-3)


def test_what_was_proposed_is_in_the_checkpoint_and_not_asked_for_again():
    first, second = (trainer(changed(proposals=PROPOSALS), epochs=2) for _ in range(2))
    first.prepare()
    first._finish_epoch()
    second.load_state_dict(first.state_dict())
    ours, theirs = (run.criterion.objective.terms["frequency"].tracker.proposed for run in (first, second))
    assert ours.any()
    assert torch.equal(ours, theirs)


def test_proposed_are_the_highest_logits_of_some_sample_whatever_the_thresholds():
    model = tiny.model(recipe_by_name("cajt").model)
    size = len(model.dimensions)
    free = (~model.gate.closed).nonzero().flatten().tolist()
    logits = torch.full((2, size), -5.0)
    logits[0, free[3]], logits[0, free[4]] = 2.0, 1.0
    logits[1, free[3]], logits[1, free[7]] = 1.0, 3.0
    logits[:, model.gate.closed] = 9.0
    logits[1, free[5]] = -torch.inf
    with torch.no_grad():
        model.gate.log_theta.fill_(8.0)
    assert proposed_words(model, [logits[:1], logits[1:]], 2).nonzero().flatten().tolist() == [
        free[3],
        free[4],
        free[7],
    ]
    assert not proposed_words(model, [torch.full((1, size), -torch.inf)], 2).any()
