import json
from dataclasses import FrozenInstanceError, asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.explanation import (
    FORMAT,
    PIECE,
    Cause,
    Explanation,
    Pieces,
    Reasons,
    SpanContribution,
    WordContribution,
    WordSet,
)
from lexical_sae.explanation.decision import RENAMED
from lexical_sae.report.explanation.shown import ShownExplanation

# Not the very largest: the sum of several must be a number too.
numbers = st.floats(-1e300, 1e300)
strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
places = st.none() | st.integers(0, 10**6)
flags = st.none() | st.booleans()
# Instances are made in the test: their types are checked at random there, which strategies may not do.
word_fields = st.tuples(
    strings,
    strings | st.just(PIECE),
    numbers,
    numbers,
    places,
    places,
    flags,
    st.none() | numbers,
    flags,
    st.none() | strings,
)
span_fields = st.tuples(strings, st.integers(0, 10**6), st.integers(0, 10**6), numbers)
other_fields = st.fixed_dictionaries(
    {
        **dict.fromkeys(["text", "label", "target"], strings),
        **dict.fromkeys(["probability", "bias", "identity_error", "explained"], numbers),
        "tokens_cut": st.integers(0, 10**6),
        "probabilities": st.lists(st.tuples(strings, numbers), max_size=3).map(tuple),
        "contrast": st.none() | strings,
        "method": st.sampled_from(["dla", "path", "leave_one_out"]),
        "whole_text": st.none() | numbers,
        "not_explained": st.lists(strings, max_size=2).map(tuple),
    }
)


def example(**changes) -> ShownExplanation:
    word = WordContribution("good", "word", 1.5, 2.0, 0, 4, False, 1.75, True, "negative")
    fields = {"text": "good", "label": "positive", "probability": 0.75, "words": (word,), "bias": -0.5}
    fields |= {"identity_error": 0.0, "tokens_cut": 0, "probabilities": (("negative", 0.25), ("positive", 0.75))}
    fields |= {"target": "positive", "contrast": None, "method": "dla", "explained": 1.5}
    return ShownExplanation(**{**fields, **changes})


@given(st.lists(word_fields, max_size=3), st.none() | st.lists(span_fields, max_size=3), other_fields)
def test_an_explanation_goes_into_a_line_of_json_and_back(words, spans, others):
    spans = None if spans is None else tuple(SpanContribution(*fields) for fields in spans)
    explanation = Explanation(words=tuple(WordContribution(*fields) for fields in words), spans=spans, **others)
    for shown in (explanation, replace(explanation, all_tokens=True)):
        line = shown.to_json()
        assert "\n" not in line
        assert line.isascii()
        assert Explanation.from_json(line) == shown.listed() == shown.listed().listed()
    assert replace(explanation, all_tokens=True).listed().words == explanation.words


def test_what_is_read_back_is_of_the_kind_that_was_asked_for():
    assert type(Explanation.from_json(example().to_json())) is Explanation
    shown = ShownExplanation.from_json(example().to_json())
    assert shown == example()
    assert str(shown) == str(example())


def test_it_is_plain_and_frozen():
    with pytest.raises(FrozenInstanceError):
        example().label = "other"
    assert json.loads(example().to_json())["words"][0]["word"] == "good"
    assert hash(example()) == hash(example())


def changed(path: list, value) -> str:
    fields = {"format": FORMAT, **json.loads(json.dumps(asdict(example())))}
    at = fields
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(fields)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "a JSON object, not list"),
        (changed(["format"], 1), "has format 1, and this version reads 2 and 3"),
        (changed(["format"], True), "has format True"),
        ("{}", "has format None"),
        (changed(["bias"], "1.0"), "bias: Input should be a valid number"),
        (changed(["extra"], 1), "extra: "),
        (changed(["words", 0, "extra"], 1), "words.0.extra: "),
        (changed(["words", 0, "activation"], None), "words.0.activation: "),
        (changed(["words", 0, "region_changed"], 1), "words.0.region_changed: "),
        (changed(["tokens_cut"], 1.5), "tokens_cut: "),
        (changed(["bias"], float("nan")), "bias: "),
        (changed(["probabilities", 0], ["negative"]), "probabilities.0"),
        (json.dumps({"format": FORMAT, "text": "good"}), "label: "),
        ("[" * 100_000, "not JSON"),
        (f'{{"format": {"1" * 5000}}}', "not JSON"),
    ],
    ids=range(16),
)
def test_json_that_is_not_an_explanation_is_refused_with_its_place(line, message):
    with pytest.raises(ValueError, match=message):
        Explanation.from_json(line)


def test_format_2_is_read_under_its_earlier_names_and_signs():
    older = {"format": 2, **json.loads(json.dumps(asdict(example())))}
    for word in older["words"]:
        for earlier, now in RENAMED.items():
            word[earlier] = word.pop(now)
        word["without"] = None if word["without"] is None else -word["without"]
    assert Explanation.from_json(json.dumps(older)) == Explanation.from_json(example().to_json())
    older["words"][0]["odd"] = 1
    with pytest.raises(ValueError, match=r"words.0.odd"):
        Explanation.from_json(json.dumps(older))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused_not_written(number):
    with pytest.raises(ValueError, match="not finite.*check the saved weights"):
        example(bias=number).to_json()


