import json

import pytest

from lexical_sae.data.sources.rationales import load_rationales
from tests.data.folders import write_csv

MARKS = [("['so', 'very', 'rude']", "[[0, 1, 1], [0, 1, 1], [0, 0, 1], [1, 0, 0]]"), ("['kind', 'words']", "[]")]


def write_movies(folder, evidences):
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a.txt").write_text("it is  a dull\nfilm indeed .")
    (folder / "docs" / "b.txt").write_text("fine")
    rows = [("a.txt", evidences), ("b.txt", [])]
    lines = [json.dumps({"annotation_id": name, "classification": "NEG", "evidences": found}) for name, found in rows]
    (folder / "test.jsonl").write_text("\n".join(lines) + "\n")


def evidence(start, end):
    return {"docid": "a.txt", "start_token": start, "end_token": end, "text": "-"}


def write_hatexplain(folder, rows):
    write_csv(folder / "rationales_test.csv", rows, header=("post_tokens", "rationales"))


def test_evidence_of_movies_is_found_in_the_text(tmp_path):
    write_movies(tmp_path, [[evidence(3, 5)], [evidence(0, 1), evidence(2, 2), evidence(0, 1)]])
    (found,) = load_rationales("eraser_movies", tmp_path).rationales
    assert [found.text[start:end] for start, end in found.spans] == ["it", "dull\nfilm"]


def test_half_of_the_annotators_mark_a_token(tmp_path, monkeypatch):
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path))
    write_hatexplain(tmp_path / "hatexplain", MARKS)
    given = load_rationales("hatexplain")
    (found,) = given.rationales
    assert found.text == "so very rude"
    assert [found.text[start:end] for start, end in found.spans] == ["very", "rude"]
    assert given.notes[1] == "left out 1 of 2 texts in which nothing is marked"


@pytest.mark.parametrize(
    ("name", "fill", "message"),
    [
        ("eraser_movie", lambda _: None, "did you mean 'eraser_movies'"),
        ("eraser_movies", lambda folder: write_movies(folder, [[evidence(5, 99)]]), r"jsonl:1.* lies outside the text"),
        ("eraser_movies", lambda folder: write_movies(folder, [[{"start": 1}]]), r"jsonl:1.* start_token.*fetch"),
        ("eraser_movies", lambda folder: write_movies(folder, None), r"jsonl:1.* evidences are None"),
        ("hatexplain", lambda folder: write_hatexplain(folder, [("['a', 'b']", "[[1]]")]), "not one mark, 0 or 1"),
        ("hatexplain", lambda folder: write_hatexplain(folder, [("['a', 'b']", "5")]), "not one mark, 0 or 1"),
        ("hatexplain", lambda folder: write_hatexplain(folder, [("['a']", "[['x']]")]), "not one mark, 0 or 1"),
        ("hatexplain", lambda folder: write_hatexplain(folder, [("[3]", "[[1]]")]), "not one mark, 0 or 1"),
        ("hatexplain", lambda folder: write_hatexplain(folder, [("['a'", "[]")]), "is no printed list"),
        ("hatexplain", lambda folder: write_hatexplain(folder, MARKS[1:]), "has a rationale; is the file complete"),
    ],
    ids=["name", "outside", "keys", "none", "marks", "number", "letters", "tokens", "cell", "unmarked"],
)
def test_slips_are_reported_with_their_place(tmp_path, name, fill, message):
    fill(tmp_path)
    with pytest.raises(ValueError, match=message):
        load_rationales(name, tmp_path)


def test_a_missing_folder_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="The folder holds: test.jsonl"):
        load_rationales("eraser_movies")
