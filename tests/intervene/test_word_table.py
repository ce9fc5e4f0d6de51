"""The model as a table: written, edited in a spreadsheet, and read back."""

import csv
import io
import json

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lexical_sae.inference import explain
from lexical_sae.intervene import (
    FREQUENCIES_FILE,
    Lexicon,
    attached_frequencies,
    attached_lexicon,
    edit_saved_by_table,
    edit_saved_model,
    edited_by_table,
    load_word_table,
    model_table,
    suppress_token_globally,
    write_word_table,
)
from lexical_sae.intervene.word_table import WordRow, WordTable, escaped, unescaped
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from tests import tiny
from tests.literal import TEXTS, UNSEEN, batch_of, literal_model

LABELS = ("negative", "neutral", "positive")
HEADER = "word,weight:negative,weight:neutral,weight:positive,texts,suppress\n"


def written(tmp_path, body, header=HEADER):
    path = tmp_path / "words.csv"
    path.write_text(header + body)
    return path


def by(tmp_path, model, body):
    return edited_by_table(model, load_word_table(written(tmp_path, body), model.labels["classify"]))


def row_of(model, word):
    place = model.dimensions.names(range(len(model.dimensions))).index(word)
    return model.head().word_vectors[place].double()


def same_tensors(one, other):
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def weights_in(model, text):
    """What the words of a text contribute to each class without context, by an explanation's own count."""
    why = explain(model, text, target="positive", all_tokens=True)
    return {word.word: word.contribution for word in why.words}


# Written


def test_a_table_has_every_word_with_weight_the_largest_first_and_class_centered():
    model = literal_model()
    suppress_token_globally(model, "bad")
    table = model_table(model, {"good": 7})
    rows = {row.word: row for row in table.rows}
    assert table.labels == LABELS
    assert {"good", "badly", "filmed", "bad"} <= rows.keys()
    assert not [word for word in rows if word.startswith("##") or not word[0].isalnum()]
    sizes = [max(map(abs, row.weights)) for row in table.rows]
    assert sizes == sorted(sizes, reverse=True)
    for word in ("good", "filmed"):
        row = row_of(model, word)
        assert rows[word].weights == pytest.approx((row - row.mean()).tolist(), abs=1e-4)
    assert [row.word for row in table.rows if row.suppress] == [word for word in rows if word in ("bad", "bads")]
    assert (rows["good"].texts, rows["filmed"].texts) == (7, None)


def test_words_without_weight_are_not_listed():
    model = literal_model()
    assert "plot" in {row.word for row in model_table(model).rows}
    with torch.no_grad():
        model.head().word_vectors[list(model.dimensions.find("plot"))] = 0.0
    assert "plot" not in {row.word for row in model_table(model).rows}


def test_weights_are_what_a_word_contributes_in_a_text_of_sixteen_tokens():
    model = literal_model(shifting=False)
    text = "a good film and " * 3 + "the plot"
    assert batch_of(model, text)[0].shape[1] == 16
    weights = {row.word: row.weights[2] for row in model_table(model).rows}
    for word, contribution in weights_in(model, text).items():
        assert contribution == pytest.approx(weights[word], abs=1e-4)


def test_a_model_that_is_no_table_is_refused():
    with pytest.raises(ValueError, match="this model is no table of words"):
        model_table(tiny.model())


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    path = write_word_table(model_table(literal_model()), tmp_path / "words.csv")
    with pytest.raises(ValueError, match="may hold your edits; choose another name"):
        write_word_table(model_table(literal_model()), path)


# There and back


def test_a_table_that_comes_back_unchanged_gives_the_same_model_bitwise(tmp_path):
    model = literal_model()
    suppress_token_globally(model, "bad")
    path = write_word_table(model_table(model), tmp_path / "words.csv")
    done = edited_by_table(model, load_word_table(path, LABELS))
    assert not done
    assert same_tensors(done.model, model)
    original = save_pretrained(model, tmp_path / "model")
    with pytest.raises(ValueError, match="has the weights that .* already has"):
        edit_saved_by_table(original, path, tmp_path / "edited")


anything = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
risky = st.builds(str.__add__, st.sampled_from([*"=+-@'", "\t", "''=", "1", "true"]), st.text("=+-@'1a", max_size=4))


@given(st.one_of(anything, risky))
def test_no_cell_is_a_formula_a_number_or_a_date_and_every_word_comes_back(word):
    cell = escaped(word)
    assert cell[0] not in "=+-@\t\r"
    assert not cell[0].isdigit()
    assert cell.casefold() not in ("true", "false")
    assert unescaped(cell) == word


