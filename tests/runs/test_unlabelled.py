"""Texts without a label: which of them are read, how a run names them, and where they are refused."""

import pytest
import torch

from lexical_sae.config.load import build_config
from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.recipes import recipe_by_name
from lexical_sae.runs import inputs
from lexical_sae.runs.experiment import setup_and_train
from lexical_sae.runs.in_memory import train_model
from lexical_sae.runs.inputs import chosen_unlabelled, load_sentences
from lexical_sae.runs.seeds import Watchers
from tests import tiny
from tests.tiny import BAD, GOOD

LONG = "a quite wonderful film about a dog and a church"
MORE = ("a churchly film", "a churchly dog", "the plot was churchly and good")


def dataset(**others):
    train = TextSplit(tuple(GOOD + BAD) * 2, ((0,) * 4 + (1,) * 4) * 2)
    validation, test = TextSplit(("a wonderful dog", "an awful dog"), (0, 1)), TextSplit((LONG, "boring"), (0, 1))
    return TextDataset("texts", ("good", "bad"), train, validation, test, **others)


@pytest.fixture
def settings(tmp_path):
    recipe = recipe_by_name("anchored")
    model = recipe.model.model_copy(update={"name": str(tiny.saved_encoder(tmp_path / "encoder")), "context": None})
    return recipe.model_copy(update={"model": model})


def test_texts_that_a_run_is_judged_on_or_learns_from_are_not_read_again():
    given = ["A good  FILM", "an awful dog", f"well, {LONG}!", LONG[:42], "a great city", "a  great city", "boring"]
    chosen, (note,) = chosen_unlabelled(given, dataset(), seed=0)
    # A longer text around a test text is another text; a part of a test text is not.
    assert chosen == (f"well, {LONG}!", "a great city")
    assert note.startswith("words are read in 2 unlabelled texts too of 7, without those that are labelled or repeated")


def test_so_many_are_read_at_most_the_same_for_the_same_seed(monkeypatch):
    monkeypatch.setattr(inputs, "MOST_UNLABELLED", 3)
    given = [f"a film of {number}" for number in range(10)]
    first, (note,) = chosen_unlabelled(given, dataset(), seed=0)
    assert len(first) == 3
    assert sorted(first, key=given.index) == list(first)
    assert "3 at most" in note
    assert chosen_unlabelled(given, dataset(), seed=0)[0] == first
    assert {chosen_unlabelled(given, dataset(), seed=seed)[0] for seed in range(4)} != {first}


def test_texts_that_are_all_labelled_are_refused():
    with pytest.raises(ValueError, match="of 2 unlabelled texts none is left: all are among the labelled ones"):
        chosen_unlabelled(["a good film", "boring"], dataset(), seed=0)


def test_their_words_are_features_of_both_tables_and_they_are_read_once(settings):
    steps = []
    watchers = Watchers(on_step=lambda step: steps.append((step.task, step.done, step.total)))
    model, fitted = train_model(settings, dataset(unlabelled=MORE), seed=0, device="cpu", watchers=watchers)
    reading = [(done, total) for task, done, total in steps if task.startswith("reading words")]
    # 16 training texts, the others, and in the end the two of validation as well.
    assert reading == [(16, 16), (3, 3), (18, 18)]
    assert len(fitted.joined) == 18
    (churchly,) = model.dimensions.find("churchly")
    without, _ = train_model(settings, dataset(), seed=0, device="cpu")
    assert "churchly" not in without.config.literal.multi_piece_words
    assert not torch.equal(model.head().word_vectors[: churchly - 1], without.head().word_vectors[: churchly - 1])


def test_recipes_without_literal_words_refuse_them(settings):
    older = recipe_by_name("cajt").model_copy(update={"training": settings.training})
    with pytest.raises(ValueError, match="unlabelled texts sharpen a table of literal words"):
        train_model(older, dataset(unlabelled=MORE), seed=0, device="cpu")


def experiment(tmp_path, **data):
    lines = [f'"{text}",{label}' for label, texts in (("good", GOOD), ("bad", BAD)) for text in texts]
    for name in ("train", "validation", "test"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    model = {"name": str(tiny.saved_encoder(tmp_path / "encoder")), "context": None}
    return build_config({"data": {"dataset_name": str(tmp_path), **data}, "model": model})


def test_a_file_of_them_is_a_setting_and_noted(tmp_path):
    (tmp_path / "more.csv").write_text("text,label\n" + "\n".join(f"{text}," for text in MORE) + "\n")
    notes = []
    config = experiment(tmp_path, unlabelled=str(tmp_path / "more.csv"))
    done = setup_and_train(config, "cpu", Watchers(on_note=notes.append))
    assert "words are read in 3 unlabelled texts too; no label is taken from them" in notes
    assert done.as_dict()["unlabelled_texts"] == 3
    assert done.model.dimensions.find("churchly")


def test_a_file_of_them_without_a_text_or_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.csv"):
        setup_and_train(experiment(tmp_path, unlabelled=str(tmp_path / "none.csv")), "cpu")
    (tmp_path / "empty.csv").write_text("text\n")
    with pytest.raises(ValueError, match="no row"):
        setup_and_train(experiment(tmp_path, unlabelled=str(tmp_path / "empty.csv")), "cpu")


def test_taggers_refuse_them(tmp_path):
    with pytest.raises(ValueError, match=r"data\.unlabelled is for texts with a label each"):
        load_sentences(experiment(tmp_path, unlabelled="more.csv"), 0)


def test_train_takes_a_file_of_them(run, tmp_path):
    code, _, err = run("train", "sst2", "--unlabelled", str(tmp_path / "none.csv"))
    assert code != 0
    assert "there is no file or folder" in err
