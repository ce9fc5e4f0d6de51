import pytest
import torch

from splade.data.batches import tokenise
from splade.models.config import ModelConfig
from splade.models.layers.activation import JumpReLUGate
from splade.models.layers.masking import WordMasking
from splade.training.calibrate import open_about
from splade.training.fit import FitSettings, fit
from tests import tiny

GOOD = ["a good film", "the acting was wonderful", "great plot and good acting", "a very good movie"]
BAD = ["a bad film", "the acting was terrible", "awful plot and boring acting", "a very boring movie"]
TEXTS, LABELS = (GOOD + BAD) * 6, ([0] * 4 + [2] * 4) * 6


def anchored_model():
    gate = JumpReLUGate.Config(initial_threshold=0.1, kernel="rectangle", offset=True, bandwidth=0.5)
    return tiny.model(ModelConfig(gate=gate, masking=WordMasking.Config()))


@pytest.mark.parametrize("wanted", [3, 10, 25])
def test_calibration_opens_the_wanted_number_of_words(wanted):
    model = anchored_model()
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
