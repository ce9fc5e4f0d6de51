from types import SimpleNamespace

import pytest

from lexical_sae.config.load import build_config
from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.evaluation.names.bag_of_words import BagOfWords
from lexical_sae.runs import Run
from lexical_sae.runs.measuring import name_tests as naming
from lexical_sae.runs.seeds import Watchers


def test_the_strongest_words_are_those_of_all_classes_of_a_sorted_set(monkeypatch, tmp_path):
    labels = [0] * 2000 + [1] * 2000
    texts = tuple(f"{('awful', 'lovely')[label]} film {row}" for row, label in enumerate(labels))
    split = TextSplit(texts, tuple(labels))
    dataset = TextDataset("sorted", ("negative", "positive"), train=split, validation=split, test=split)
    bag = BagOfWords(texts[::20], labels[::20])
    monkeypatch.setattr(Run, "model_and_data", lambda _: (bag, dataset))
    monkeypatch.setattr(Run, "require_made_by", lambda *_: None)
    monkeypatch.setattr(naming, "measure_names", lambda *_: SimpleNamespace(as_dict=dict))
    monkeypatch.setattr(naming, "measure_context", lambda *_, **__: SimpleNamespace(as_dict=dict))
    monkeypatch.setattr(naming, "sentiment_lexicon", lambda: None)
    config = build_config({"output_dir": str(tmp_path)})
    found = naming.run_names(Run.of(config), words=1)["strongest_words"]
    assert {label: [word["name"] for word in words] for label, words in found.items()} == {
        "negative": ["awful"],
        "positive": ["lovely"],
    }


def test_a_run_without_a_word_is_complete_and_says_that_names_are_not_measured(monkeypatch, tmp_path):
    split = TextSplit(("🙂 🙂", "🙁 !"), (0, 1))
    dataset = TextDataset("signs", ("bad", "good"), train=split, validation=split, test=split)
    monkeypatch.setattr(Run, "model_and_data", lambda _: (None, dataset))
    monkeypatch.setattr(Run, "require_made_by", lambda *_: None)
    said = []
    config = build_config({"output_dir": str(tmp_path)})
    assert naming.name_runs(Run.of(config), watchers=Watchers(on_note=said.append)) == {}
    assert said == ["names are not measured: none of 2 texts has a word of letters or digits, so no name can be tried"]


def test_one_class_leaves_nothing_to_compare_names_with():
    with pytest.raises(naming.NoWords, match="two classes or more, got labels .1."):
        naming.BagOfWords(["a lovely film"], [1])


def test_names_are_tried_on_test_texts_and_the_ceiling_learns_from_train_texts(monkeypatch, tmp_path):
    splits = [TextSplit((f"a lovely {name}", f"an awful {name}"), (1, 0)) for name in ("train", "choice", "test")]
    dataset = TextDataset("marked", ("negative", "positive"), *splits)
    monkeypatch.setattr(Run, "model_and_data", lambda _: ("the model", dataset))
    monkeypatch.setattr(Run, "require_made_by", lambda *_: None)
    monkeypatch.setattr(naming, "BagOfWords", lambda *given: ("a bag of", *given))
    monkeypatch.setattr(naming, "sentiment_lexicon", lambda: frozenset({"lovely"}))
    monkeypatch.setattr(naming, "fit_references", lambda *given: given)
    asked, context = [], []
    monkeypatch.setattr(
        naming, "measure_names", lambda *given: asked.append(given[:3]) or SimpleNamespace(as_dict=dict)
    )
    monkeypatch.setattr(
        naming,
        "measure_context",
        lambda *given, references: context.append((*given[:6], references)) or SimpleNamespace(as_dict=dict),
    )
    found = naming.run_names(Run.of(build_config({"output_dir": str(tmp_path)})), words=0)
    assert found["model"] == found["bag of words"] == {"context": {}}
    train, _, test = splits
    assert asked == [
        ("the model", test.texts, train.texts),
        (("a bag of", train.texts, train.labels), test.texts, train.texts),
    ]
    bag = ("a bag of", train.texts, train.labels)
    fitted = (train.texts, train.labels, bag, frozenset({"lovely"}))
    rows = (test.texts, test.labels, train.texts, train.labels, dataset.label_names)
    assert context == [("the model", *rows, fitted), (bag, *rows, fitted)]
