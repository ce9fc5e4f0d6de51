"""One command trains one model that tags words and classifies texts with the same labels."""

import json
from collections import Counter
from pathlib import Path

import pytest

from lexical_sae.commands import tag as command
from lexical_sae.config.load import build_config, load_config
from lexical_sae.data import TaggedDataset, TaggedSplit, TextDataset, TextSplit
from lexical_sae.inference import explain, predict
from lexical_sae.inference.tagging import tag
from lexical_sae.models.lexical_sae import CLASSIFY, TAG
from lexical_sae.models.persistence import from_pretrained
from lexical_sae.runs import load_data
from lexical_sae.runs.tagging.documents import load_documents, main_tag, sentences_as_documents, with_labels
from lexical_sae.runs.tagging.experiment import setup_and_train_tagger
from tests import tiny
from tests.training.test_both_tasks import sentences

NAMES = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Sentences with a place, an animal or neither; the same in every split, so that what is learned is seen."""
    folder = tmp_path_factory.mktemp("both")
    tiny.saved_encoder(folder / "encoder")
    split, labels = sentences()
    blocks = [
        "\n".join(f"{word} {tag}" for word, tag in zip(*row, strict=True))
        for row in zip(split.tokens, split.tags, strict=True)
    ]
    for name, repeats in (("train", 3), ("dev", 1), ("test", 1)):
        (folder / f"{name}.txt").write_text("\n\n".join(blocks * repeats) + "\n")
    rows = [f"{' '.join(words)},{label}" for words, label in zip(split.tokens, labels, strict=True)]
    (folder / "texts.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    return folder


def settings(place, *, documents="sentences", shared=True, epochs=6):
    return {
        "experiment_name": "both",
        "output_dir": str(place / f"{documents.replace('/', '_')}-{shared}"),
        "data": {"dataset_name": str(place), "documents": documents},
        "model": {
            "name": str(place / "encoder"),
            "max_length": 16,
            "neighbourhood": {"words_per_token": 4},
            "shared_head": shared,
        },
        "training": {"max_epochs": epochs, "batch_size": 16, "active_target": 16, "learning_rate": 2.0e-3},
    }


@pytest.fixture(scope="module")
def trained(place):
    """What `lexical-sae ner --config FILE` leaves."""
    file = place / "both.yaml"
    file.write_text(json.dumps(settings(place)))
    command.ner(file, device="cpu")
    return load_config(file, default_recipe="neighbours")


def test_one_command_trains_one_head_that_tags_words_and_classifies_texts(trained):
    folder = Path(trained.output_dir)
    model = from_pretrained(folder / "model")
    assert model.head(CLASSIFY) is model.head(TAG)
    results = json.loads((folder / "results.json").read_text())
    texts = results["documents"]
    assert texts["texts"] == 45
    assert texts["majority"] == pytest.approx(20 / 45)
    assert texts["accuracy"] > 0.8
    assert results["test"]["f1"] > 0.8
    assert max(texts["identity_error"], results["test"]["identity_error"]) < 1e-5
    assert predict(model, "the dog was good") == "B-ANIMAL"
    assert [entity.type for entity in tag(model, "the dog was good").entities] == ["ANIMAL"]
    assert explain(model, "the dog was good").label == "B-ANIMAL"
    page = (folder / "report.html").read_text()
    assert f"accuracy, texts: <strong>{texts['accuracy']:.2%}</strong>" in page


def test_separate_heads_learn_both_tasks_with_the_same_settings(place):
    run = setup_and_train_tagger(build_config({"recipe": "neighbours"} | settings(place, shared=False)), "cpu")
    assert run.model.head(CLASSIFY) is not run.model.head(TAG)
    assert run.model.labels[CLASSIFY] == run.model.labels[TAG]
    assert run.documents is not None
    assert run.documents.accuracy > 0.8
    assert run.scores.entities.overall.f1 > 0.8


def test_texts_may_come_from_a_second_data_set(place):
    run = setup_and_train_tagger(
        build_config({"recipe": "neighbours"} | settings(place, documents=str(place / "texts.csv"), epochs=1)), "cpu"
    )
    assert run.model.head(CLASSIFY) is run.model.head(TAG)
    assert run.documents is not None
    assert 0 < run.documents.texts < 45


def test_a_sentence_has_the_tag_of_the_type_it_names_most():
    assert main_tag(["O", "O"]) == "O"
    assert main_tag(["B-LOC", "O", "B-PER", "I-PER", "B-PER"]) == "B-PER"
    assert main_tag(["B-PER", "I-PER", "I-PER", "B-LOC", "B-LOC"]) == "B-LOC"
    assert main_tag(["B-PER", "B-LOC"]) == "B-PER"


def test_documents_keep_the_splits_of_their_sentences():
    train, dev, test = (TaggedSplit(((word, "x"),), (("B-PER", "O"),)) for word in ("a", "b", "c"))
    found = sentences_as_documents(TaggedDataset("mine", NAMES, train, dev, test))
    assert [split.texts for split in (found.train, found.validation, found.test)] == [("a x",), ("b x",), ("c x",)]
    assert found.test.labels == (NAMES.index("B-PER"),)


def test_labels_of_a_second_data_set_are_counted_as_the_tags_are():
    split = TextSplit(("x", "y", "z"), (0, 1, 0))
    found = with_labels(TextDataset("mine", ("B-PER", "O"), split, split, split), NAMES)
    assert [found.label_names[label] for label in found.train.labels] == ["B-PER", "O", "B-PER"]
    assert found.label_names == NAMES


def test_a_text_label_that_is_not_a_tag_is_refused():
    split = TextSplit(("x", "y"), (0, 1))
    with pytest.raises(ValueError, match=r"label 'sport', which is not a tag of the sentences.*B-PER"):
        with_labels(TextDataset("mine", ("O", "sport"), split, split, split), NAMES)


def test_without_documents_a_tagger_is_trained_alone(place):
    config = build_config({"data": {"dataset_name": str(place)}})
    split = TaggedSplit((("x",),), (("O",),))
    assert load_documents(config, TaggedDataset("mine", NAMES, split, split, split), 0) is None


def test_a_classifier_that_is_given_documents_is_refused(place):
    config = build_config({"data": {"dataset_name": str(place / "texts.csv"), "documents": "sentences"}})
    with pytest.raises(ValueError, match=r"data\.documents \(sentences\) is for models that also tag"):
        load_data(config, 0)


def test_the_most_frequent_label_is_not_most_of_the_texts():
    _, labels = sentences()
    assert max(Counter(labels).values()) / len(labels) < 0.5
