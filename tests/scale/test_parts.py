import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexical_sae.scale.inputs import choose_columns, find_inputs
from lexical_sae.scale.parts import parts_of
from lexical_sae.utils.errors import DataError

ROWS = [{"text": f"text {i}", "label": str(i % 3), "region": f"r{i % 2}"} for i in range(10)]


def write_csv(path):
    path.write_text(
        "text,label,region\n" + "".join(f'"{row["text"]}",{row["label"]},{row["region"]}\n' for row in ROWS)
    )


def write_tsv(path):
    path.write_text("text\tlabel\tregion\n" + "".join("\t".join(row.values()) + "\n" for row in ROWS))


def write_jsonl(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def write_gzip(path):
    with gzip.open(path, "wt") as file:
        file.write("".join(json.dumps(row) + "\n" for row in ROWS))


def write_parquet(path):
    pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=3)


def write_arrow(path):
    with pa.ipc.new_file(path, pa.Table.from_pylist(ROWS).schema) as file:
        file.write_table(pa.Table.from_pylist(ROWS), max_chunksize=4)


def write_arrow_stream(path):
    with pa.ipc.new_stream(path, pa.Table.from_pylist(ROWS).schema) as file:
        file.write_table(pa.Table.from_pylist(ROWS))


def read(path, rows=4, kept=("region",), **columns):
    (found,) = find_inputs([str(path)])
    chosen, _ = choose_columns(found, columns.get("text"), columns.get("label"), kept)
    return list(parts_of(found, chosen, rows))


def rejected(parts):
    return [(row["source_row"], row["reason"]) for part in parts for row in part.rejected.to_pylist()]


@pytest.mark.parametrize(
    ("ending", "write"),
    [
        (".csv", write_csv),
        (".tsv", write_tsv),
        (".jsonl", write_jsonl),
        (".jsonl.gz", write_gzip),
        (".parquet", write_parquet),
        (".feather", write_arrow),
        (".arrow", write_arrow_stream),
    ],
)
def test_all_formats_give_the_same_parts(tmp_path, ending, write):
    write(tmp_path / f"rows{ending}")
    parts = read(tmp_path / f"rows{ending}")
    assert [part.key.number for part in parts] == [0, 1, 2]
    assert [len(part.texts) for part in parts] == [4, 4, 2]
    assert [text for part in parts for text in part.texts] == [row["text"] for row in ROWS]
    assert [label for part in parts for label in part.places.labels.to_pylist()] == [row["label"] for row in ROWS]
    assert [i for part in parts for i in part.places.ids.to_pylist()] == list(range(10))
    kept = [value for part in parts for value in part.kept.column("region").to_pylist()]
    assert kept == [row["region"] for row in ROWS]
    assert parts[-1].read == 1.0
    assert not rejected(parts)


def test_bad_rows_of_a_csv_are_set_aside_with_their_line(tmp_path):
    path = tmp_path / "a.csv"
    written = 'text,region\ncafé one,n\n,n\na,b,c\n"broken" quote,n\n"two\nlines",s\nbyte % here,s\nlast,s\n'
    path.write_bytes(written.encode().replace(b"%", b"\xff"))
    parts = read(path, rows=2)
    assert [text for part in parts for text in part.texts] == ["café one", "two\nlines", "last"]
    assert [row for part in parts for row in part.places.rows.to_pylist()] == [2, 6, 9]
    reasons = dict(rejected(parts))
    assert reasons[3] == "empty text"
    assert reasons[4] == "3 fields, not 2"
    assert reasons[5].startswith("breaks the CSV rules")
    assert reasons[8] == "not in the file's encoding"
    assert sum(len(part.texts) + len(part.rejected) for part in parts) == 7


def test_an_unclosed_quote_takes_no_row_before_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text\none\ntwo\n"three\nfour\n')
    parts = read(path, kept=())
    assert parts[0].texts == ["one", "two"]
    assert [line for line, _ in rejected(parts)] == [4]


def test_bad_rows_of_json_lines_are_set_aside_with_their_line(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = ['{"text": "good"}', "", "{broken", '{"text": 3}', '{"other": "x"}', "[1]", '{"text": "half \\ud83d"}']
    path.write_text("\n".join(lines))
    parts = read(path, rows=3, kept=())
    assert [text for part in parts for text in part.texts] == ["good", "half \ud83d"]
    assert [line for line, _ in rejected(parts)] == [3, 4, 5, 6]
    assert [reason for _, reason in rejected(parts)][1:3] == ["text is int, not a string", "no text"]


def test_rows_without_a_text_in_parquet_are_set_aside(tmp_path):
    pq.write_table(pa.table({"text": ["a", None, "b"], "n": [1, 2, 3]}), tmp_path / "a.parquet")
    (part,) = read(tmp_path / "a.parquet", kept=("n",))
    assert part.texts == ["a", "b"]
    assert part.kept.column("n").to_pylist() == [1, 3]
    assert rejected([part]) == [(2, "no text")]


def test_folders_and_globs_are_read_in_order(tmp_path):
    for name in ("b.csv", "a.jsonl", "notes.md"):
        (tmp_path / name).write_text("")
    in_folder = find_inputs([str(tmp_path)])
    assert [(found.path.rpartition("/")[2], found.number) for found in in_folder] == [("a.jsonl", 0), ("b.csv", 1)]
    twice = find_inputs([str(tmp_path / "*.csv"), str(tmp_path)])
    assert [found.path.rpartition("/")[2] for found in twice] == ["b.csv", "a.jsonl"]
    with pytest.raises(DataError, match="finds none"):
        find_inputs([str(tmp_path / "*.parquet")])


def test_a_file_without_the_column_is_refused_with_its_name(tmp_path):
    write_csv(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("body,label,region\nx,1,2\n")
    first, second = find_inputs([str(tmp_path)])
    columns, notes = choose_columns(first, None, None, ["all"])
    assert (columns.text, columns.label, columns.kept) == ("text", "label", ("label", "region"))
    assert len(notes) == 2
    with pytest.raises(DataError, match="b.csv has no column 'text'"):
        list(parts_of(second, columns, 4))