@given(st.lists(st.one_of(anything, risky), unique_by=str.strip, max_size=5), st.data())
@settings(max_examples=50, deadline=None)
def test_any_table_comes_back_from_its_file(tmp_path_factory, words, data):
    words = [word.strip() for word in words]
    assume(all(words))
    numbers = st.one_of(st.none(), st.tuples(*[st.integers(-99999, 99999).map(lambda n: n / 10000)] * 3))
    rows = tuple(
        WordRow(word, data.draw(numbers), data.draw(st.booleans()), data.draw(st.one_of(st.none(), st.integers(0, 9))))
        for word in words
    )
    path = tmp_path_factory.mktemp("table") / "words.csv"
    write_word_table(WordTable(LABELS, rows), path)
    back = load_word_table(path, LABELS).rows
    assert [(r.word, r.weights, r.suppress, r.texts) for r in back] == [
        (r.word, r.weights, r.suppress, r.texts) for r in rows
    ]


def test_a_spreadsheet_may_use_semicolons_and_decimal_commas(tmp_path):
    header = HEADER.replace(",", ";")
    path = written(tmp_path, "film;-0,5;0;0,5;;TRUE\n", header)
    (row,) = load_word_table(path, LABELS).rows
    assert (row.weights, row.suppress) == ((-0.5, 0.0, 0.5), True)


# Edited


def test_a_changed_weight_is_set_and_everything_else_is_bitwise_the_same(tmp_path):
    model = literal_model()
    done = by(tmp_path, model, "film,-1.5,0.25,1.25,,\n")
    assert row_of(done.model, "film").tolist() == [-1.5, 0.25, 1.25]
    (film,) = model.dimensions.find("film")[:1]
    expected = model.head().word_vectors.clone()
    expected[film] = torch.tensor([-1.5, 0.25, 1.25])
    assert torch.equal(done.model.head().word_vectors, expected)
    assert float(done.model.context.size[film]) == 1.5
    changed = {name for name, t in model.state_dict().items() if not torch.equal(t, done.model.state_dict()[name])}
    assert changed == {"heads.classify.word_vectors", "context.size"}
    assert [(change.word, change.after) for change in done.changed] == [("film", (-1.5, 0.25, 1.25))]


def test_one_changed_class_moves_the_others_so_that_the_row_stays_centered(tmp_path):
    model = literal_model()
    table = {row.word: row.weights for row in model_table(model).rows}
    old = table["film"]
    done = by(tmp_path, model, f"film,2.0,{old[1]},{old[2]},,\n")
    new = row_of(done.model, "film")
    assert float(new[0]) == 2.0
    assert float(new.sum()) == pytest.approx(0, abs=1e-6)
    assert float(new[1] - new[2]) == pytest.approx(old[1] - old[2], abs=2e-4)


def test_a_weight_of_zero_everywhere_empties_the_row_and_closes_the_word(tmp_path):
    model = literal_model()
    done = by(tmp_path, model, "filmed,0,0,0,,\n")
    assert row_of(done.model, "filmed").tolist() == [0, 0, 0]
    assert "filmed" not in weights_in(done.model, TEXTS[0])
    back = by(tmp_path, done.model, "filmed,1,0,-1,,\n")
    assert "filmed" in weights_in(back.model, TEXTS[0])


@pytest.mark.parametrize("row", ["film,,,,,\n", "film,1,0,-1,,true\n", "film,1,0,-1,,x\n"])
def test_a_suppressed_word_is_closed_in_all_its_forms_and_keeps_its_row(tmp_path, row):
    model = literal_model()
    done = by(tmp_path, model, row)
    closed = [name for found in done.suppressed for name in done.model.dimensions.names(found.dimensions)]
    assert closed == ["film", "films"]
    assert torch.equal(row_of(done.model, "good"), row_of(model, "good"))
    assert torch.equal(done.model.head().word_vectors, model.head().word_vectors)
    assert "film" not in weights_in(done.model, TEXTS[0])
    assert not done.changed


def test_a_word_that_the_model_never_met_is_added_with_its_weight(tmp_path):
    model = literal_model(shifting=False)
    done = by(tmp_path, model, "Boringly,1.0,0.5,-1.5,,\nunhappyness,,,,,\n")
    assert "boringly" in done.added
    assert row_of(done.model, "boringly").tolist() == [1.0, 0.5, -1.5]
    said = weights_in(done.model, UNSEEN[1])
    assert "unhappyness" not in said
    activation = (16 / batch_of(model, UNSEEN[1])[0].shape[1]) ** 0.5
    assert said["boringly"] == pytest.approx(-1.5 * activation, rel=1e-5)
    assert "boringly" not in {d.name for d in model.dimensions.appended}
    assert same_tensors(model, literal_model(shifting=False))


