import json
import logging

import pandas as pd
import pytest

from lexical_sae.data.files import read_tagged_dataset, read_text_dataset
from lexical_sae.data.splits import Sizes


def pairs(n=40, classes=("good", "bad")):
    return [(f"text number {i}", classes[i % len(classes)]) for i in range(n)]


def write_csv(path, rows, header="text,label"):
    path.write_text("\n".join([header, *(f"{text},{label}" for text, label in rows)]) + "\n")
    return path


def texts(dataset):
    return {name: set(getattr(dataset, name).texts) for name in ("train", "validation", "test")}


def test_a_single_file_is_split_and_says_so(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="lexical_sae.data.files"):
        dataset = read_text_dataset(write_csv(tmp_path / "my reviews.csv", pairs()))
    split = texts(dataset)
    assert split["train"] | split["validation"] | split["test"] == {text for text, _ in pairs()}
    assert sum(map(len, split.values())) == 40
    assert dataset.label_names == ("bad", "good")
    assert dataset.name == "my reviews.csv"
    assert any("test: 8 rows carved" in note for note in dataset.notes)
    assert "guessed: text column 'text'" in dataset.notes
    assert "guessed: label column 'label'" in caplog.text


def test_list_frame_csv_and_jsonl_read_the_same(tmp_path):
    frame = pd.DataFrame(pairs(), columns=["text", "label"])
    jsonl = tmp_path / "a.jsonl"
    jsonl.write_text("\n".join(json.dumps({"text": t, "label": lab}) for t, lab in pairs()))
    sources = [pairs(), (pair for pair in pairs()), frame, write_csv(tmp_path / "a.csv", pairs()), str(jsonl)]
    read = [read_text_dataset(source) for source in sources]
    assert all(dataset.train == read[0].train and dataset.test == read[0].test for dataset in read)


def test_given_splits_are_kept_and_validation_is_carved_from_train(tmp_path):
    for name, rows in (("train", pairs(100)), ("test", [("unseen", "good"), ("new", "bad")])):
        write_csv(tmp_path / f"{name}.csv", rows)
    dataset = read_text_dataset(tmp_path)
    assert set(dataset.test.texts) == {"unseen", "new"}
    assert len(dataset.validation) == 25
    assert not texts(dataset)["train"] & texts(dataset)["validation"]


def test_two_unnamed_columns_are_distinguished_by_length(tmp_path):
    rows = [(label, text) for text, label in pairs()]
    dataset = read_text_dataset(write_csv(tmp_path / "a.csv", rows, header="a,b"))
    assert dataset.label_names == ("bad", "good")
    assert "guessed: text column 'b'" in dataset.notes


