"""Removals from a tagger, of words and of shape features alike: closed, saved, certified and verified."""

import pytest
import torch

from lexical_sae.inference.tag_explaining import explain_tags
from lexical_sae.inference.tagging import tag, untagged_sentence
from lexical_sae.inference.word_decisions import read_words, words_of
from lexical_sae.intervene import Lexicon, SuppressedModel, edit_saved_model, suppress_token_globally
from lexical_sae.intervene.certificate import (
    NamedTexts,
    certify,
    measure_effect,
    read_certificate,
    verify,
    write_certificate,
)
from lexical_sae.intervene.certificate.verifying import verify_model
from lexical_sae.mechanistic.exact import WordSets, remove
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import TAG, LexicalSAE
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from tests import tiny

SHAPE = "is capitalised"
REMOVED = ("film", SHAPE)
TEXTS = ("The Film was good, not Boring.", "Dogs play in a Bank", "a " * 70 + "River", "", "films")
DATA = NamedTexts("sentences", TEXTS)


def tagger() -> LexicalSAE:
    """A model that only tags, and opens many words at most positions."""
    torch.manual_seed(1)
    config = ModelConfig.model_validate({"gate": "drelu", "shapes": {}})
    model = LexicalSAE(config, tiny.backbone(), {TAG: ["O", "B-PER", "I-PER", "B-LOC"]}).eval()
    with torch.no_grad():
        model.backbone.decoder_bias.add_(2.0)
    return model


def states(model):
    """Every word of every text by itself, in double precision and in the order of the texts."""
    sentences = [untagged_sentence(text).words for text in TEXTS]
    found = {}
    for read in read_words(model, sentences, words_of(model, sentences), batch_size=2):
        found.update(zip(read.places, read.state.code.dense(), strict=True))
    return torch.stack([found[place] for place in sorted(found)])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("taggers")
    original = save_pretrained(tagger(), folder / "original")
    edit_saved_model(original, Lexicon(forbid=REMOVED, keep=("all caps",)), folder / "edited")
    return original, folder / "edited"


def dimensions(model):
    return [i for i in range(len(model.dimensions)) if model.dimensions[i].name in ("film", "films", SHAPE)]


@pytest.mark.parametrize("way", ["view", "for good", "saved"])
def test_removed_words_and_shapes_are_zero_at_every_word_and_the_rest_is_as_it_was(way, folders):
    model = tagger()
    before, gone = states(model), dimensions(model)
    edited = {
        "view": lambda: SuppressedModel(model, REMOVED),
        "for good": lambda: suppress_token_globally(model, REMOVED).model,
        "saved": lambda: from_pretrained(folders[1]),
    }[way]()
    after = states(edited)
    assert (before[:, gone] > 0).any(0).all()
    assert not after[:, gone].any()
    assert torch.equal(after, before.index_fill(1, torch.tensor(gone), 0.0))


def test_an_explanation_no_longer_names_them_but_did_before():
    model = tagger()
    view = SuppressedModel(model, REMOVED)
    named, left = ({w.word for w in explain_tags(m, TEXTS[0], [1])[0].words} for m in (model, view))
    assert set(REMOVED) <= named
    assert left == named - {"film", "films", SHAPE}
    assert len(tag(view, TEXTS[0]).tags) == len(tag(model, TEXTS[0]).tags)


def test_a_certificate_of_a_tagger_verifies(folders, tmp_path):
    path = write_certificate(certify(*folders, DATA), tmp_path / "certificate.json")
    claimed = read_certificate(path)
    assert [one.name for one in claimed.construction.removed] == ["film", "films", SHAPE]
    assert claimed.effect is not None
    assert (claimed.effect.head, claimed.effect.strongest_after) == (TAG, 0)
    checks = verify(claimed, folders[1], DATA)
    assert [check.claim for check in checks if not check.holds] == []
    assert len(checks) == 10


def test_the_effect_is_that_of_taking_the_dimensions_from_every_word():
    model = tagger().double()
    gone = dimensions(model)
    found = measure_effect(model, SuppressedModel(model, REMOVED), gone, DATA, batch_size=2)
    dense = states(model)
    head = model.head(TAG)
    with torch.no_grad():
        before, after = (head(s).logits for s in (dense, dense.index_fill(1, torch.tensor(gone), 0.0)))
    decided = before.argmax(-1)
    change = before - after
    sizes = (change - change.mean(-1, keepdim=True)).gather(1, decided[:, None]).abs().flatten()
    touched = (dense[:, gone] > 0).any(-1)
    assert found.decisions == len(dense) == sum(len(untagged_sentence(text).words) for text in TEXTS)
    assert found.touched == int(touched.sum())
    assert found.flipped == int((after.argmax(-1) != decided).sum())
    assert found.mean_effect == pytest.approx(float(sizes[touched].mean()), rel=1e-9)
    assert found.largest_effect == pytest.approx(float(sizes.max()), rel=1e-9)
    (shape,) = [word for word in found.words if word.name == SHAPE]
    capitals = sum(word[:1].isupper() and word != "I" for text in TEXTS for word in untagged_sentence(text).words)
    assert (shape.decisions, shape.mean_activation) == (capitals, 1.0)


def test_a_shape_that_passes_a_closed_gate_is_caught(folders, monkeypatch):
    claimed, edited = certify(*folders), from_pretrained(folders[1])
    fill = type(edited.shapes).fill
    monkeypatch.setattr(
        type(edited.shapes), "fill", lambda self, s, present, closed: fill(self, s, present, torch.zeros_like(closed))
    )
    broken = [check for check in verify_model(claimed, edited) if not check.holds]
    assert [(check.claim, check.detail) for check in broken] == [("they are bitwise zero at every logit", SHAPE)]


def test_a_shape_is_removed_exactly_like_a_word():
    model = tagger()
    sentences = [["Film", "dogs"]]
    (read,) = read_words(model, sentences, words_of(model, sentences), only={(0, 0)})
    (at,) = [i for i in dimensions(model) if model.dimensions[i].name == SHAPE]
    chosen = read.state.code.ids == at
    exact = remove(model.head(TAG), read.state, WordSets.together(read.state.code, chosen))
    (closed,) = read_words(SuppressedModel(model, SHAPE), sentences, words_of(model, sentences), only={(0, 0)})
    left = exact.effects.logits_without(read.state.logits)
    assert torch.allclose(left, closed.state.logits, atol=1e-5)
    assert not torch.allclose(read.state.logits, closed.state.logits, atol=1e-3)
