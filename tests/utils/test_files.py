import os

import pytest

from lexical_sae.utils.files import require_writable_target, write_text


def test_a_place_for_a_file_is_accepted_and_nothing_is_made_there(tmp_path):
    old = write_text(tmp_path / "old.json", "{}")
    for path in (old, tmp_path / "new.json", tmp_path / "deep" / "er" / "new.json"):
        require_writable_target(path, reads=[tmp_path / "data.csv"])
        write_text(path, "{}")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="it is a folder; give the file to write"):
        require_writable_target(tmp_path)


@pytest.mark.parametrize("inside", ["x.json", "deep/er/x.json"])
def test_a_file_has_nothing_in_it(tmp_path, inside):
    file = write_text(tmp_path / "e.csv", "")
    with pytest.raises(ValueError, match=r"e\.csv is a file, not a folder; give another place"):
        require_writable_target(file / inside)


def test_what_is_read_is_not_overwritten_under_any_of_its_names(tmp_path, monkeypatch):
    data = write_text(tmp_path / "data.csv", "text,label")
    (tmp_path / "link.csv").symlink_to(data)
    monkeypatch.chdir(tmp_path)
    for name in ("data.csv", "../" + tmp_path.name + "/data.csv", "link.csv"):
        with pytest.raises(ValueError, match="it is read, and would be lost; give another file"):
            require_writable_target(type(data)(name), reads=[data])


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="everything may be written")
def test_a_read_only_folder_is_reported(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="may only be read"):
        require_writable_target(tmp_path / "new.json")
