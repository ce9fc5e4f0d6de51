"""One head for `classify` and `tag`: no parameter is particular to a task, and all that acts on a head acts on it."""

import copy
import json

import pytest
import torch
from safetensors.torch import load_file

from lexical_sae.inference import explain, find_reasons, predict
from lexical_sae.inference.tag_explaining import explain_tags
from lexical_sae.inference.tagging import tag
from lexical_sae.intervene import Lexicon, SuppressedModel, edit_saved_model
from lexical_sae.intervene.certificate import NamedTexts, certify, measure_effect, verify
from lexical_sae.mechanistic.attribution import identity_error
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from lexical_sae.models.persistence import CONFIG, WEIGHTS, digest, from_pretrained, save_pretrained
from tests import tiny

LABELS = ("O", "B-PER", "I-PER", "B-LOC")
TEXTS = ("the good film was boring", "dogs play in a bank near the river", "a very good movie")


def both(*, shared=True, **parts) -> LexicalSAE:
    config = ModelConfig.model_validate({"gate": "drelu", "shared_head": shared, **parts})
    torch.manual_seed(1)
    return LexicalSAE(config, tiny.backbone(), {CLASSIFY: LABELS, TAG: LABELS}).eval()


def sizes(model):
    return {name: parameter.numel() for name, parameter in model.named_parameters()}


def test_a_shared_head_is_one_head_and_its_parameters_exist_once():
    model, separate = both(), both(shared=False)
    assert model.head(CLASSIFY) is model.head(TAG)
    assert model.distinct_heads() == [model.head(TAG)]
    assert len(separate.distinct_heads()) == 2
    one_head = sum(p.numel() for p in model.head(TAG).parameters())
    assert sum(sizes(separate).values()) - sum(sizes(model).values()) == one_head


@pytest.mark.parametrize("head", ["relu", "bcos"])
def test_a_text_of_one_position_is_decided_as_the_position_is(head):
    ids, mask = (part[:, :1] for part in tiny.batch())
    for shared in (True, False):
        model = both(shared=shared, head=head).double()
        with torch.no_grad():
            sequence = model(ids, mask)
            document, position = model.classify(sequence, mask).logits, model.tag(sequence)[:, 0]
        assert torch.allclose(document, position, rtol=1e-12) == shared


@pytest.mark.parametrize("head", ["relu", "bcos"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_identity_holds_for_texts_and_for_positions(head, dtype, tolerance):
    model = both(head=head).to(dtype)
    ids, mask = tiny.batch()
    with torch.no_grad():
        sequence = model(ids, mask)
        document, positions = model.classify(sequence, mask), model.tag_state(sequence, mask)
    assert (document.sparse_vector > 0).any(-1).all()
    assert (identity_error(document) <= tolerance).all()
    assert (identity_error(positions) <= tolerance).all()


def test_a_shared_head_is_stored_once_and_is_shared_when_loaded(tmp_path):
    model = both()
    folder = save_pretrained(model, tmp_path / "model")
    heads = {name.split(".")[1] for name in load_file(folder / WEIGHTS) if name.startswith("heads.")}
    assert heads == {CLASSIFY}
    loaded = from_pretrained(folder)
    assert loaded.head(CLASSIFY) is loaded.head(TAG)
    assert loaded.labels == model.labels
    ids, mask = tiny.batch()
    with torch.no_grad():
        assert torch.equal(loaded.tag(loaded(ids, mask)), model.tag(model(ids, mask)))
        assert torch.equal(loaded.classify_document(ids, mask).logits, model.classify_document(ids, mask).logits)


def test_a_copy_of_the_model_shares_its_own_head():
    copied = copy.deepcopy(both())
    assert copied.head(CLASSIFY) is copied.head(TAG)


def test_a_model_saved_before_heads_could_be_shared_loads_with_separate_ones(tmp_path):
    folder = save_pretrained(both(shared=False), tmp_path / "model")
    saved = json.loads((folder / CONFIG).read_text())
    del saved["parts"]["shared_head"]
    saved["own_sha256"] = digest(saved)
    (folder / CONFIG).write_text(json.dumps(saved))
    loaded = from_pretrained(folder)
    assert loaded.head(CLASSIFY) is not loaded.head(TAG)


def test_labels_that_differ_cannot_share_a_head():
    config = ModelConfig(shared_head=True)
    with pytest.raises(ValueError, match=r"same labels in the same order.*'classify' has \['O', 'B-PER'\] and 'tag'"):
        LexicalSAE(config, tiny.backbone(), {CLASSIFY: ["O", "B-PER"], TAG: ["B-PER", "O"]})


def test_one_task_alone_has_nothing_to_share():
    with pytest.raises(ValueError, match="has only 'tag'.*shared_head: false"):
        LexicalSAE(ModelConfig(shared_head=True), tiny.backbone(), {TAG: LABELS})


def test_one_model_predicts_explains_and_tags_with_the_same_labels():
    model = both()
    assert set(predict(model, TEXTS)) <= set(LABELS)
    (word,) = explain_tags(model, TEXTS[0], [2], contrast="B-LOC")
    for explanation in (explain(model, TEXTS[0], contrast="B-LOC"), word):
        assert explanation.words
        assert explanation.identity_error < 1e-5
    assert set(tag(model, TEXTS[0]).tags) <= set(LABELS)
    assert find_reasons(model, TEXTS[0]).flip is not None
    assert find_reasons(model, TEXTS[0], word=2).flip is not None


def test_a_removed_word_is_gone_from_texts_and_positions_and_the_certificate_verifies(tmp_path):
    model = both()
    with torch.no_grad():
        model.backbone.decoder_bias.add_(2.0)
    view = SuppressedModel(model, ["film"])
    assert view.head(CLASSIFY) is model.head(TAG)
    named = {way: _named(way) for way in (model, view)}
    assert all("film" in words for words in named[model])
    assert not any("film" in words for words in named[view])
    original = save_pretrained(model, tmp_path / "original")
    edit_saved_model(original, Lexicon(forbid=("film",)), tmp_path / "edited")
    data = NamedTexts("texts", TEXTS)
    claimed = certify(original, tmp_path / "edited", data)
    assert [check.claim for check in verify(claimed, tmp_path / "edited", data) if not check.holds] == []
    gone = [i for i in range(len(model.dimensions)) if model.dimensions[i].name in ("film", "films")]
    for head in (CLASSIFY, TAG):
        found = measure_effect(model, view, gone, data, head=head)
        assert found.touched > 0
        assert found.strongest_after == 0


def _named(model):
    """Active words of a text, and of its third word."""
    explained = (explain(model, TEXTS[0]), explain_tags(model, TEXTS[0], [2])[0])
    return [{word.word for word in one.words} for one in explained]
