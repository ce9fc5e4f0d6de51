"""Warnings about unusual texts and abstention, on a tiny model that was calibrated on a tiny data set."""

import json

import pytest
import torch

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.explanation import ABSTAIN, Explanation
from lexical_sae.inference import explain, predict
from lexical_sae.inference.unusual import SCORES
from lexical_sae.models.calibration import FIGURES, Calibration, words_of
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.runs.calibrating import accuracy_steps, calibrate, joint_limits
from tests import tiny
from tests.literal import literal_model
from tests.tiny import BAD, GOOD

OFF_TOPIC = "muslim church bank river money"
FOREIGN = "der hund spielt am fluss"
LABELS = ("negative", "neutral", "positive")


def reviews() -> TextDataset:
    """Reviews in three splits of the same kind; labels are what the model is right about half of the time."""
    texts = [f"{text} {end}" for end in ("", "!", ".", "and good acting", "or a bad plot") for text in (*GOOD, *BAD)]
    split = TextSplit(tuple(texts), tuple(i % 3 for i in range(len(texts))))
    return TextDataset("reviews", LABELS, split, split, split)


@pytest.fixture(scope="module")
def model():
    made = literal_model()
    made.calibration = calibrate(made, reviews())
    return made


def kinds(model, text):
    return {warning.kind for warning in explain(model, text).warnings}


@pytest.mark.parametrize("text", ["", "  ", "👍👍", "?!", "—"])
def test_a_text_without_words_says_so_and_nothing_else(model, text):
    assert kinds(model, text) == {"no_words"}


@pytest.mark.parametrize("recipe", [literal_model, tiny.model])
def test_texts_without_words_are_noted_without_a_calibration_too(recipe):
    made = recipe()
    assert made.calibration is None
    assert kinds(made, "👍") == {"no_words"}
    assert kinds(made, OFF_TOPIC) == set()


def test_a_text_whose_words_have_no_weight_says_that_the_bias_decides():
    made = literal_model(shifting=False)
    made.gate.close(torch.ones_like(made.gate.closed))
    assert kinds(made, "a good film") == {"no_weight"}


def test_words_that_training_never_met_are_counted_and_named(model):
    (warning,) = (found for found in explain(model, FOREIGN).warnings if found.kind == "unknown_words")
    assert warning.message == "5 of 5 words never occur in the training texts: der, hund, spielt, …"


def test_known_words_in_a_strange_text_are_unlike_training(model):
    usual = model.calibration.usual
    known = Calibration(
        model.calibration.figures,
        type(usual)(usual.known_words | {*map(_hash, words_of(OFF_TOPIC))}, usual.unknown_rate, usual.states),
    )
    before, model.calibration = model.calibration, known
    try:
        assert kinds(model, OFF_TOPIC) == {"unlike_training"}
    finally:
        model.calibration = before


def _hash(word):
    from lexical_sae.models.calibration import word_hash

    return word_hash(word)


def test_ordinary_texts_get_no_more_warnings_than_allowed(model):
    warned = [bool(why.warnings) for why in explain(model, reviews().validation.texts)]
    assert sum(warned) <= model.calibration.figures.false_alarms * len(warned)


def test_a_model_that_reads_from_logits_is_calibrated_the_same_way():
    made = tiny.model()
    made.calibration = calibrate(made, reviews())
    assert made.calibration.usual.states is not None
    assert "unknown_words" in kinds(made, FOREIGN)
    assert not kinds(made, "a good film")


def test_a_table_alone_is_calibrated_without_the_encoder():
    made = literal_model(context=None)
    made.calibration = calibrate(made, reviews())
    assert made.calibration.usual.states is None
    assert "unknown_words" in kinds(made, FOREIGN)


def test_the_calibration_is_saved_with_the_model_and_gives_the_same_warnings(model, tmp_path):
    loaded = from_pretrained(save_pretrained(model, tmp_path / "model"))
    texts = ["", FOREIGN, OFF_TOPIC, *GOOD]
    assert loaded.calibration.figures == model.calibration.figures
    assert [why.warnings for why in explain(loaded, texts)] == [why.warnings for why in explain(model, texts)]


