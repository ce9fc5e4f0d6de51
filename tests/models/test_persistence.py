import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from lexical_sae.models.config import ModelConfig
from lexical_sae.models.persistence import CONFIG, WEIGHTS, digest, from_pretrained, save_pretrained
from lexical_sae.models.pretrained import backbone_from_config
from lexical_sae.utils.downloads import sha256_of
from tests import tiny

BANK = tiny.wordpiece().convert_tokens_to_ids("bank")
SETTINGS = {
    "plain": {"gate": "drelu"},
    "everything": {
        "gate": {"kind": "jumprelu", "offset": True},
        "expander": {"token_ids": (BANK,)},
        "pool": "attention",
        "head": "bcos",
        "masking": {"low": 0.1, "high": 0.2},
        "topk_per_position": 5,
    },
}


@pytest.fixture
def saved(tmp_path):
    return save_pretrained(tiny.model(), tmp_path / "model")


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_loaded_model_is_bitwise_the_saved_one(name, family, tmp_path):
    model = tiny.model(ModelConfig.model_validate(SETTINGS[name]), family)
    closed = torch.zeros(len(model.dimensions), dtype=torch.bool)
    closed[BANK] = True
    model.gate.close(closed)
    loaded = from_pretrained(save_pretrained(model, tmp_path / "model"))
    ids, mask = tiny.batch()
    with torch.no_grad():
        assert torch.equal(loaded(ids, mask), model(ids, mask))
        assert torch.equal(loaded.classify_document(ids, mask).logits, model.classify_document(ids, mask).logits)
    assert loaded.labels == model.labels
    assert loaded.config == model.config
    assert torch.equal(loaded.gate.closed, model.gate.closed)
    assert not loaded.training
    assert loaded.tokenizer("good film")["input_ids"] == model.tokenizer("good film")["input_ids"]


def test_methods_of_the_model_do_the_same(tmp_path):
    import lexical_sae

    model = tiny.model()
    loaded = lexical_sae.LexicalSAE.from_pretrained(model.save_pretrained(tmp_path / "model"))
    ids, mask = tiny.batch()
    with torch.no_grad():
        assert torch.equal(loaded(ids, mask), model(ids, mask))


def test_a_mapped_model_is_bitwise_the_loaded_one_and_writing_to_it_leaves_the_file(saved):
    loaded, mapped = from_pretrained(saved), from_pretrained(saved, mapped=True)
    before, (ids, mask) = sha256_of(saved / WEIGHTS), tiny.batch()
    with torch.no_grad():
        assert torch.equal(loaded(ids, mask), mapped(ids, mask))
        for parameter in mapped.parameters():
            parameter.add_(1)
        assert not torch.equal(loaded(ids, mask), mapped(ids, mask))
        assert torch.equal(loaded(ids, mask), from_pretrained(saved, mapped=True)(ids, mask))
    assert sha256_of(saved / WEIGHTS) == before


def test_folder_holds_only_safetensors_json_and_tokenizer_text(saved):
    assert {path.suffix for path in saved.iterdir()} <= {".safetensors", ".json", ".txt", ".jinja"}
    config = json.loads((saved / CONFIG).read_text())
    assert config["format_version"] == 1
    assert set(config["sha256"]) == {path.name for path in saved.iterdir()} - {CONFIG}
    assert "_name_or_path" not in config["backbone"]