def test_named_columns_win_over_guesses(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label,stars\n" + "".join(f"t {i},x,{i % 3}\n" for i in range(30)))
    assert read_text_dataset(path, label_column="stars").label_names == ("0", "1", "2")


def test_columns_that_cannot_be_guessed_are_listed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,words,kind\n1,a,b\n")
    with pytest.raises(
        ValueError, match=r"which column is the text\? Name it with text_column=.*'id', 'words', 'kind'"
    ):
        read_text_dataset(path)
    with pytest.raises(ValueError, match=r"no column 'word'; did you mean 'words'\?"):
        read_text_dataset(path, text_column="word")
    with pytest.raises(ValueError, match="both column 'kind'"):
        read_text_dataset(path, text_column="kind", label_column="kind")


BAD_ROWS = [
    ("", "good", "empty text"),
    (" \t ", "good", "empty text"),
    ("\0", "good", "empty text"),
    (None, "good", "no text"),
    (float("nan"), "good", "no text"),
    (7, "good", "text is int"),
    (b"bytes", "good", "text is bytes"),
    (["nested"], "good", "text is list"),
    ("fine", None, "no label"),
    ("fine", float("nan"), "no label"),
    ("fine", pd.NA, "no label"),
    ("fine", "  ", "empty label"),
    ("fine", ["good"], "label is list"),
]


@pytest.mark.parametrize(("text", "label", "problem"), BAD_ROWS)
def test_an_unusable_row_is_named_or_left_out_on_request(text, label, problem):
    rows = [*pairs(), (text, label)]
    with pytest.raises(ValueError, match=rf"1 unusable rows: train list row 40 \({problem}.*skip_bad_rows=True"):
        read_text_dataset(rows)
    dataset = read_text_dataset(rows, skip_bad_rows=True)
    assert sum(map(len, texts(dataset).values())) == 40
    assert any(note.startswith("left out 1 unusable rows") for note in dataset.notes)


def test_a_bad_row_of_a_file_has_its_line(tmp_path):
    with pytest.raises(ValueError, match=r"a.csv:42 \(empty text\)"):
        read_text_dataset(write_csv(tmp_path / "a.csv", [*pairs(), ("", "good")]))


def test_broken_characters_are_replaced_and_counted():
    dataset = read_text_dataset([*pairs(), ("a\0b", "good"), ("half \ud83d pair", "bad")])
    everything = set().union(*texts(dataset).values())
    assert {"a b"} < everything
    assert all(text.encode("utf-8") for text in everything)
    assert any("in 2 texts" in note for note in dataset.notes)


def test_label_names_are_kept_as_written():
    names = ("R&B, <b>soul</b>", "日本語", '"quoted"')
    assert set(read_text_dataset(pairs(classes=names)).label_names) == set(names)


def test_numbers_and_booleans_are_classes():
    assert read_text_dataset([(f"t{i}", i % 12) for i in range(60)]).label_names[-2:] == ("10", "11")
    frame = pd.DataFrame({"text": [f"t{i}" for i in range(40)], "label": [float(i % 2) for i in range(40)]})
    assert read_text_dataset(frame).label_names == ("0", "1")
    assert read_text_dataset([(f"t{i}", i % 2 == 0) for i in range(40)]).label_names == ("false", "true")


def test_one_class_is_refused_even_if_test_has_another():
    with pytest.raises(ValueError, match="only one class, 'good'"):
        read_text_dataset(pairs(classes=("good",)))
    with pytest.raises(ValueError, match="only one class, 'good'"):
        read_text_dataset(pairs(classes=("good",)), test=pairs(4))


def test_a_class_absent_from_train_or_test_is_noted():
    dataset = read_text_dataset(pairs(), test=[("x", "good"), ("y", "odd")])
    assert dataset.label_names == ("bad", "good", "odd")
    assert "class 'odd' has no train row: it can never be learned" in dataset.notes
    assert "class 'bad' has no test row" in dataset.notes


def test_a_class_without_a_row_in_a_carved_test_is_noted(tmp_path, caplog):
    path = write_csv(tmp_path / "a.csv", [*pairs(), ("the only one", "odd")])
    with caplog.at_level(logging.INFO, logger="lexical_sae.data.files"):
        dataset = read_text_dataset(path)
    assert dataset.label_names.index("odd") not in dataset.test.labels
    assert "class 'odd' has no test row" in dataset.notes
    assert "class 'odd' has no test row" in caplog.text


def test_classes_that_a_subsample_lacks_are_named_in_one_note():
    dataset = read_text_dataset(pairs(classes=("a", "b", "c")), sizes=Sizes(train=1))
    missing = [name for i, name in enumerate("abc") if i not in dataset.train.labels]
    note = f"classes '{missing[0]}', '{missing[1]}' have no train row: they can never be learned"
    assert [found for found in dataset.notes if "never be learned" in found] == [note]


def test_a_score_is_not_a_class():
    with pytest.raises(ValueError, match="40 different labels in 40 rows"):
        read_text_dataset([(f"t{i}", i / 7) for i in range(40)])


def test_duplicates_stay_on_one_side_and_are_noted():
    rows = [(f"Text {i % 30}  ", ("a", "b")[i % 2]) for i in range(120)] + [("text 1", "b")]
    split = {name: {t.casefold().strip() for t in found} for name, found in texts(read_text_dataset(rows)).items()}
    assert not split["train"] & split["validation"]
    assert not split["train"] & split["test"]
    assert not split["validation"] & split["test"]
    assert any("duplicates of another train text" in note for note in read_text_dataset(rows).notes)


def test_texts_shared_by_given_splits_are_noted():
    dataset = read_text_dataset(pairs(), test=pairs(6), validation=[("v", "good"), ("w", "bad")])
    assert "6 train texts also occur in test (kept as given)" in dataset.notes


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([], ValueError, "empty list"),
        (["just a string"], ValueError, r"row 0 is 'just a string'; give a \(text, label\) pair"),
        ([("a", "b", "c")], ValueError, "row 0"),
        (7, TypeError, "train is int; give a path"),
        (b"a.csv", TypeError, "train is bytes"),
        ({"a": 1}, ValueError, "a dict of rows has one key per split .* it has 'a'"),
        ("nowhere.csv", FileNotFoundError, "no file nowhere.csv"),
        ([("a", "x"), ("b", "y")], ValueError, "too few"),
        ([("same", "x"), ("same", "y")] * 30, ValueError, "too much alike"),
    ],
)
def test_what_is_not_data_is_refused(rows, error, message):
    with pytest.raises(error, match=message):
        read_text_dataset(rows)