def test_an_older_model_loads_and_says_what_it_lacks(tmp_path):
    loaded = from_pretrained(save_pretrained(literal_model(), tmp_path / "model"))
    assert loaded.calibration is None
    with pytest.raises(ValueError, match="no calibration.*lexical-sae calibrate"):
        predict(loaded, "good", abstain=0.9)


def test_a_calibration_of_another_version_is_refused(model, tmp_path):
    model.calibration.save(tmp_path)
    saved = json.loads((tmp_path / FIGURES).read_text())
    (tmp_path / FIGURES).write_text(json.dumps({**saved, "format_version": 2}))
    with pytest.raises(ValueError, match="format_version"):
        Calibration.load(tmp_path)


def test_abstaining_takes_unusual_texts_and_those_of_low_confidence(model):
    texts = ["👍", FOREIGN, *GOOD, *BAD]
    confidence = [why.probability for why in explain(model, texts)]
    # Half of the ordinary texts are confident enough.
    middle = sum(sorted(confidence[2:])[len(GOOD) - 1 : len(GOOD) + 1]) / 2
    with _steps(model, accuracy_steps(torch.tensor([0.0, middle]), torch.tensor([False, True]), least=1)):
        decided, always = predict(model, texts, abstain=0.9), predict(model, texts)
        explained = explain(model, texts, abstain=0.9)
    assert ABSTAIN not in always
    assert decided[:2] == [ABSTAIN, ABSTAIN]
    expected = [label if sure >= middle else ABSTAIN for label, sure in zip(always[2:], confidence[2:], strict=True)]
    assert decided[2:] == expected
    assert len(set(expected)) > 1
    assert [why.label for why in explained] == decided
    assert [why.most_probable for why in explained] == always
    assert all((why.abstained is None) == (why.label != ABSTAIN) for why in explained)


def test_an_abstention_goes_into_json_and_back_with_reason_and_probabilities(model):
    (why,) = explain(model, ["👍"], abstain=0.01)
    read = Explanation.from_json(why.to_json())
    assert (read.label, read.abstained, read.warnings) == (ABSTAIN, why.warnings[0].message, why.warnings)
    assert sum(probability for _, probability in read.probabilities) == pytest.approx(1)
    assert json.loads(why.to_json())["warnings"][0]["kind"] == "no_words"


@pytest.mark.parametrize("share", [0, 1, -0.5, 95])
def test_abstain_is_an_accuracy(model, share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        predict(model, "good", abstain=share)


def test_an_accuracy_that_was_never_reached_is_refused_with_the_best_one(model):
    with (
        _steps(model, accuracy_steps(torch.tensor([0.6, 0.7]), torch.tensor([True, False]))),
        pytest.raises(ValueError, match="at most 50.0%"),
    ):
        predict(model, "good", abstain=0.9)


class _steps:
    """The model with another curve of accuracy by confidence."""

    def __init__(self, model, steps):
        self.model, self.before = model, model.calibration
        self.other = Calibration(self.before.figures.model_copy(update={"steps": steps}), self.before.usual)

    def __enter__(self):
        self.model.calibration = self.other

    def __exit__(self, *error):
        self.model.calibration = self.before


def test_accuracy_never_falls_with_confidence_and_counts_every_text():
    generator = torch.Generator().manual_seed(0)
    confidence = torch.rand(500, generator=generator)
    is_right = torch.rand(500, generator=generator) < confidence
    steps = accuracy_steps(confidence, is_right)
    assert sum(step.texts for step in steps) == 500
    assert all(a.accuracy < b.accuracy and a.confidence < b.confidence for a, b in zip(steps, steps[1:], strict=False))
    assert min(step.texts for step in steps) >= 20
    mean = sum(step.accuracy * step.texts for step in steps) / 500
    assert mean == pytest.approx(float(is_right.double().mean()))


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_limits_let_through_the_share_that_was_asked_for(share):
    scores = torch.randn(1000, len(SCORES), generator=torch.Generator().manual_seed(1))
    above = (scores > torch.tensor(joint_limits(scores, share))).any(1).double().mean()
    assert share - 0.004 <= above <= share


def test_scores_that_agree_share_their_false_alarms():
    scores = torch.randperm(1000, generator=torch.Generator().manual_seed(1)).float()[:, None]
    assert joint_limits(scores.expand(-1, 3), 0.01) == pytest.approx([989.0] * 3, abs=0.5)
