import pytest
import torch

from lexical_sae.data import TaggedSplit
from lexical_sae.data.batches import tokenize
from lexical_sae.models.config import ModelConfig
from lexical_sae.training.preparation.calibrated_start import open_about, open_about_each
from lexical_sae.training.tasks import positions
from tests import tiny
from tests.tiny import BAD, GOOD

TEXTS = (GOOD + BAD) * 6


def anchored_model(**others):
    gate = {"kind": "jumprelu", "initial_threshold": 0.1, "kernel": "rectangle", "offset": True, "bandwidth": 0.5}
    parts = {"gate": gate, "masking": {"low": 0.1, "high": 0.3}, **others}
    return tiny.model(ModelConfig.model_validate(parts))


@pytest.mark.parametrize("wanted", [3, 10, 25])
@pytest.mark.parametrize("others", [{}, {"pool": "attention"}, {"topk_per_position": 40}], ids=str)
def test_calibration_opens_the_wanted_number_of_words(wanted, others):
    model = anchored_model(**others)
    texts = tokenize(model.tokenizer, TEXTS, 16)
    batches = [texts.batch(list(range(len(texts))))]
    open_about(model, batches, wanted)
    with torch.no_grad():
        active = model.encode_document(batches[0].input_ids, batches[0].attention_mask).sparse_vector > 0
    assert active.sum(-1).float().mean().item() == pytest.approx(wanted, abs=0.5)


SENTENCES = (("The", "good", "film", "was", "boring"), ("Dogs", "play", "."), ("a", "very", "awful", "plot")) * 8
TAGGED = TaggedSplit(SENTENCES, tuple(("B-PER",) + ("O",) * (len(words) - 1) for words in SENTENCES))


@pytest.mark.parametrize("wanted", [3, 10])
@pytest.mark.parametrize("shapes", [None, {}], ids=["words", "with shapes"])
def test_for_tags_the_wanted_number_opens_at_each_labelled_position(wanted, shapes):
    model = anchored_model(shapes=shapes)
    task, rows = positions(model.tokenizer, TAGGED, model.labels["tag"], 16, model.shapes)
    some = list(range(len(rows.texts)))
    open_about_each(model, (task.encode(model, part).logits for part in (some[:5], some[5:])), wanted)
    with torch.no_grad():
        active = task.encode(model, some).gate.gate_mask > 0
    assert len(active) == task.samples(some) == 96
    assert active.sum(-1).float().mean().item() == pytest.approx(wanted, abs=0.5)
    batch = task.texts.batch(some)
    open_about(model, [batch], wanted)
    with torch.no_grad():
        fewer = task.encode(model, some).gate.gate_mask > 0
    # The words of a sentence are those of all its positions: as many per sentence are far fewer at each.
    assert fewer.sum(-1).float().mean().item() < 0.8 * wanted


def test_the_cut_is_midway_between_the_last_word_that_opens_and_the_first_that_does_not():
    model = anchored_model()
    logits = torch.full((2, len(model.dimensions)), -9.0)
    logits[:, [7, 8, 9]] = torch.tensor([[8.0, 5.0, 1.0], [9.0, 4.0, 3.0]])
    open_about_each(model, [logits], 2)
    excess = logits - model.gate.openings()
    assert ((excess > 0).sum(-1) == 2).all()
    assert excess[excess > 0].min().item() == pytest.approx(0.5, abs=1e-5)
    assert excess[excess <= 0].max().item() == pytest.approx(-0.5, abs=1e-5)


def test_calibration_needs_an_offset_to_move():
    with pytest.raises(ValueError, match="set model.gate.offset to true"):
        open_about(tiny.model(), [], 10)


def test_calibration_where_no_word_can_open_is_refused_with_a_remedy():
    model = anchored_model()
    nothing = torch.full((3, len(model.dimensions)), -torch.inf)
    with pytest.raises(ValueError, match=r"any of the 3 samples.*set model\.neighbourhood to null"):
        open_about_each(model, [nothing], 10)


def test_calibration_without_texts_is_refused():
    with pytest.raises(ValueError, match="at least one text"):
        open_about(anchored_model(), [], 10)
    with pytest.raises(ValueError, match="one position with a tag"):
        open_about_each(anchored_model(), iter([]), 10)