def test_a_frame_with_a_column_twice_is_refused():
    with pytest.raises(ValueError, match="train DataFrame has more than one column named 'text'; rename one"):
        read_text_dataset(pd.DataFrame([["a", "b", "c"]], columns=["text", "text", "label"]))


def test_a_list_of_dicts_reads_like_json_lines():
    rows = [{"id": i, "words": text, "kind": label} for i, (text, label) in enumerate(pairs())]
    del rows[7]["kind"]
    with pytest.raises(ValueError, match=r"train list row 7 \(no label\)"):
        read_text_dataset(rows, text_column="words", label_column="kind")
    rows[7]["kind"] = "bad"
    dataset = read_text_dataset((row for row in rows), text_column="words", label_column="kind")
    assert dataset.train == read_text_dataset(pairs()).train
    with pytest.raises(ValueError, match="row 40 is .'oops', 'good'.; give a dict like the first row"):
        read_text_dataset([*rows, ("oops", "good")])


def test_a_frame_beside_a_folder_is_the_split_it_is_given_as(tmp_path):
    write_csv(tmp_path / "train.csv", pairs())
    write_csv(tmp_path / "dev.csv", pairs(2))
    frame = pd.DataFrame([("unseen", "good"), ("new", "bad")], columns=["text", "label"])
    dataset = read_text_dataset(tmp_path, validation=frame, test=frame.iloc[::-1])
    assert dataset.validation.texts == ("unseen", "new")
    assert dataset.test.texts == ("new", "unseen")


def test_a_folder_given_as_a_split_is_called_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="is a folder; give a file for test"):
        read_text_dataset(pairs(), test=tmp_path)


ANSI = "\x1b[31mred\u202e"


@pytest.mark.parametrize(
    ("header", "row", "options"),
    [
        (f"text,{ANSI}", "a,b,c", {}),
        (f"text,{ANSI},{ANSI}", "a,b,c", {}),
        (f"id,{ANSI},kind", "1,a,b", {}),
        (f"text,{ANSI}", "a,b", {"label_column": "label"}),
        ("text,label", f"a,{ANSI}", {}),
        (f"text,label,identity:{ANSI}", f"a,b,{ANSI}\nc,d,0", {}),
    ],
)
def test_control_characters_of_a_file_reach_no_message(tmp_path, header, row, options):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n{row}\n")
    with pytest.raises(ValueError, match=r"\\x1b\[31mred\\u202e") as error:
        read_text_dataset(path, **options)
    assert str(error.value).isprintable()


def test_a_message_does_not_repeat_a_whole_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x" * 100_000 + ",b,c\na,b,c\n")
    with pytest.raises(ValueError, match="which column is the text") as error:
        read_text_dataset(path)
    assert len(str(error.value)) < 1000


def test_a_folder_needs_one_train_file(tmp_path):
    (tmp_path / "readme.md").write_text("")
    with pytest.raises(FileNotFoundError, match=r"has no train file .*it holds readme.md"):
        read_text_dataset(tmp_path)
    write_csv(tmp_path / "train.csv", pairs())
    write_csv(tmp_path / "train.tsv", pairs())
    with pytest.raises(ValueError, match="train.csv and train.tsv for train; keep one"):
        read_text_dataset(tmp_path)


def test_a_tagged_file_is_read_converted_and_split(tmp_path):
    path = tmp_path / "own.conll"
    path.write_text("-DOCSTART- O\n\n" + "".join(f"Ann{i} I-PER\nsleeps O\n\nIt O\nrains{i} O\n\n" for i in range(30)))
    dataset = read_tagged_dataset(path)
    assert dataset.tag_names == ("O", "B-PER", "I-PER")
    assert len(dataset.train) + len(dataset.validation) + len(dataset.test) == 60
    assert {tag for tags in dataset.train.tags for tag in tags} == {"O", "B-PER"}
    assert "tags are IOB1, converted to IOB2" in dataset.notes
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    assert read_tagged_dataset(path).train == dataset.train, "any line ending"


def test_a_file_without_header_does_not_lose_its_first_row_silently(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("".join(f"it broke again {i},technical\nwhere is it {i},shipping\n" for i in range(10)))
    with pytest.raises(ValueError, match=r"bare\.csv: the first line looks like data.*'technical'"):
        read_text_dataset(path)
