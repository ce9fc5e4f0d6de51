import csv
import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.files import read_text_dataset
from lexical_sae.data.tables.formats import read_table

CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)


def write(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@given(st.lists(st.tuples(CELL, CELL).filter(any), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows, newline):
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator=newline).writerows([("text", "label"), *rows])
    table = read_table(write(tmp_path_factory.mktemp("csv"), "a.csv", buffer.getvalue()))
    assert list(zip(table.column("text"), table.column("label"), strict=True)) == rows


def test_bom_crlf_quotes_and_line_numbers(tmp_path):
    data = b'\xef\xbb\xbftext,label\r\n"two\r\nlines, ""quoted""",a\r\n\r\nlast,b\r\n'
    table = read_table(write(tmp_path, "a.csv", data))
    assert table.column("text") == ('two\r\nlines, "quoted"', "last")
    assert list(table.numbers) == [2, 5]
    assert table.place(1).endswith("a.csv:5")


def test_semicolons_and_gzip(tmp_path):
    table = read_table(write(tmp_path, "a.csv.gz", gzip.compress(b"text;label\na, b;1\n")))
    assert table.column("text") == ("a, b",)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"'])
def test_the_line_that_tells_excel_the_separator_is_obeyed_and_no_row(tmp_path, first, ending):
    lines = [first, "text;label, as given", "a, b;1", '"two', 'lines";2', "last;3", ""]
    table = read_table(write(tmp_path, "a.csv", ending.join(lines)))
    assert table.column("text") == ("a, b", f"two{ending}lines", "last")
    assert table.column("label, as given") == ("1", "2", "3")
    assert list(table.numbers) == [3, 4, 6]


@pytest.mark.parametrize(
    ("name", "first", "mark"),
    [("a.csv", "sep=,", ","), ("a.csv", "sep=|", "|"), ("a.csv", "sep=\t", "\t"), ("a.csv", r"sep=\t", "\t")]
    + [("a.tsv", "sep=\t", "\t")],
)
def test_any_separator_may_be_given(tmp_path, name, first, mark):
    table = read_table(write(tmp_path, name, f"{first}\ntext{mark}label\na; b{mark}1\n"))
    assert dict(table.columns) == {"text": ("a; b",), "label": ("1",)}
    assert list(table.numbers) == [3]


def test_a_column_may_be_called_sep(tmp_path):
    assert list(read_table(write(tmp_path, "a.csv", "sep,label\nx,1\n")).columns) == ["sep", "label"]


FILES = {
    "a.csv": "text,label\na; b,1\n\nlast,2\n",
    "b.csv": "text;label\na, b;1\n\nlast;2\n",
    "a.tsv": 'text\tlabel\n"a, b"\t1\n\nlast\t2\n',
    "a.jsonl": '{"text": "a\u2028b", "label": "1"}\n\n{"text": "last", "label": "2"}\n',
}


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
@pytest.mark.parametrize("name", FILES)
def test_any_line_ending_reads_the_same(tmp_path, name, ending):
    plain = read_table(write(tmp_path, name, FILES[name]))
    assert len(plain) == 2
    for text in (FILES[name].replace("\n", ending), FILES[name].rstrip("\n").replace("\n", ending)):
        assert read_table(write(tmp_path, name, text)) == plain


def test_a_carriage_return_inside_a_line_is_no_line_end_where_line_feeds_are(tmp_path):
    table = read_table(write(tmp_path, "a.tsv", "text\tlabel\na\rb\t1\n"))
    assert table.column("text") == ("a\rb",)


def test_tsv_keeps_stray_quotes_and_unwraps_whole_ones(tmp_path):
    table = read_table(write(tmp_path, "a.tsv", '"oh\t1\n"a ""b"""\t2\n'), columns=("text", "label"))
    assert table.column("text") == ('"oh', 'a "b"')


def test_a_line_of_a_megabyte_is_read(tmp_path):
    table = read_table(write(tmp_path, "a.csv", "text,label\n" + "x" * 1_000_000 + ",1\n"))
    assert len(str(table.column("text")[0])) == 1_000_000
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "a.csv",
            "text,label\na,b\nc,d,e\nf\n",
            r"needs 2 fields \('text', 'label'\).*a.csv:3 \(3 fields\).*a.csv:4 \(1 f",
        ),
        ("a.csv", 'text,label\nok,1\n"never closed,1\n', r"a.csv:3 breaks the CSV rules"),
        ("a.csv", b"text,label\ncaf\x81,1\n", r"a.csv:2 is not UTF-8: byte 0x81 at position 14"),
        ("a.csv", b"text,label\rcaf\x81,1\r", r"a.csv:2 is not UTF-8: byte 0x81 at position 14"),
        ("a.csv", "", "is empty"),
        ("a.csv", "text,text\na,b\n", "more than one column named"),
        ("a.csv.gz", b"not gzip", "not a complete gzip file"),
        ("a.csv.gz", gzip.compress(b"text,label\nx,1\n", mtime=0)[:-9], "not a complete gzip file"),
        ("a.jsonl", '{"text": "a"}\n{"text": \n', r"a.jsonl:2 is not JSON"),
        ("a.jsonl", '{"text": "a"}\n\n[1]\n', r"a.jsonl:3 is a JSON list, not an object"),
        ("a.jsonl", "[" * 100_000, r"a.jsonl:1 is (nested too deeply|not JSON)"),
        ("a.jsonl", "\n\n", "is empty"),
        ("a.xls", "", r"no known format has the ending '.xls'"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path, name, data, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, name, data))


def test_jsonl_lines_may_lack_a_key_and_hold_line_separators(tmp_path):
    table = read_table(write(tmp_path, "a.jsonl", '{"text": "a\u2028b", "label": 1}\n{"text": "c"}\n'))
    assert table.column("text") == ["a\u2028b", "c"]
    assert table.column("label") == [1, None]


def test_a_plain_text_file_is_a_text_per_line_without_labels(tmp_path):
    path = write(tmp_path, "a.txt", 'one, "two"\r\n\nthree\n')
    table = read_table(path)
    assert table.columns == {"text": ['one, "two"', "three"]}
    assert table.numbers == [1, 3]
    with pytest.raises(ValueError, match="which column is the label"):
        read_text_dataset(path)
    with pytest.raises(ValueError, match="is empty; write one text per line"):
        read_table(write(tmp_path, "b.txt", "\n"))


def test_a_missing_column_lists_those_seen(tmp_path):
    table = read_table(write(tmp_path, "a.csv", "text,label\nx,1\n"))
    with pytest.raises(ValueError, match=r"no column 'lable'; did you mean 'label'\? Columns seen: 'text', 'label'"):
        table.column("lable")


def test_an_unreadable_file_names_itself(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot read .*a.csv: No such file"):
        read_table(tmp_path / "a.csv")
