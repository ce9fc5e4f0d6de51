"""What the service answers is what the library computes, in the form that its schemas describe."""

import json
import math

import pytest

from lexical_sae.explanation import FORMAT, Explanation
from lexical_sae.inference import explain, find_reasons, predict_proba
from lexical_sae.inference.tagging import tag
from lexical_sae.intervene import SuppressedModel, edited_by_table, model_table
from lexical_sae.intervene.table_edit import table_with
from lexical_sae.intervene.word_table import WordRow
from lexical_sae.models.persistence import from_pretrained, saved_sha256
from lexical_sae.serve import answers

TEXTS = ["a badly filmed plot, and not a good film", "the acting was wonderful", "a boringly good film"]
ODD = [
    "",
    "  ",
    "[CLS] [MASK]",
    "😀😀",
    "\x00\x07",
    "שלום עולם",
    "cafe\u0301 café",
    "x" * 3000,
    "good " * 300,
    "=cmd()|'",
]


@pytest.fixture(scope="module")
def models(folders):
    return {name: from_pretrained(folder) for name, folder in folders.items()}


def checked(schema, response) -> dict:
    """An answer, which must be as its schema says."""
    schema.model_validate_json(response.content)
    return response.json()


def explanation(fields) -> Explanation:
    return Explanation.from_json(json.dumps(fields))


def check_same(found, expected: Explanation) -> None:
    """The same explanation, numbers to 1e-5: batching changes the last bits."""
    made = explanation(found)
    expected = expected.listed()
    assert (made.label, made.target, made.not_explained, made.warnings) == (
        expected.label,
        expected.target,
        expected.not_explained,
        expected.warnings,
    )
    by_word = {word.word: word for word in expected.words}
    assert {word.word for word in made.words} == set(by_word)
    for word in made.words:
        other = by_word[word.word]
        assert (word.start, word.end, word.is_expansion) == (other.start, other.end, other.is_expansion)
        assert word.contribution == pytest.approx(other.contribution, abs=1e-5)
        assert word.if_removed == pytest.approx(other.if_removed, abs=1e-5)
    assert made.explained == pytest.approx(expected.explained, abs=1e-5)
    assert made.probability == pytest.approx(expected.probability, abs=1e-5)


@pytest.mark.parametrize("name", ["table", "both"])
def test_explanations_are_those_of_the_library(client, models, folders, name):
    response = client.post("/v1/explain", json={"model": name, "texts": TEXTS})
    answer = answers.ExplainAnswer.model_validate_json(response.content)
    assert answer.model == answers.ModelRef(name=name, sha256=saved_sha256(folders[name]))
    assert (answer.format, answer.request_id) == (FORMAT, response.headers["x-request-id"])
    for found, expected in zip(response.json()["explanations"], explain(models[name], TEXTS), strict=True):
        check_same(found, expected)
    assert [rest.count for rest in answer.rest] == [0] * len(TEXTS)


@pytest.mark.parametrize("method", ["dla", "path", "leave_one_out"])
def test_questions_are_passed_on(client, models, method):
    asked = {"target": "neutral", "contrast": "negative", "method": method, "all_tokens": True}
    answer = client.post("/v1/explain", json={"model": "both", "texts": TEXTS[:1], **asked}).json()
    check_same(answer["explanations"][0], explain(models["both"], TEXTS[0], **asked))


@pytest.mark.parametrize("top", [1, 2, None])
def test_what_top_leaves_out_is_summed(client, top):
    answer = client.post("/v1/explain", json={"model": "table", "texts": TEXTS, "top": top}).json()
    for fields, rest in zip(answer["explanations"], answer["rest"], strict=True):
        made = explanation(fields)
        assert top is None or len(made.words) <= top
        pieces = made.pieces.contribution if made.pieces else 0.0
        total = math.fsum(word.contribution for word in made.words) + pieces + rest["contribution"] + made.bias
        assert total == pytest.approx(made.explained, abs=1e-5)


def test_predictions_are_those_of_the_library(client, models):
    response = client.post("/v1/models/both:predict", json={"instances": TEXTS})
    found = answers.PredictAnswer.model_validate_json(response.content).predictions
    for made, expected in zip(found, predict_proba(models["both"], TEXTS).tolist(), strict=True):
        assert list(made.probabilities.values()) == pytest.approx(expected, abs=1e-5)
        assert made.label == max(made.probabilities, key=lambda label: made.probabilities[label])
        assert made.probability == max(made.probabilities.values())


def test_the_explain_verb_answers_like_the_endpoint(client):
    verb = client.post("/v1/models/table:explain", json={"instances": TEXTS, "parameters": {"top": 2}}).json()
    plain = client.post("/v1/explain", json={"model": "table", "texts": TEXTS, "top": 2}).json()
    del verb["request_id"], plain["request_id"]
    assert verb == plain