def test_words_that_are_not_in_the_table_decide_as_before(tmp_path):
    model = literal_model()
    done = by(tmp_path, model, "film,1,0,-1,,\nchurch,,,,,\n")
    text = "the acting was boringly wonderful"
    for of in (model, done.model):
        assert set(weights_in(of, text)) == {"the", "acting", "was", "boringly", "wonderful"}
    assert weights_in(done.model, text) == weights_in(model, text)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("film,1,0,-1,,\nfilm,1,0,-1,,\n", r"words.csv:3: 'film' is listed already at .*words.csv:2"),
        ("film,1,0,-1,,\nFILM,1,0,-1,,\n", r"words.csv:3: 'FILM' and 'film' \(.*words.csv:2\) are both 'film'"),
        ("film,1,zero,-1,,\n", r"words.csv:2: 'zero' is not a weight"),
        ("film,1,nan,-1,,\n", r"words.csv:2: 'nan' is not a weight"),
        ("film,1,1e999,-1,,\n", r"words.csv:2: '1e999' is not a weight"),
        ("film,1,1_0,-1,,\n", r"words.csv:2: '1_0' is not a weight"),
        ("film,1,,-1,,\n", r"words.csv:2: 'film' has a weight for some classes only"),
        ("film,1,0,-1,,perhaps\n", r"words.csv:2: suppress is 'perhaps'; write true"),
        (" ,1,0,-1,,\n", r"words.csv:2: the word is empty"),
        ("good film,1,0,-1,,\n", r"words.csv:2: 'good film' is not one word: the tokenizer reads good \+ film"),
        (
            "film,,,,,\nfilms,1,0,-1,,\n",
            r"words.csv:3: 'films' has a new weight, but is suppressed with 'film' \(.*:2\)",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_line(tmp_path, body, message):
    model = literal_model()
    with pytest.raises(ValueError, match=message):
        by(tmp_path, model, body)
    assert same_tensors(model, literal_model())


def test_all_that_is_wrong_is_named_at_once(tmp_path):
    with pytest.raises(ValueError, match=r"(?s)words.csv:2: 'zero'.*words.csv:4: 'nan'"):
        by(tmp_path, literal_model(), "film,1,zero,-1,,\nplot,1,0,-1,,\ngood,nan,0,0,,\n")


def test_columns_that_are_missing_or_of_another_model_are_refused(tmp_path):
    short = written(tmp_path, "film,1,-1\n", "word,weight:negative,weight:positive\n")
    with pytest.raises(ValueError, match="has no column 'weight:neutral'"):
        load_word_table(short, LABELS)
    with pytest.raises(ValueError, match="class that the model has not: 'weight:neutral'"):
        load_word_table(written(tmp_path, "film,1,0,-1,,\n"), ("negative", "positive"))
    with pytest.raises(ValueError, match="the model decides between negative, neutral, positive"):
        edited_by_table(literal_model(), WordTable(("a", "b"), ()))
    with pytest.raises(ValueError, match="there is no table .*; write one with: lexical-sae lexicon MODEL --table"):
        load_word_table(tmp_path / "nothing.csv", LABELS)


def test_a_suppressed_word_is_not_brought_back_by_a_table(tmp_path):
    model = literal_model()
    suppress_token_globally(model, "film")
    with pytest.raises(ValueError, match=r"words.csv:2: 'film' is suppressed in this model"):
        by(tmp_path, model, "film,1,0,-1,,\n")


# Saved


def test_a_saved_edit_keeps_weights_words_lexicon_and_frequencies(tmp_path):
    counts = json.dumps({"film": 12})
    original = save_pretrained(literal_model(), tmp_path / "original", attached={FREQUENCIES_FILE: counts})
    edit_saved_model(original, Lexicon(forbid=("church",)), tmp_path / "once")
    table = written(tmp_path, "film,1,0,-1,,\nboringly,,,,,\nunhappyness,2,0,-2,,\n")
    edit_saved_by_table(tmp_path / "once", table, tmp_path / "twice")
    back = from_pretrained(tmp_path / "twice")
    assert row_of(back, "film").tolist() == [1, 0, -1]
    assert row_of(back, "unhappyness").tolist() == [2, 0, -2]
    assert set(weights_in(back, UNSEEN[1])) == {"unhappyness", "filmed", "badly"}
    assert attached_lexicon(tmp_path / "twice") == Lexicon(forbid=("church", "boringly"))
    assert attached_frequencies(tmp_path / "twice") == {"film": 12}
    rows = {row.word: row for row in model_table(back, attached_frequencies(tmp_path / "twice")).rows}
    assert rows["film"].texts == 12
    assert rows["boringly"].suppress
    assert rows["unhappyness"].weights == (2.0, 0.0, -2.0)
    # The second table of the edited model changes nothing.
    again = write_word_table(model_table(back), tmp_path / "again.csv")
    assert not edited_by_table(back, load_word_table(again, LABELS))


def test_a_model_is_not_edited_over_itself(tmp_path):
    original = save_pretrained(literal_model(), tmp_path / "original")
    with pytest.raises(ValueError, match="save to another folder"):
        edit_saved_by_table(original, written(tmp_path, "film,1,0,-1,,\n"), original)


def test_the_file_is_plain_csv(tmp_path):
    path = write_word_table(model_table(literal_model()), tmp_path / "words.csv")
    records = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    assert list(records[0]) == HEADER.strip().split(",")
    assert all(float(record["weight:positive"]) for record in records)
