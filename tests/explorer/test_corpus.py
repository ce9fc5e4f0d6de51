"""The page decides as the library does: unedited, with words suppressed, and with other weights."""

import json

import pytest
import torch

from lexical_sae.data.examples import TextSplit
from lexical_sae.data.tables.formats import read_table
from lexical_sae.explorer.corpus import corpus_payload
from lexical_sae.explorer.forms import forms_among
from lexical_sae.explorer.packing import packed_counts, packed_floats, unpacked
from lexical_sae.inference import explain, find_reasons, predict, predict_proba, score
from lexical_sae.intervene import SuppressedModel, find_words
from lexical_sae.intervene.table_edit import edited_by_table
from lexical_sae.intervene.word_table import parse_word_table
from lexical_sae.intervene.words import opened_to_words
from lexical_sae.runs.texts import Corpus
from tests import tiny
from tests.explorer.node import NO_EDIT, in_browser
from tests.literal import TEXTS, UNSEEN, literal_model

ALL = [*TEXTS, *UNSEEN]
GOLD = [i % 3 for i in range(len(ALL))]
NAMES = ("negative", "neutral", "positive")
EDITS = [
    NO_EDIT,
    {"suppressed": ["film"], "weights": {}},
    {"suppressed": ["church", "boringly"], "weights": {}},
    {"suppressed": [], "weights": {"good": {"negative": 2.5}}},
    {"suppressed": ["plot"], "weights": {"good": {"negative": -1.25, "positive": 3}, "badly": {"neutral": 4}}},
    {"suppressed": [], "weights": {"boring": {"negative": 1, "neutral": 1, "positive": 1}}},
]


@pytest.fixture(scope="module")
def model():
    return literal_model()


@pytest.fixture(scope="module")
def payload(model):
    return corpus_payload(model, Corpus(ALL, GOLD))


@pytest.fixture(scope="module")
def shown(payload):
    return in_browser(payload, *EDITS)


def edited(model, table, folder):
    path = folder / "words.csv"
    path.write_text(table)
    return edited_by_table(model, parse_word_table(read_table(path), model.labels["classify"])).model


def assert_decides_alike(shown, model):
    expected = explain(model, ALL, target="negative", effects=False)
    for own, why, chances in zip(shown["texts"], expected, predict_proba(model, ALL), strict=True):
        assert own["probabilities"] == pytest.approx(chances.tolist(), abs=1e-5)
        assert own["logits"][0] == pytest.approx(why.explained, abs=1e-5)
        words = {word["name"]: word for word in own["words"] if any(word["parts"])}
        assert words.keys() == {word.word for word in why.words}
        for word in why.words:
            assert words[word.word]["parts"][0] == pytest.approx(word.contribution, abs=1e-5)
            assert words[word.word]["defaults"][0] == pytest.approx(word.default, abs=1e-5)
    assert [NAMES[max(range(3), key=own["logits"].__getitem__)] for own in shown["texts"]] == predict(model, ALL)
    assert shown["summary"]["accuracy"] == pytest.approx(score(model, ALL, GOLD))


@pytest.mark.parametrize("which", range(len(EDITS)))
def test_the_page_decides_as_the_library_after_the_same_edit(model, shown, tmp_path, which):
    changed = model if which == 0 else edited(model, shown[which]["table"], tmp_path)
    assert_decides_alike(shown[which], changed)
    before, after = predict(model, ALL), predict(changed, ALL)
    flipped = [i for i in range(len(ALL)) if before[i] != after[i]]
    assert shown[which]["changed"] == flipped


def test_edits_change_labels_and_move_words_in_and_out_of_their_shifts(shown):
    assert any(own["changed"] for own in shown)
    factors = [{word["factor"] for text in own["texts"] for word in text["words"]} for own in shown]
    assert len(set(map(frozenset, factors))) > 1


@pytest.mark.parametrize("which", [0, 3])
def test_the_uses_of_a_word_are_its_entries(payload, shown, which):
    expected = [[] for _ in payload["words"]["names"]]
    for text, own in enumerate(shown[which]["texts"]):
        for word in own["words"]:
            expected[word["word"]].append((text, word["factor"], max(map(abs, word["parts"]))))
    found = [
        [(use["text"], use["factor"], pytest.approx(use["size"])) for use in uses] for uses in shown[which]["uses"]
    ]
    assert expected == found
    assert len({use["factor"] for uses in shown[which]["uses"] for use in uses}) > 2


def test_a_word_is_suppressed_with_its_forms_as_by_the_library(model, payload):
    names, forms = payload["words"]["names"], payload["words"]["forms"]
    assert sorted(names[i] for i in forms[str(names.index("church"))]) == ["church", "churches"]
    suppressed = SuppressedModel(model, ["church"])
    (shown,) = in_browser(payload, {"suppressed": ["church"], "weights": {}})
    assert_decides_alike(shown, suppressed)


