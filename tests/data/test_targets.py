"""What rows say is to be learned: labels in columns, lists or with a separator, and numbers; never guessed."""

import json

import numpy as np
import pandas as pd
import pytest

from lexical_sae.data import load_text_dataset, read_text_dataset
from lexical_sae.data.targets import label_strata, number_strata
from lexical_sae.utils.errors import DataError

ROWS = [
    (f"text number {i}", [name for name, step in (("toxic", 2), ("threat", 5)) if i % step == 0]) for i in range(40)
]
NAMES = ("threat", "toxic")


def csv_of(path, header, rows):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def in_columns(path, yes="1", no="0"):
    rows = [f"{text},{','.join(yes if name in own else no for name in NAMES)}" for text, own in ROWS]
    return csv_of(path / "columns.csv", f"comment,{','.join(NAMES)}", rows)


def by_text(dataset):
    splits = (dataset.train, dataset.validation, dataset.test)
    return {text: labels for split in splits for text, labels in zip(split.texts, split.labels, strict=True)}


def test_columns_lists_json_lists_and_separated_labels_read_the_same(tmp_path):
    separated = csv_of(tmp_path / "a.csv", "text,labels", [f"{text},{'; '.join(own)}" for text, own in ROWS])
    lines = tmp_path / "a.jsonl"
    lines.write_text("\n".join(json.dumps({"text": text, "labels": own}) for text, own in ROWS))
    frame = pd.DataFrame({"text": [text for text, _ in ROWS], "labels": [json.dumps(own) for _, own in ROWS]})
    parquet = tmp_path / "a.parquet"
    pd.DataFrame({"text": [t for t, _ in ROWS], "labels": [np.array(own, dtype=object) for _, own in ROWS]}).to_parquet(
        parquet
    )
    read = [
        read_text_dataset(in_columns(tmp_path), label_columns=NAMES),
        read_text_dataset(separated, label_separator=";"),
        *(read_text_dataset(source, target="labels") for source in (lines, frame, parquet)),
    ]
    expected = {text: tuple(int(name in own) for name in NAMES) for text, own in ROWS}
    for dataset in read:
        assert dataset.output == "labels"
        assert dataset.label_names == NAMES
        assert by_text(dataset) == expected
    assert "2 labels" in repr(read[0])


@pytest.mark.parametrize(("yes", "no"), [("True", "False"), ("1.0", "0.0"), ("1", "0")])
def test_marks_may_be_written_as_numbers_or_words(tmp_path, yes, no):
    assert sum(map(sum, by_text(read_text_dataset(in_columns(tmp_path, yes, no), label_columns=NAMES)).values())) == 28


def test_bad_marks_and_lists_are_refused_with_their_place(tmp_path):
    def refused(header, row, **how):
        with pytest.raises(DataError) as error:
            read_text_dataset(csv_of(tmp_path / "bad.csv", header, ["one text,1,0", row][how.pop("first", 0) :]), **how)
        return str(error.value)

    assert "bad.csv:3 ('toxic' is '2', not 0 or 1)" in refused(
        "text,toxic,rude", "another,2,0", label_columns=("toxic", "rude")
    )
    assert "'rude' is empty" in refused("text,toxic,rude", "another,1,", label_columns=("toxic", "rude"))
    assert "no column 'tocsic'; did you mean 'toxic'?" in refused(
        "text,toxic,rude", "a,1,1", label_columns=("tocsic", "rude")
    )
    assert "is no JSON list; name the label_separator" in refused(
        "text,labels", "a text,toxic", target="labels", first=1
    )


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"label_columns": ("a",), "label_column": "b"}, "leave out label_column"),
        ({"label_columns": ("a",), "label_separator": ";"}, "leave out label_column"),
        ({"label_columns": ("a", "a")}, "twice"),
        ({"label_columns": ("a",), "target": "number"}, "not target: number"),
        ({"label_separator": ""}, "empty"),
        ({"target": "numbers"}, "did you mean"),
    ],
)
def test_options_that_do_not_go_together_are_refused(how, said):
    with pytest.raises(DataError, match=said):
        read_text_dataset([("a", 1), ("b", 2)], **how)


def test_named_sets_have_classes():
    with pytest.raises(DataError, match="fixed columns and classes"):
        load_text_dataset("sst2", target="number")


def test_whole_numbers_are_classes_unless_a_number_is_asked_for(tmp_path):
    path = csv_of(tmp_path / "stars.csv", "text,stars", [f"text {i},{1 + i % 5}" for i in range(40)])
    assert read_text_dataset(path, label_column="stars").output == "classes"
    dataset = read_text_dataset(path, label_column="stars", target="number")
    assert dataset.output == "number"
    assert dataset.label_names == ("stars",)
    assert set(by_text(dataset).values()) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert any("stars is a number: 1 to 5" in note for note in dataset.notes)


def test_text_labels_are_no_numbers(tmp_path):
    path = csv_of(tmp_path / "a.csv", "text,label", ["a text,good", "another,4.5", "more,nan"])
    with pytest.raises(DataError, match=r"2 unusable rows.*'good' is not a number; for names of classes leave out"):
        read_text_dataset(path, target="number")
    dataset = read_text_dataset(
        [(f"text {i}", i / 2) for i in range(20)] + [("odd", True)], target="number", skip_bad_rows=True
    )
    assert "odd" not in by_text(dataset)


def test_splits_keep_rare_labels_and_the_spread_of_numbers_in_proportion():
    rows = [(f"text number {i}", ["common"] * (i % 2) + ["rare"] * (i % 10 == 0)) for i in range(200)]
    dataset = read_text_dataset([{"text": text, "labels": own} for text, own in rows], target="labels")
    rare = dataset.label_names.index("rare")
    assert sum(row[rare] for row in dataset.test.labels) == 4
    numbers = read_text_dataset([(f"text {i}", i) for i in range(200)], target="number")
    assert 80 < np.mean(numbers.test.labels) < 120
    assert max(numbers.test.labels) > 180 > 20 > min(numbers.test.labels)


def test_a_label_that_train_lacks_is_said():
    rows = [{"text": f"text {i}", "labels": ["a"] if i % 2 else []} for i in range(30)]
    test = [{"text": f"other {i}", "labels": ["a", "b"]} for i in range(4)]
    dataset = read_text_dataset(rows, test=test, target="labels")
    assert "no train row has the label 'b': nothing can be learned of it" in dataset.notes
    assert "every test row has the labels 'a', 'b'" in dataset.notes


def test_strata():
    assert label_strata([[1, 0], [1, 1], [0, 0]]) == (1, 2, 0)
    assert number_strata([3.0, 1.0, 3.0]) == (1, 0, 1)
    assert np.bincount(number_strata([float(i) for i in range(100)])).tolist() == [10] * 10