def test_saving_again_replaces_the_model_and_leaves_nothing_else_behind(saved):
    model = tiny.model()
    with torch.no_grad():
        model.heads["classify"].class_bias.fill_(7.0)
    save_pretrained(model, saved)
    assert (from_pretrained(saved).heads["classify"].class_bias == 7).all()
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_failed_save_keeps_the_old_model(saved, monkeypatch):
    before = sha256_of(saved / WEIGHTS)

    def full_disk(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lexical_sae.models.persistence.save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_pretrained(tiny.model(), saved)
    assert sha256_of(saved / WEIGHTS) == before
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("config", [None, '{"my": "app"}'])
def test_saving_over_a_folder_of_other_files_is_refused(tmp_path, config):
    (tmp_path / "thesis.txt").write_text("do not lose me")
    if config:
        (tmp_path / CONFIG).write_text(config)
    with pytest.raises(ValueError, match="holds other files|format version"):
        save_pretrained(tiny.model(), tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "do not lose me"


def test_notes_beside_a_saved_model_are_not_swept_away(saved):
    (saved / "notes.md").write_text("mine")
    with pytest.raises(ValueError, match=r"holds other files \(notes\.md\)"):
        save_pretrained(tiny.model(), saved)
    assert (saved / "notes.md").read_text() == "mine"


def test_saving_to_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in ("file", "file/below"):
        with pytest.raises(ValueError, match="is a file"):
            save_pretrained(tiny.model(), tmp_path / place)


def test_saving_through_a_link_fills_the_folder_behind_it(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    save_pretrained(tiny.model(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / WEIGHTS).is_file()


def test_one_flipped_weight_byte_is_refused(saved):
    data = bytearray((saved / WEIGHTS).read_bytes())
    data[-100] ^= 1
    (saved / WEIGHTS).write_bytes(bytes(data))
    with pytest.raises(ValueError, match=r"model\.safetensors is not the file that was saved"):
        from_pretrained(saved)


def test_truncated_weights_are_refused(saved):
    (saved / WEIGHTS).write_bytes((saved / WEIGHTS).read_bytes()[:-50])
    with pytest.raises(ValueError, match="changed, truncated or swapped"):
        from_pretrained(saved)


def test_swapped_tokenizer_is_refused(saved):
    tiny.byte_bpe().save_pretrained(saved)
    with pytest.raises(ValueError, match=r"tokenizer\S*\.json is not the file that was saved"):
        from_pretrained(saved)


def test_missing_file_is_named(saved):
    (saved / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"tokenizer\.json is missing"):
        from_pretrained(saved)


def test_shapes_are_checked_before_anything_is_allocated(saved, monkeypatch):
    weights = load_file(saved / WEIGHTS)
    weights["heads.classify.class_bias"] = torch.zeros(99)
    save_file(weights, saved / WEIGHTS)
    _rehash(saved)
    built_on = []

    def build(*arguments):
        built_on.append(torch.get_default_device().type)
        return backbone_from_config(*arguments)

    monkeypatch.setattr("lexical_sae.models.persistence.backbone_from_config", build)
    with pytest.raises(
        ValueError, match=r"'heads\.classify\.class_bias' is F32 \(99,\), but config\.json implies F32 \(3,\)"
    ):
        from_pretrained(saved)
    assert built_on == ["meta"]


def test_foreign_tensor_is_refused(saved):
    weights = load_file(saved / WEIGHTS)
    save_file({**weights, "extra": torch.zeros(1)}, saved / WEIGHTS)
    _rehash(saved)
    with pytest.raises(ValueError, match="'extra' is .* absent"):
        from_pretrained(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format_version=99), "format version 99"),
        (lambda c: c.update(surprise=1), "surprise"),
        (lambda c: c["parts"].update(gate={"kind": "mystery"}), "parts.gate"),
        (lambda c: c["labels"].update(classify=["positive", "neutral", "negative"]), "changed after it was saved"),
    ],
)
def test_a_changed_config_is_refused(saved, change, message):
    config = json.loads((saved / CONFIG).read_text())
    change(config)
    (saved / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message):
        from_pretrained(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["backbone"].pop("model_type"), "describes no model"),
        (lambda c: c["backbone"].update(model_type=["bert"]), "describes no model"),
        (lambda c: c["backbone"].update(hidden_size="big"), "describes no model"),
        (lambda c: c["backbone"].update(vocab_size=10**10), "config.json has 10000000000 words"),
        (lambda c: c["labels"].update({"a.b": ["x", "y"]}), "cannot be named so"),
        (lambda c: c["labels"].update({"keys": ["x", "y"]}), "cannot be named so"),
        (lambda c: c["sha256"].pop(WEIGHTS), "was not saved with this model"),
        (lambda c: c["sha256"].update({"../secret": "0" * 64}), "missing"),
    ],
)
def test_a_config_made_up_to_do_harm_is_refused(saved, change, message):
    config = json.loads((saved / CONFIG).read_text())
    change(config)
    _sign(saved, config)
    with pytest.raises(ValueError, match=message):
        from_pretrained(saved)


def test_a_file_that_was_not_saved_with_the_model_is_refused(saved):
    (saved / "added_tokens.json").write_text('{"evil": 7}')
    with pytest.raises(ValueError, match=r"added_tokens\.json was not saved with this model"):
        from_pretrained(saved)


@pytest.mark.parametrize("convert", ["double", "bfloat16"])
def test_a_model_in_another_precision_is_not_saved_as_if_nothing_happened(convert, tmp_path):
    with pytest.raises(ValueError, match="single precision"):
        save_pretrained(getattr(tiny.model(), convert)(), tmp_path / "model")


def test_a_tensor_of_another_type_is_refused(saved):
    weights = load_file(saved / WEIGHTS)
    weights["gate.closed"] = weights["gate.closed"].float()
    save_file(weights, saved / WEIGHTS)
    _rehash(saved)
    with pytest.raises(ValueError, match=r"'gate\.closed' is F32 .* implies BOOL"):
        from_pretrained(saved)


def test_code_named_in_a_config_is_never_loaded(saved):
    config = json.loads((saved / CONFIG).read_text())
    config["backbone"]["auto_map"] = {"AutoModelForMaskedLM": "evil.Model"}
    _sign(saved, config)
    assert type(from_pretrained(saved).backbone.encoder).__name__ == "BertModel"


def test_failed_swap_puts_the_old_model_back(saved, monkeypatch):
    before, rename = sha256_of(saved / WEIGHTS), type(saved).rename

    def refuse_new(path, target):
        if path.name.startswith(".model-") and target == saved:
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(type(saved), "rename", refuse_new)
    with pytest.raises(OSError, match="Input/output"):
        save_pretrained(tiny.model(), saved)
    assert sha256_of(saved / WEIGHTS) == before


def test_the_folder_above_a_model_is_refused_with_a_hint(saved):
    with pytest.raises(ValueError, match="did you mean .*model"):
        from_pretrained(saved.parent)


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a saved model"):
        from_pretrained(tmp_path)
    (tmp_path / CONFIG).write_text("{broken")
    with pytest.raises(ValueError, match="line 1: not valid JSON"):
        from_pretrained(tmp_path)


def test_model_can_be_moved_to_a_path_with_spaces(saved, tmp_path):
    target = tmp_path / "my models" / "größe 1"
    shutil.copytree(saved, target)
    assert from_pretrained(target).labels == tiny.model().labels


def _rehash(folder):
    config = json.loads((folder / CONFIG).read_text())
    config["sha256"][WEIGHTS] = sha256_of(folder / WEIGHTS)
    _sign(folder, config)


def _sign(folder, config):
    """Write a config whose own hash is right, as somebody who knows the format could."""
    (folder / CONFIG).write_text(json.dumps({**config, "own_sha256": digest(config)}))
