"""Every format, packer and encoding gives the rows that a plain CSV file gives."""

import bz2
import gzip
import json
import lzma
import re
import sys
import zipfile

import openpyxl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from lexical_sae.data.files import read_text_dataset
from lexical_sae.data.tables.formats import FORMATS, read_table, stem_of
from lexical_sae.utils.errors import DataError, MissingPackageError

ROWS = [("caf\u00e9, \u201cwarm\u201d", "good"), ("two\nlines; dull", "bad"), ("last", "good")]
RECORDS = [{"text": text, "label": label} for text, label in ROWS]
CSV = "text,label\n" + "".join(f'"{text}",{label}\n' for text, label in ROWS)


def arrow():
    return pa.Table.from_pylist(RECORDS)


def write_stream(path):
    with pa.ipc.new_stream(path, arrow().schema) as sink:
        sink.write_table(arrow())


def write_excel(path):
    book = openpyxl.Workbook()
    book.active.title = "empty"
    sheet = book.create_sheet("Reviews")
    for row in [(), ("text", "label"), *ROWS[:2], (), ROWS[2]]:
        sheet.append(row)
    book.save(path)


WRITERS = {
    "a.csv": lambda path: path.write_text(CSV),
    "a.CSV": lambda path: path.write_text(CSV),
    "semicolons.csv": lambda path: path.write_text(CSV.replace('",', '";').replace("text,", "text;")),
    "bars.csv": lambda path: path.write_text(CSV.replace('",', '"|').replace("text,", "text|")),
    "a.jsonl": lambda path: path.write_text("".join(json.dumps(row) + "\n" for row in RECORDS)),
    "a.json": lambda path: path.write_text(json.dumps(RECORDS, indent=2)),
    "lines.json": lambda path: path.write_text("".join(json.dumps(row) + "\n" for row in RECORDS)),
    "a.parquet": lambda path: pyarrow.parquet.write_table(arrow(), path),
    "a.feather": lambda path: pyarrow.feather.write_feather(arrow(), path),
    "a.arrow": lambda path: pyarrow.feather.write_feather(arrow(), path),
    "stream.arrow": write_stream,
    "a.xlsx": write_excel,
    "a.csv.gz": lambda path: path.write_bytes(gzip.compress(CSV.encode())),
    "a.csv.bz2": lambda path: path.write_bytes(bz2.compress(CSV.encode())),
    "a.csv.xz": lambda path: path.write_bytes(lzma.compress(CSV.encode())),
    "mark.csv": lambda path: path.write_text(CSV, encoding="utf-8-sig"),
    "utf16.csv": lambda path: path.write_text(CSV, encoding="utf-16"),
    "utf16le.csv": lambda path: path.write_text(CSV, encoding="utf-16-le"),
    "utf16be.csv": lambda path: path.write_text(CSV, encoding="utf-16-be"),
    "utf32.csv": lambda path: path.write_text(CSV, encoding="utf-32"),
    "windows.csv": lambda path: path.write_text(CSV, encoding="cp1252"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_form_gives_the_same_rows(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    table = read_table(path)
    assert list(zip(table.column("text"), table.column("label"), strict=True)) == ROWS


def test_every_format_is_tried_here():
    assert {ending.lower() for ending in FORMATS} - {".tsv", ".tab", ".ndjson"} == {
        "." + name.split(".")[1].lower() for name in WRITERS
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("utf16.csv", "was read as UTF-16"),
        ("utf16le.csv", "was read as UTF-16-LE"),
        ("windows.csv", r"is not UTF-8 \(line 2\) and was read as Windows-1252, for example 'caf\u00e9'"),
        ("a.xlsx", "read sheet 'Reviews', the first of 2 with rows"),
    ],
)
def test_what_was_decided_in_reading_is_said_in_the_notes(tmp_path, name, said):
    path = tmp_path / name
    WRITERS[name](path)
    (note,) = read_table(path).notes
    assert re.search(said, note)
    more = [(f"text {i}", ("good", "bad")[i % 2]) for i in range(30)]
    assert note in read_text_dataset(more, test=path).notes


@pytest.mark.parametrize("encoding", ["cp1251", "shift_jis", "gb18030"])
def test_an_encoding_that_is_not_western_is_refused_rather_than_guessed(tmp_path, encoding):
    text = {"cp1251": "очень хороший фильм", "shift_jis": "とても良い映画", "gb18030": "很好的电影"}[encoding]
    path = tmp_path / "a.csv"
    path.write_text(f"text,label\n{text},1\n", encoding=encoding)
    with pytest.raises(DataError, match=r"a.csv:2 is not UTF-8: byte 0x"):
        read_table(path)


def test_utf8_with_one_damaged_place_is_refused_and_not_read_as_windows_1252(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\ncafé and crème,1\n".encode() + b"caf\xe9,2\n")
    with pytest.raises(DataError, match=r"a.csv:3 is not UTF-8: byte 0xe9"):
        read_table(path)


def test_lines_of_a_json_array_are_those_of_the_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[\n  {"text": "a",\n   "label": 1},\n\n  {"text": "", "label": 2}]\n')
    table = read_table(path)
    assert (list(table.numbers), table.place(1)) == ([2, 5], f"{path}:5")


def test_lines_of_a_spreadsheet_are_those_it_shows(tmp_path):
    write_excel(tmp_path / "a.xlsx")
    assert list(read_table(tmp_path / "a.xlsx").numbers) == [3, 4, 6]


def test_a_cell_without_a_column_name_is_refused_with_its_row(tmp_path):
    book = openpyxl.Workbook()
    for row in [("text", "label"), ("a", 1), ("b", 2, "stray")]:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match=r"to the right of the 2 columns \('text', 'label'\) at .*a.xlsx:3"):
        read_table(tmp_path / "a.xlsx")


def test_lines_are_right_across_blocks_and_records_of_several_lines(tmp_path):
    rows = [f'"two\r\nlines {i}",a' if i % 1000 == 7 else f"one {i},b" for i in range(5000)]
    path = tmp_path / "a.csv"
    path.write_bytes(("text,label\n" + "\n".join(rows) + "\n").encode())
    table = read_table(path)
    lines = path.read_text().split("\n")
    assert len(table) == 5000
    starts = [lines[line - 1].lstrip('"')[:3] for line in table.numbers]
    assert starts == [str(text)[:3] for text in table.columns["text"]]
    assert table.numbers[-1] == 5006
    path.write_bytes(("text,label\n" + "\n".join([*rows, '"never closed']) + "\n").encode())
    with pytest.raises(DataError, match="a.csv:5007 breaks the CSV rules"):
        read_table(path)


def zip_of(path, **files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_csv", ".csv").replace("_md", ".md"), content)
    return path


def test_a_zip_archive_with_one_data_file_is_that_file(tmp_path):
    path = zip_of(tmp_path / "a.zip", reviews__a_csv="text,label\nx,1\n,2\n", README_md="about")
    table = read_table(path)
    assert table.column("text") == ("x", "")
    assert table.place(1) == f"{path}/reviews/a.csv:3"


def test_a_zip_archive_with_two_data_files_is_refused_with_their_names(tmp_path):
    with pytest.raises(DataError, match=r"a.zip holds 2 data files.*'one.csv', 'two.csv'"):
        read_table(zip_of(tmp_path / "a.zip", one_csv="", two_csv=""))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.parquet", b"PAR1 nothing", "not a complete parquet file"),
        ("a.feather", b"nothing", "not a complete feather file"),
        ("a.xlsx", b"nothing", "not a complete (Excel workbook|zip file)"),
        ("a.csv.xz", b"nothing", "not a complete xz file"),
        ("a.csv.bz2", b"nothing", "not a complete bz2 file"),
        ("a.zip", b"nothing", "not a complete zip file"),
        ("a.json", b'[{"text": "a"} {"text": "b"}]', "a.json:1: the array breaks off or lacks a comma"),
        ("a.json", b'[{"text": "a"},\n{"text": b}]', "a.json:2 is not JSON"),
        ("a.json", b'[{"text": "a"},\n 3]', "a.json:2 is a JSON int, not an object"),
        ("a.json", b"[]", "is an empty array"),
        ("a.json", b"[{}] {}", "goes on after the end"),
        ("a.csv", b"text,label\nx\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0,1\n", "looks like a binary file"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / name)


@pytest.mark.parametrize(("name", "package"), [("a.parquet", "pyarrow"), ("a.xlsx", "openpyxl")])
def test_a_package_that_is_not_installed_is_named_with_the_extra(tmp_path, monkeypatch, name, package):
    WRITERS[name](tmp_path / name)
    for module in [module for module in sys.modules if module.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"needs {package}; install it with: pip install 'lexical-sae\["):
        read_table(tmp_path / name)


def test_the_separator_is_the_one_that_makes_rows_even(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text;label, as given\na, b;1\nc;2\n")
    assert read_table(path).columns == {"text": ("a, b", "c"), "label, as given": ("1", "2")}


def test_a_name_without_its_endings():
    names = ["reviews.csv", "a.b.parquet", "reviews.JSONL.gz", "x.zip", "exponent 1.5", "a.csv.zip"]
    assert [stem_of(name) for name in names] == ["reviews", "a.b", "reviews", "x", "exponent 1.5", "a"]