@pytest.mark.parametrize("name", ["table", "both"])
def test_a_suppressed_word_is_gone_in_the_answer_and_not_in_the_model(client, models, name):
    asked = {"model": name, "texts": TEXTS, "suppress": ["film"]}
    answer = checked(answers.WhatIfAnswer, client.post("/v1/what-if", json=asked))
    without = SuppressedModel(models[name], ["film"])
    for before, after, text in zip(answer["before"], answer["after"], TEXTS, strict=True):
        check_same(before, explain(models[name], text))
        check_same(after, explain(without, text, target=before["target"]))
        assert "film" not in [word["word"] for word in after["words"]]
    assert "film" in [word["word"] for word in answer["before"][0]["words"]]
    assert {"film", "films"} <= set(answer["suppressed"][0]["dimensions"])


def test_a_weight_that_is_set_acts_as_in_a_table_edit(client, models):
    asked = {"good": {"positive": 2.0}, "boringly": {"negative": 1.5, "positive": 0.0, "neutral": -1.5}}
    texts = [*TEXTS, "a zyzzyva film"]
    answer = checked(
        answers.WhatIfAnswer, client.post("/v1/what-if", json={"model": "table", "texts": texts, "set": asked})
    )
    edited = edited_by_table(models["table"], table_with(models["table"], asked))
    for before, after, text in zip(answer["before"], answer["after"], texts, strict=True):
        check_same(after, explain(edited.model, text, target=before["target"]))
    changed = {row["word"]: row for row in answer["changed"]}
    assert changed["good"]["after"]["positive"] == pytest.approx(2.0)
    assert sum(changed["good"]["after"].values()) == pytest.approx(0.0)
    own = next(row.weights for row in model_table(models["table"]).rows if row.word == "good")
    assert list(changed["good"]["before"].values()) == pytest.approx(own, abs=1e-4)


def test_the_effect_of_a_suppression_is_the_contribution_of_the_word(client):
    answer = client.post("/v1/what-if", json={"model": "table", "texts": TEXTS[:1], "suppress": ["plot"]}).json()
    before, after = answer["before"][0], answer["after"][0]
    removed = next(word for word in before["words"] if word["word"] == "plot")
    assert after["explained"] == pytest.approx(before["explained"] - removed["contribution"], abs=1e-5)


def test_the_fewest_words_are_those_of_the_library(client, models):
    answer = checked(
        answers.FlipAnswer, client.post("/v1/flip", json={"model": "both", "text": TEXTS[0], "seconds": 5})
    )
    expected = find_reasons(models["both"], TEXTS[0]).as_dict()
    assert answer["reasons"]["flip"]["is_minimal"] or answer["reasons"]["flip"]["is_impossible"]
    for name in ("flip", "enough"):
        assert answer["reasons"][name]["at_least"] == expected[name]["at_least"]


def test_tags_are_those_of_the_library(client, models):
    texts = ["a good film", ["a", "dog"]]
    answer = checked(answers.TagAnswer, client.post("/v1/tag", json={"model": "both", "texts": texts}))
    expected = [sentence.as_dict() for sentence in tag(models["both"], texts)]
    assert answer["sentences"] == json.loads(json.dumps(expected))


def test_the_lexicon_has_every_word_once_over_its_pages(client, models):
    rows = model_table(models["table"]).rows
    found, offset = [], 0
    while page := client.get("/v1/lexicon", params={"model": "table", "offset": offset, "top": 7}).json()["words"]:
        found += page
        offset += 7
    assert [(word["word"], tuple(word["weights"])) for word in found] == [(row.word, row.weights) for row in rows]
    asked = {"model": "table", "label": "positive", "search": "O"}
    answer = checked(answers.LexiconAnswer, client.get("/v1/lexicon", params=asked))
    weights = [word["weights"][2] for word in answer["words"]]
    assert weights == sorted(weights, reverse=True)
    assert {word["word"] for word in answer["words"]} == {row.word for row in rows if "o" in row.word}
    assert WordRow("good", None).word in {word["word"] for word in answer["words"]}


def test_models_are_described(client, folders):
    answer = answers.ModelsAnswer.model_validate_json(client.get("/v1/models").content)
    by_name = {model.name: model for model in answer.models}
    assert by_name.keys() == folders.keys()
    assert by_name["table"].words_are_literal
    assert sum(by_name["table"].bias.values()) == pytest.approx(0)
    assert by_name["both"].tasks == ["classify", "tag"]
    assert by_name["both"].bias is None
    assert checked(answers.DescribedModel, client.get("/v1/models/both"))["ready"]


@pytest.mark.parametrize("name", ["table", "both"])
def test_odd_texts_get_answers_like_others(client, models, name):
    answer = client.post("/v1/explain", json={"model": name, "texts": ODD})
    assert answer.status_code == 200
    for found, text in zip(answer.json()["explanations"], ODD, strict=True):
        check_same(found, explain(models[name], text))


def test_measures_count_what_was_asked(client):
    client.post("/v1/models/both:predict", json={"instances": TEXTS})
    text = client.get("/metrics").text
    assert 'lexical_sae_requests_total{route="/v1/models/{model}:predict",status="200"}' in text
    assert 'lexical_sae_texts_total{model="both"}' in text
    assert "good film" not in text


def test_life_and_readiness(client):
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"ready": True}