@pytest.mark.parametrize("field", ["text", "label", "target"])
def test_half_a_character_is_refused_not_written(field):
    with pytest.raises(ValueError, match=r"half a surrogate pair, '\\ud800'.*rename"):
        example(**{field: "a\ud800"}).to_json()
    # What only looks like one is text.
    typed = example(**{field: r"a\ud800"})
    assert ShownExplanation.from_json(typed.to_json()) == typed


def test_shares_and_counts():
    assert example().bias_share == 0.2
    assert example(words=(), bias=0.0).bias_share == 0.0
    assert example().region_changes == 1
    assert example(words=()).region_changes == 0
    assert example(words=(WordContribution("good", "word", 1.0, 2.0),)).region_changes is None


def test_what_is_listed_sums_pieces_so_that_every_total_stays():
    words = tuple(
        WordContribution(name, kind, 1.0, said, 0, 4, True, said, changed, label)
        for name, kind, said, changed, label in [
            ("good", "word", 2.0, True, "positive"),
            ("##ual", PIECE, -1.5, True, "negative"),
            (".", PIECE, 0.25, False, "positive"),
            ("is capitalised", "shape", 0.125, False, "positive"),
        ]
    )
    whole = example(words=words, explained=0.375)
    listed = whole.listed()
    assert [word.word for word in listed.words] == ["good", "is capitalised"]
    assert listed.pieces == Pieces(2, -1.25, 1.75, 1, 1)
    assert (listed.bias_share, listed.region_changes) == (whole.bias_share, whole.region_changes)
    shown = sum(word.contribution for word in listed.words) + listed.pieces.contribution + listed.bias
    assert shown == whole.explained
    assert len(whole.words) == 4
    assert replace(whole, all_tokens=True).listed().words == words
    plain = example(words=(words[0], WordContribution(".", PIECE, 1.0, 0.25)))
    assert plain.listed().pieces == Pieces(1, 0.25, 0.25, None, None)


@pytest.mark.parametrize(("all_tokens", "words", "pieces"), [(False, ("good",), 1), (True, ("good", "##ual"), 0)])
def test_sets_of_words_name_words_and_count_pieces_unless_asked(all_tokens, words, pieces):
    flip = WordSet(("good", "##ual"), "negative", 2, True, False, ("##ual",))
    enough = WordSet(None, None, 1, False, False)
    found = Reasons("good", "positive", 0.75, 3, 0, None, flip, enough, all_tokens)
    plain = json.loads(json.dumps(found.as_dict()))
    assert (tuple(plain["flip"]["words"]), plain["flip"]["pieces"]) == (words, pieces)
    assert (plain["enough"]["words"], plain["enough"]["pieces"]) == (None, 0)


def forms(**changes):
    """Two forms of one word, one of them shifted, another word and a piece."""
    cause = Cause("not", 0, 3, 0.75)
    words = (
        WordContribution("films", "word", 1.0, 2.0, 4, 9, False, 2.0, False, "negative", 3.0, cause),
        WordContribution("plot", "word", 1.0, -1.5, default=-1.5),
        WordContribution("film", "word", 0.5, 1.0, default=1.0),
        WordContribution(".", PIECE, 1.0, 0.25),
    )
    return example(words=words, explained=1.25, **changes)


def test_forms_of_a_word_are_listed_as_one_with_their_sum():
    listed = forms(merge_inflections=True).listed()
    first, second = listed.words
    assert (first.word, first.contribution, first.default, first.activation) == ("films/film", 3.0, 4.0, 1.5)
    assert first.cause == Cause("not", 0, 3, 0.75)
    assert first.label_if_removed is None
    assert second.word == "plot"
    assert (
        sum(word.contribution for word in listed.words) + listed.pieces.contribution + listed.bias == listed.explained
    )
    assert [word.word for word in forms().listed().words] == ["films", "plot", "film"]
    assert len(forms(merge_inflections=True).words) == 4


def test_merged_forms_and_causes_go_into_json_and_back():
    for shown in (forms(), forms(merge_inflections=True), forms(all_tokens=True, merge_inflections=True)):
        assert Explanation.from_json(shown.to_json()) == Explanation(**vars(shown.listed()))


def test_forms_that_context_leaves_alone_have_no_context_together():
    words = tuple(
        WordContribution(name, "word", 1.0, 0.1 * i, default=0.1 * i) for i, name in ((1, "film"), (2, "films"))
    )
    (merged,) = example(words=words, merge_inflections=True).listed().words
    assert merged.context == 0


def test_the_context_free_share_weighs_both_parts():
    assert forms().context_free_share == pytest.approx(5.5 / (5.5 + 1.0 + 0.25))
    assert example().context_free_share == 0
    assert example(words=()).context_free_share == 1