def test_forms_are_those_that_find_words_gives(model):
    opened = model.opened_to(
        [way for word in (*ALL, "zyzzyva") for way in model.dimensions.vocabulary.split_forms(word)]
    )
    dimensions = [i for i in range(len(opened.dimensions)) if opened.dimensions[i].kind == "word"]
    found = forms_among(opened, dimensions)
    place = {d: i for i, d in enumerate(dimensions)}
    for i, dimension in enumerate(dimensions):
        (word,) = find_words(opened_to_words(opened, []), [opened.dimensions[dimension].name])
        assert found.get(i, [i]) == sorted(place[d] for d in word.dimensions if d in place)


def test_the_smallest_flip_is_the_one_that_is_proved(model, shown):
    for text, own in zip(ALL, shown[0]["texts"], strict=True):
        proved = find_reasons(model, text).flip
        assert proved.is_minimal or proved.is_impossible
        found = own["flip"]
        assert (None if found is None else len(found["words"])) == (None if proved.words is None else len(proved.words))


def test_words_stand_where_they_are_written(payload):
    texts = payload["texts"]
    columns = zip(*(unpacked(texts[name]).tolist() for name in ("word", "start", "length")), strict=True)
    counts = unpacked(texts["count"]).tolist()
    for text, count in zip(texts["text"], counts, strict=True):
        for _ in range(count):
            word, start, length = next(columns)
            assert text[start : start + length].lower() == payload["words"]["names"][word].lower()


def test_the_payload_is_strict_json_with_the_whole_table_or_the_texts_words_alone(model, payload):
    json.dumps(payload, allow_nan=False)
    alone = corpus_payload(model, Corpus(ALL, None), whole_table=False)
    assert alone["label"] is None
    assert len(alone["words"]["names"]) < len(payload["words"]["names"])
    assert payload["words"]["names"][: len(alone["words"]["names"])] == alone["words"]["names"]


def test_more_texts_than_there_is_room_for_are_counted(model):
    made = corpus_payload(model, Corpus(ALL, GOLD), most=2)
    assert (len(made["texts"]["text"]), len(made["label"]), made["left_out"]) == (2, 2, len(ALL) - 2)


def test_groups_of_texts_are_told_with_their_accuracy_before_and_after(model):
    nan = float("nan")
    identities = {"a": (1.0, 0.5, 0.4, nan, 0.0, 0.9, nan), "nobody": (0.0,) * 7}
    payload = corpus_payload(model, TextSplit(tuple(ALL), tuple(GOLD), identities))
    assert {name: unpacked(rows).tolist() for name, rows in payload["groups"].items()} == {"a": [0, 1, 5]}
    for shown, edited in zip(in_browser(payload, *EDITS[:2]), (model, SuppressedModel(model, ["film"])), strict=True):
        members, gold = [ALL[i] for i in (0, 1, 5)], [GOLD[i] for i in (0, 1, 5)]
        assert shown["groups"] == [{"name": "a", "texts": 3, "accuracy": pytest.approx(score(edited, members, gold))}]


def test_a_model_that_is_no_table_shows_contributions_and_decides_nothing_anew():
    model = tiny.model()
    payload = corpus_payload(model, Corpus(ALL, GOLD))
    first, second = in_browser(payload, NO_EDIT, {"suppressed": ["film"], "weights": {}})
    assert first["texts"] == second["texts"]
    parts = [word for own in first["texts"] for word in own["words"]]
    for place, mean in enumerate(first["weights"]):
        own = [word["parts"] for word in parts if word["word"] == place]
        assert mean == pytest.approx([sum(values) / len(own) for values in zip(*own, strict=True)])
    expected = explain(model, ALL, target="negative", effects=False, places=False)
    for own, why in zip(first["texts"], expected, strict=True):
        assert own["logits"][0] == pytest.approx(why.explained, abs=1e-4)
        assert [word["parts"][0] for word in own["words"]] == pytest.approx(
            [next(w.contribution for w in why.words if w.word == word["name"]) for word in own["words"]], abs=1e-5
        )


def test_a_model_without_context_or_texts_without_words_are_fine():
    model = literal_model(context=None)
    made = corpus_payload(model, Corpus(["!", ""], None))
    (shown,) = in_browser(made, NO_EDIT)
    bias = torch.tensor(made["bias"])
    assert [own["logits"] for own in shown["texts"]] == [pytest.approx(bias.tolist())] * 2
    (shown,) = in_browser(corpus_payload(model, Corpus(TEXTS, None)), NO_EDIT)
    assert {word["defaults"] for own in shown["texts"] for word in own["words"]} == {None}


@pytest.mark.parametrize("counts", [[], [0, 255], [256], [65536]])
def test_columns_come_back_exactly(counts):
    assert unpacked(packed_counts(counts)).tolist() == counts
    values = torch.randn(7)
    assert unpacked(packed_floats(values)).tolist() == values.tolist()
