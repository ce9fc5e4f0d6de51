"""Identity columns of one's own files: `identity:<name>`, from 0 to 1 or blank."""

import math

import pandas as pd
import pytest

from lexical_sae.data import read_text_dataset


def write(path, cells, header="text,label,identity:women"):
    path.write_text("\n".join([header, *(f"text number {i},{'ab'[i % 2]},{c}" for i, c in enumerate(cells))]) + "\n")
    return path


def women(dataset):
    splits = (dataset.train, dataset.validation, dataset.test)
    return {text: share for split in splits for text, share in zip(split.texts, split.identities["women"], strict=True)}


def test_shares_follow_their_texts_and_blanks_are_unknown(tmp_path):
    cells = ["0", "1", "0.25", "", " ", "nan"] * 7
    found = women(read_text_dataset(write(tmp_path / "a.csv", cells)))
    for i, cell in enumerate(cells):
        share = found[f"text number {i}"]
        assert math.isnan(share) if cell in ("", " ", "nan") else share == float(cell)


@pytest.mark.parametrize("cell", ["yes", "1.5", "-0.1", "inf", "-inf", "50%"])
def test_anything_else_is_refused_with_its_line(tmp_path, cell):
    path = write(tmp_path / "a.csv", ["0.5"] * 40 + [cell])
    with pytest.raises(ValueError, match=rf"a.csv:42: column 'identity:women' holds '{cell}'.*from 0 to 1, or a blank"):
        read_text_dataset(path)


def test_a_frame_may_hold_gaps_of_any_kind():
    frame = pd.DataFrame({"text": [f"t{i}" for i in range(40)], "label": [i % 2 for i in range(40)]})
    frame["identity:women"] = pd.array([1, None] * 20, dtype="Int64")
    found = women(read_text_dataset(frame))
    assert found["t0"] == 1
    assert math.isnan(found["t1"])
    frame["identity:women"] = [None, pd.NA, 0.5, True] * 10
    found = women(read_text_dataset(frame))
    assert [found["t2"], found["t3"]] == [0.5, 1.0]
    assert math.isnan(found["t0"])
    assert math.isnan(found["t1"])


def test_identity_columns_do_not_disturb_the_guess(tmp_path):
    dataset = read_text_dataset(write(tmp_path / "a.csv", ["1"] * 40, header="a,b,identity: women"))
    assert dataset.label_names == ("a", "b")
    assert set(women(dataset).values()) == {1.0}


def test_an_identity_needs_a_name_of_its_own(tmp_path):
    with pytest.raises(ValueError, match=r"column 'identity:' names no identity; write identity:<name>"):
        read_text_dataset(write(tmp_path / "a.csv", ["1"] * 40, header="text,label,identity:"))
    with pytest.raises(ValueError, match="two columns for identity 'x'"):
        read_text_dataset(write(tmp_path / "a.csv", ["1,0"] * 40, header="text,label,identity:x,identity: x"))
