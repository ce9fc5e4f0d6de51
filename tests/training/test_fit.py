import pytest
import torch

from splade.data.batches import tokenise
from splade.models.config import ModelConfig
from splade.training.calibrate import open_about
from splade.training.fit import FitSettings, fit, parameter_groups
from tests import tiny

GOOD = ["a good film", "the acting was wonderful", "great plot and good acting", "a very good movie"]
BAD = ["a bad film", "the acting was terrible", "awful plot and boring acting", "a very boring movie"]
TEXTS, LABELS = (GOOD + BAD) * 6, ([0] * 4 + [2] * 4) * 6


def anchored_model(**others):
    gate = {"kind": "jumprelu", "initial_threshold": 0.1, "kernel": "rectangle", "offset": True, "bandwidth": 0.5}
    parts = {"gate": gate, "masking": {"low": 0.1, "high": 0.3}, **others}
    return tiny.model(ModelConfig.model_validate(parts))


@pytest.mark.parametrize("wanted", [3, 10, 25])
@pytest.mark.parametrize("others", [{}, {"pool": "attention"}, {"topk_per_position": 40}], ids=str)
def test_calibration_opens_the_wanted_number_of_words(wanted, others):
    model = anchored_model(**others)
    texts = tokenise(model.tokenizer, TEXTS, 16)
    batches = [texts.batch(list(range(len(texts))))]
    open_about(model, batches, wanted)
    with torch.no_grad():
        active = model.encode_document(batches[0].input_ids, batches[0].attention_mask).sparse_vector > 0
    assert active.sum(-1).float().mean().item() == pytest.approx(wanted, abs=0.5)


def test_calibration_needs_an_offset_to_move():
    with pytest.raises(ValueError, match="set model.gate.offset to true"):
        open_about(tiny.model(), [], 10)


def test_calibration_without_texts_is_refused():
    with pytest.raises(ValueError, match="at least one text"):
        open_about(anchored_model(), [], 10)


def test_fit_learns_a_separable_task_and_reports_every_step():
    model = anchored_model()
    texts = tokenise(model.tokenizer, TEXTS, 16)
    steps = []
    settings = FitSettings(epochs=25, batch_size=8, active_target=20, encoder_lr=1e-3, head_lr=1e-2)
    embedding = model.backbone.decoder.weight.detach().clone()
    fit(model, texts, LABELS, settings, steps.append)
    batch = texts.batch(list(range(8)))
    with torch.no_grad():
        state = model.classify_document(batch.input_ids, batch.attention_mask)
    assert state.logits.argmax(-1).tolist() == LABELS[:8]
    assert len(steps) == steps[-1].total == 150
    assert steps[-1].figures["loss"] < steps[0].figures["loss"] / 2
    assert steps[-1].figures["active words"] < steps[0].figures["active words"]
    assert torch.equal(model.backbone.decoder.weight, embedding)
    assert not model.training


@pytest.mark.parametrize("others", [{}, {"pool": "attention"}, {"expander": {"token_ids": (15,)}}], ids=str)
@pytest.mark.parametrize("encoder_lr", [5e-5, 1e-3])
def test_every_parameter_that_learns_is_in_one_group(others, encoder_lr):
    model = anchored_model(**others)
    groups = parameter_groups(model, FitSettings(encoder_lr=encoder_lr, head_lr=1e-3))
    listed = [id(p) for group in groups for p in group["params"]]
    assert sorted(listed) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert {rates[id(p)] for p in model.gate.parameters()} == {5e-3}
    assert {rates[id(p)] for p in model.backbone.parameters()} == {encoder_lr}


def test_a_lower_target_leaves_fewer_words_active():
    counts = []
    for target in (4, 40):
        model = anchored_model()
        texts = tokenise(model.tokenizer, TEXTS, 16)
        steps = []
        open_first = FitSettings(epochs=6, batch_size=8, active_target=target, encoder_lr=1e-3, gate_lr=2e-2)
        fit(model, texts, LABELS, open_first, steps.append)
        # Relative to what calibration opened, so that only training can make the difference.
        counts.append(steps[-1].figures["active words"] / steps[0].figures["active words"])
    assert counts[0] < 0.6 * counts[1]


def test_embeddings_learn_again_after_the_fit():
    model = anchored_model()
    fit(model, tokenise(model.tokenizer, TEXTS[:8], 16), LABELS[:8], FitSettings(epochs=1, batch_size=8))
    assert model.backbone.decoder.weight.requires_grad


def test_the_same_seed_gives_the_same_weights():
    weights = []
    for _ in range(2):
        model = anchored_model()
        torch.manual_seed(5)
        fit(model, tokenise(model.tokenizer, TEXTS[:16], 16), LABELS[:16], FitSettings(epochs=1, batch_size=4))
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*weights)


def test_a_loss_that_is_no_number_stops_with_the_step():
    model = anchored_model()
    with torch.no_grad():
        model.heads["classify"].class_bias.fill_(torch.nan)
    with pytest.raises(FloatingPointError, match="at step 1"):
        fit(model, tokenise(model.tokenizer, TEXTS[:8], 16), LABELS[:8])
