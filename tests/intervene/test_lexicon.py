import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.intervene import (
    LEXICON_FILE,
    Lexicon,
    apply_lexicon,
    attached_lexicon,
    edit_saved_model,
    load_lexicon,
    parse_lexicon,
)
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from tests import tiny


def closed_names(model) -> set[str]:
    closed = (model.gate.closed & model.dimensions.feature_mask).nonzero().flatten()
    return set(model.dimensions.names(closed.tolist()))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save_pretrained(tiny.model(), tmp_path_factory.mktemp("models") / "model")


WORD = st.one_of(
    st.sampled_from(
        ["no", "yes", "null", "3e-4", "1_000", "2020-01-01", "0x1F", "~", "#tag", "- a", "a: b", "Ünïcode"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
).filter(lambda word: bool(word.strip()))


@given(st.lists(WORD, max_size=6, unique_by=lambda word: word.strip().casefold()), st.integers(0, 6))
def test_a_lexicon_is_read_back_as_it_was_written(words, cut):
    lexicon = Lexicon(forbid=tuple(words[:cut]), keep=tuple(words[cut:]))
    text = lexicon.to_yaml()
    assert parse_lexicon(text) == lexicon
    assert parse_lexicon(text).to_yaml() == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("forbidden: [film]", r"mine\.yaml: forbidden is unknown; did you mean 'forbid'\? Known keys: forbid, keep"),
        ("forbid: [film, no]", r'word 2 under forbid reads as False, not as a word; put it in quotes, as in - "no"'),
        ("forbid: [3]", "word 1 under forbid reads as 3"),
        ("forbid: film", "forbid is 'film', not a list of words"),
        ("forbid:", "forbid is None, not a list of words"),
        ("forbid: [film, ' Film ']", "'film' is listed twice"),
        ("forbid: [film]\nkeep: [FILM]", "'film' is listed under forbid and under keep"),
        ("forbid: [film, '  ']", "a word is empty"),
        ("forbid: [film]\nforbid: [dog]", "key 'forbid' is given twice"),
        ("- film", "a lexicon is the keys forbid, keep with a list of words each"),
        ("", "a lexicon is the keys"),
        ("forbid: [film", "not valid YAML"),
        ("forbid: !!python/object:os.system [film]", "not valid YAML"),
        ("forbid: &a [film]\nkeep: *a", "aliases are not allowed"),
    ],
    ids=[
        "key",
        "no",
        "number",
        "string",
        "nothing",
        "twice",
        "both",
        "empty",
        "key twice",
        "list",
        "file",
        "yaml",
        "tag",
        "alias",
    ],
)
def test_anything_but_a_lexicon_is_refused_with_place_and_remedy(text, message):
    with pytest.raises(ValueError, match=message) as error:
        parse_lexicon(text, "mine.yaml")
    assert "mine.yaml" in str(error.value)


def test_a_file_is_read_whatever_its_byte_order_mark(tmp_path):
    path = tmp_path / "lexicon.yaml"
    path.write_text("\ufeffforbid:\n  - film  # not this one\n", encoding="utf-8")
    assert load_lexicon(path) == Lexicon(forbid=("film",))
    with pytest.raises(ValueError, match="there is no lexicon file"):
        load_lexicon(tmp_path / "other.yaml")


def test_forbidden_words_are_closed_and_no_others():
    model = tiny.model()
    before = closed_names(model)
    done = apply_lexicon(model, Lexicon(forbid=("film", "Muslim"), keep=("church",)))
    assert closed_names(model) - before == {"film", "films", "muslim"}
    assert [word.word for word in done.words] == ["film", "Muslim"]


@pytest.mark.parametrize(
    ("lexicon", "message"),
    [
        (Lexicon(), "forbids no word"),
        (Lexicon(keep=("film",)), "forbids no word"),
        (
            Lexicon(forbid=("films",), keep=("film",)),
            "forbids 'films' and keeps 'film', which share the dimensions film",
        ),
        (Lexicon(forbid=("film", "unhappy")), "'unhappy' has no dimension"),
        (Lexicon(forbid=("film",), keep=("unhappy",)), "'unhappy' has no dimension"),
        (Lexicon(forbid=("film",), keep=("dog",)), "keeps 'dog', but it is already suppressed in this model"),
    ],
    ids=["nothing", "only keep", "conflict", "forbid unknown", "keep unknown", "keep closed"],
)
def test_a_lexicon_that_cannot_be_applied_changes_nothing(lexicon, message):
    model = tiny.model()
    closed = torch.zeros_like(model.gate.closed)
    closed[list(model.dimensions.find("dog"))] = True
    model.gate.close(closed)
    before = model.gate.closed.clone()
    with pytest.raises(ValueError, match=message):
        apply_lexicon(model, lexicon)
    assert torch.equal(model.gate.closed, before)


def test_an_edited_model_is_saved_with_its_lexicon(saved, tmp_path):
    lexicon = Lexicon(forbid=("film",), keep=("church",))
    edit_saved_model(saved, lexicon, tmp_path / "edited")
    edited, original = from_pretrained(tmp_path / "edited"), from_pretrained(saved)
    assert closed_names(edited) - closed_names(original) == {"film", "films"}
    assert attached_lexicon(tmp_path / "edited") == lexicon
    assert attached_lexicon(saved) is None
    (tmp_path / "edited" / LEXICON_FILE).write_text("forbid: [dog]\n")
    with pytest.raises(ValueError, match=r"lexicon\.yaml is not the file that was saved"):
        from_pretrained(tmp_path / "edited")


def test_a_second_edit_adds_to_the_first_and_may_not_contradict_it(saved, tmp_path):
    edit_saved_model(saved, Lexicon(forbid=("film",)), tmp_path / "one")
    edit_saved_model(tmp_path / "one", Lexicon(forbid=("dog",)), tmp_path / "two")
    assert attached_lexicon(tmp_path / "two") == Lexicon(forbid=("film", "dog"))
    assert {"film", "dogs"} <= closed_names(from_pretrained(tmp_path / "two"))
    with pytest.raises(ValueError, match="under forbid and under keep"):
        edit_saved_model(tmp_path / "one", Lexicon(forbid=("dog",), keep=("film",)), tmp_path / "three")
    with pytest.raises(ValueError, match="already suppressed in .*; there is nothing to do"):
        edit_saved_model(tmp_path / "one", Lexicon(forbid=("Films",)), tmp_path / "three")


def test_a_model_is_not_edited_in_place(saved):
    with pytest.raises(ValueError, match="the original stays"):
        edit_saved_model(saved, Lexicon(forbid=("film",)), saved.parent / "." / saved.name)
    assert attached_lexicon(saved) is None
