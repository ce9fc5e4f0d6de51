import pytest

from lexical_sae.data.sources.senses import load_coarse_senses, load_context_pairs, mention_of


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


COARSE = {
    "bank/classes_map.txt": '{"0": "bank_money", "1": "bank_river"}',
    "bank/train.data.txt": "1\tthe bank lends\n2\ta river bank\n",
    "bank/train.gold.txt": "0\n1\n",
    "bank/test.data.txt": "0\tbank , near it\n",
    "bank/test.gold.txt": "1\n",
    "README.txt": "notes",
}
PAIRS = {
    "train.data.txt": "play\tV\t1-2\tdogs play .\tto see plays\n",
    "train.gold.txt": "F\n",
    "dev.data.txt": "plot\tN\t0-1\tplot\ta plot\n",
    "dev.gold.txt": "T\n",
}


def test_every_mention_is_found_in_its_sentence_with_its_sense(tmp_path):
    (word,) = load_coarse_senses(write(tmp_path, COARSE))
    found = [(one.mention.sentence[slice(*one.mention.span)], one.sense) for one in (*word.train, *word.test)]
    assert word.word == "bank"
    assert found == [("bank", "bank_money"), ("bank", "bank_river"), ("bank", "bank_river")]


def test_pairs_have_both_places_and_the_answer(tmp_path):
    pairs = load_context_pairs(write(tmp_path, PAIRS))
    (pair,) = pairs["train"]
    assert [m.sentence[slice(*m.span)] for m in pair.mentions] == ["play", "plays"]
    assert not pair.is_same
    assert pairs["dev"][0].is_same


def test_the_folder_is_looked_for_where_data_lies(tmp_path, monkeypatch):
    write(tmp_path / "wic", PAIRS)
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path))
    assert len(load_context_pairs()["dev"]) == 1
    with pytest.raises(FileNotFoundError, match="CoarseWSD-20"):
        load_coarse_senses()
    monkeypatch.delenv("LEXICAL_SAE_DATA")
    with pytest.raises(FileNotFoundError, match=r"Give its folder, or set \$LEXICAL_SAE_DATA"):
        load_coarse_senses()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bank/train.gold.txt", "0\n", "has 2 lines and train.gold.txt 1"),
        ("bank/train.gold.txt", "0\n7\n", r"train.data.txt:2: sense '7'"),
        ("bank/train.data.txt", "1\tthe bank\n9\ta bank\n", "no token 9 in a sentence of 2"),
        ("bank/train.data.txt", "1\tthe bank\nx\ta bank\n", "'x' is no number"),
    ],
    ids=["lines", "sense", "place", "number"],
)
def test_damaged_senses_are_reported_with_their_line(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        load_coarse_senses(write(tmp_path, {**COARSE, name: text}))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("dev.gold.txt", "yes\n", "dev.data.txt:1: expected word"),
        ("dev.data.txt", "plot\tN\t0\tplot\ta plot\n", "expected two numbers"),
        ("dev.data.txt", "plot\tN\t0-1\tplot\n", "expected word"),
    ],
    ids=["answer", "places", "fields"],
)
def test_damaged_pairs_are_reported_with_their_line(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        load_context_pairs(write(tmp_path, {**PAIRS, name: text}))


def test_a_file_without_rows_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"dev\.data\.txt has no rows; get the file again"):
        load_context_pairs(write(tmp_path, {**PAIRS, "dev.data.txt": "\n", "dev.gold.txt": ""}))


def test_a_folder_without_words_and_one_without_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no words"):
        load_coarse_senses(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"train.data.txt; give a folder that is whole"):
        load_context_pairs(tmp_path)


def test_a_token_is_found_by_its_number_also_after_empty_ones():
    assert mention_of("a  bank", 2, "x").span == (3, 7)
