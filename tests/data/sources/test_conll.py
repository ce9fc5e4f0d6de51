import pytest

from lexical_sae.data.sources.conll import read_conll, tagged_source
from lexical_sae.data.tables.table import Table


def write(tmp_path, text, name="a.txt"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_any_number_of_columns_with_the_first_line_of_each_sentence(tmp_path):
    text = (
        "-DOCSTART- -X- O O\r\n\r\n# sent_id = 1\r\nAnn NNP X B-PER\r\nran VB X O\r\n\r\n\r\nParis\tNNP\tX\tB-LOC\r\n"
    )
    table = read_conll(write(tmp_path, text))
    assert table.column("tokens") == [["Ann", "ran"], ["Paris"]]
    assert table.column("tags") == [["B-PER", "O"], ["B-LOC"]]
    assert list(table.numbers) == [4, 8]


def test_a_hash_sign_and_a_no_break_space_are_words(tmp_path):
    table = read_conll(write(tmp_path, "# O\n\u00a0 O\nAnn B-PER\n"))
    assert table.column("tokens") == [["#", "\u00a0", "Ann"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ann B-PER\nran\n", r"a.txt:2 has 1 columns, the first word line has 2"),
        ("Ann X B-PER\nran O\n", r"a.txt:2 has 2 columns"),
        ("Ann B-PER\nran VB\n", r"a.txt:2: tag 'VB' is unknown"),
        ("\n-DOCSTART- O\n", "holds no sentence"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_conll(write(tmp_path, text))


def test_an_orphan_is_mended_and_reported_with_its_line(tmp_path):
    table = read_conll(write(tmp_path, "Ann B-PER\n\nBob B-PER\n\nthe O\nAlps I-LOC\n"))
    source = tagged_source(table, None, None)
    assert source.train.tags[2] == ("O", "B-LOC")
    assert any("I- without B- in 1 sentences" in note and "a.txt:5" in note for note in source.notes)


def test_tag_names_cover_all_splits_and_start_with_o(tmp_path):
    train = read_conll(write(tmp_path, "Ann B-PER\n", "a.txt"))
    test = read_conll(write(tmp_path, "Paris B-LOC\n", "b.txt"))
    assert tagged_source(train, None, test).names == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


def test_a_file_without_entities_and_a_length_mismatch_are_refused(tmp_path):
    with pytest.raises(ValueError, match="every tag is 'O'"):
        tagged_source(read_conll(write(tmp_path, "it O\n")), None, None)
    uneven = Table("hub", {"tokens": [["a", "b"]], "tags": [["B-PER"]]}, [0], is_file=False)
    with pytest.raises(ValueError, match="hub row 0: 2 words and 1 tags"):
        tagged_source(uneven, None, None)
