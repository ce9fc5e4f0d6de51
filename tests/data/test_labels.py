"""What counts as one class, and what counts as no label, through the doors a user takes."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from lexical_sae.data import read_text_dataset


def rows(*labels, n=40):
    return [(f"text number {i}", labels[i % len(labels)]) for i in range(n)]


def write_csv(path, *labels):
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows(*labels)))
    return path


@pytest.mark.parametrize("other", [("1", "2"), ("1.0", "2.0"), ("+1", "2."), (1, 2), (1.0, 2.0), np.float32([1, 2])])
def test_whole_numbers_of_one_value_are_one_class_in_all_splits(tmp_path, other):
    train = write_csv(tmp_path / "train.csv", "1.0", "2.000")
    dataset = read_text_dataset(train, test=rows(*other))
    assert dataset.label_names == ("1", "2")
    assert set(dataset.test.labels) == {0, 1}


@pytest.mark.parametrize("labels", [("01", "1"), ("1.1", "1.10"), ("1e3", "1000"), ("1.0.0", "1"), ("--1", "-1")])
def test_codes_and_versions_keep_their_spelling(tmp_path, labels):
    assert set(read_text_dataset(write_csv(tmp_path / "a.csv", *labels)).label_names) == set(labels)


def test_negative_zero_is_zero_and_classes_are_sorted_by_size():
    assert read_text_dataset(rows("-0.0", "10", "2.5", "-3", 0, n=60)).label_names == ("-3", "0", "2.5", "10")


@pytest.mark.parametrize("spelling", [(True, False), ("True", "False"), ("TRUE", "FALSE"), np.array([True, False])])
def test_truth_values_are_one_class_however_written(tmp_path, spelling):
    dataset = read_text_dataset(write_csv(tmp_path / "a.csv", "true", "false"), test=rows(*spelling))
    assert dataset.label_names == ("false", "true")


def test_a_sign_too_many_is_a_name(tmp_path):
    assert read_text_dataset(write_csv(tmp_path / "a.csv", "--1", "+-2")).label_names == ("+-2", "--1")


@pytest.mark.parametrize("labels", [("Good", "good", "bad"), ("very good", "very  Good", "bad")])
def test_names_that_differ_only_in_case_or_spacing_are_two_classes_and_noted(tmp_path, labels):
    dataset = read_text_dataset(write_csv(tmp_path / "a.csv", *labels))
    first, second = sorted(labels[:2])
    assert set(dataset.label_names) == set(labels)
    assert [note for note in dataset.notes if "differ only" in note] == [
        f"classes '{first}' and '{second}' differ only in case or spacing and are kept apart; "
        "write them alike if they are one"
    ]


def test_names_that_differ_are_not_noted():
    assert not any("differ only" in note for note in read_text_dataset(rows("good", "bad")).notes)


@pytest.mark.parametrize("label", ["1" * 5000, "x" * 201, "9" * 4301 + ".0"])
def test_a_label_as_long_as_a_text_is_refused_with_its_line(tmp_path, label):
    path = write_csv(tmp_path / "a.csv", "a", "b")
    path.write_text(path.read_text() + f"last,{label}\n")
    with pytest.raises(ValueError, match=r"a.csv:42 \(label of \d+ characters.*the label column\?\)"):
        read_text_dataset(path)
    assert read_text_dataset(path, skip_bad_rows=True).label_names == ("a", "b")


def test_a_label_of_200_characters_is_fine():
    names = ("1" * 200, "2" * 200)
    assert read_text_dataset(rows(*names)).label_names == names


def test_a_number_too_long_for_python_is_refused_with_its_place(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "label": 1}\n{"text": "b", "label": ' + "1" * 5000 + "}\n")
    with pytest.raises(ValueError, match=r"a.jsonl:2 holds a number .* put it in quotes"):
        read_text_dataset(path)
    with pytest.raises(ValueError, match=r"row 40 \(label is a number of more than 200 digits\)"):
        read_text_dataset([*rows("a", "b"), ("long", 10**5000)])


MISSING = [
    None,
    float("nan"),
    np.float16("nan"),
    np.float32("nan"),
    np.float64("nan"),
    np.datetime64("NaT", "D"),
    np.array(np.nan),
    Decimal("nan"),
    pd.NA,
    pd.NaT,
]


@pytest.mark.parametrize("label", MISSING, ids=repr)
def test_every_kind_of_nothing_is_no_label_and_no_text(label):
    with pytest.raises(ValueError, match=r"row 40 \(no label\)"):
        read_text_dataset([*rows("a", "b"), ("text", label)])
    with pytest.raises(ValueError, match=r"row 40 \(no text\)"):
        read_text_dataset([*rows("a", "b"), (label, "a")])


def test_the_advice_names_the_switch_in_yaml_shell_and_python():
    with pytest.raises(ValueError, match=r"skip_bad_rows: true .*--skip-bad-rows .*skip_bad_rows=True"):
        read_text_dataset([*rows("a", "b"), ("", "a")])


@pytest.mark.parametrize(
    ("values", "dtype", "names"),
    [
        (("a", "b"), "string", ("a", "b")),
        (("b", "a"), "category", ("a", "b")),
        ((2, 10), "category", ("2", "10")),
        ((2, 10), "int64", ("2", "10")),
        ((2, 10), "Int64", ("2", "10")),
        ((2, 10), "uint8", ("2", "10")),
        ((2.0, 2.5), "float32", ("2", "2.5")),
        ((True, False), "bool", ("false", "true")),
        ((True, False), "boolean", ("false", "true")),
    ],
)
def test_frames_of_every_label_type_are_read(values, dtype, names):
    frame = pd.DataFrame(rows(*values), columns=["text", "label"]).astype({"text": "string", "label": dtype})
    assert read_text_dataset(frame).label_names == names


def test_gaps_in_a_frame_are_missing_labels_not_classes():
    frame = pd.DataFrame(rows(0, 1, None), columns=["text", "label"])
    for dtype in ("float32", "Int64", "category", object):
        with pytest.raises(ValueError, match=r"13 unusable rows: train DataFrame row 2 \(no label\)"):
            read_text_dataset(frame.astype({"label": dtype}))
        assert read_text_dataset(frame.astype({"label": dtype}), skip_bad_rows=True).label_names == ("0", "1")


@pytest.mark.parametrize(
    "label",
    [
        pd.Timestamp("2020-01-01"),
        datetime.date(2020, 1, 1),
        np.datetime64("2020-01-01", "ns"),
        np.array([1, 0]),
        {"a": 1},
    ],
)
def test_a_date_or_a_vector_is_no_class(label):
    with pytest.raises(ValueError, match=r"row 40 \(label is \w+, not a name or a number\)"):
        read_text_dataset([*rows("a", "b"), ("text", label)])


def test_half_a_surrogate_pair_in_a_label_is_mended(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": text, "label": label}) for text, label in rows("a", "b \ud83d")))
    names = read_text_dataset(path).label_names
    assert names == ("a", "b \N{REPLACEMENT CHARACTER}")
