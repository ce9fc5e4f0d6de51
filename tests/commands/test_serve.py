"""The command `serve`: what it refuses before anything is loaded."""

import sys

import pytest

from lexical_sae.serve.settings import named_models
from lexical_sae.utils.errors import SettingsError


@pytest.fixture
def folder(tmp_path):
    """What looks like a saved model from outside."""
    place = tmp_path / "reviews" / "model"
    place.mkdir(parents=True)
    (place / "config.json").write_text("{}")
    return place


def test_models_are_called_by_their_run_their_folder_or_a_given_name():
    made = named_models(["results/quickstart", "results/tickets/model", "old=~/x/model"])
    assert [name for name, _ in made] == ["quickstart", "tickets", "old"]
    for given, said in [
        (["a/x", "b/x"], "two models are called 'x'"),
        (["my model"], "cannot be the name of a model"),
        (["a:b=x"], "cannot be the name of a model"),
    ]:
        with pytest.raises(SettingsError, match=said):
            named_models(given)


def test_slips_are_sentences(run, folder, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for arguments, said in [
        ((str(tmp_path / "none"),), "is not there"),
        ((str(folder), "--data", str(tmp_path / "none.csv")), "there is no file or folder"),
        ((str(folder), "--text-column", "x"), "are about --data"),
        ((str(folder), "--log-texts"), "--decision-log"),
        ((str(folder), "--token", "x", "--token-file", str(empty)), "give either --token or --token-file"),
        ((str(folder), "--token", " "), "the token (--token) is empty"),
        ((str(folder), "--token-file", str(empty)), "is empty"),
        ((str(folder), "--token-file", str(tmp_path / "none")), "there is no token file"),
        ((str(folder), "--host", "no.such.host.invalid"), "is unknown"),
        ((str(folder), "--port", "0"), "config.json"),
    ]:
        code, _, error = run("serve", *arguments)
        assert code == 1
        assert said in " ".join(error.split())
        assert "Traceback" not in error


def test_a_missing_package_names_the_extra(run, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "lexical_sae.serve.server", None)
    code, _, error = run("serve", str(folder))
    assert code == 1
    assert "pip install 'lexical-sae[serve]'" in error
