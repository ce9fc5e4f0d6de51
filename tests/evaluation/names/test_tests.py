import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AddedToken

from lexical_sae.data.language import stem
from lexical_sae.data.words import word_spans
from lexical_sae.evaluation.names.bag_of_words import BagOfWords
from lexical_sae.evaluation.names.edits import Claim, Rate, claims_of, delete_test, follow_test, weighed
from lexical_sae.evaluation.names.lexical import LexicalSAENames
from lexical_sae.evaluation.names.model import NamedModel, NamedWord, Probe, Reading, Response
from lexical_sae.evaluation.names.shares import (
    function_word_share,
    lexical_neighbour_chance,
    lexical_neighbour_share,
    own_word_share,
    sign_stability,
    surroundings_of,
)
from lexical_sae.evaluation.names.tests import measure_names, strongest_words
from lexical_sae.evaluation.names.text import SwapWords, are_related_forms, distinct_words, replace_word, span_around
from lexical_sae.inference import explain
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from tests import tiny

GOOD, BAD = ("good", "great", "wonderful", "happy"), ("bad", "awful", "terrible", "boring")
THINGS = ("film", "movie", "plot", "acting", "city", "church", "bank", "river", "money", "dog")


def reviews(count: int = 80) -> tuple[list[str], list[int]]:
    """Texts whose class is that of their adjective, which stands twice in every fourth."""
    random = np.random.default_rng(0)
    texts, labels = [], []
    for i in range(count):
        label = i % 2
        word = str(random.choice(GOOD if label else BAD))
        one, other = random.choice(THINGS, size=2, replace=False)
        texts.append(f"The {one} was {word} and the {other}, {word if i % 4 == 0 else 'it'} is.")
        labels.append(label)
    return texts, labels


@pytest.fixture(scope="module")
def texts():
    return reviews()[0]


@pytest.fixture(scope="module")
def bag():
    return BagOfWords(*reviews())


@pytest.fixture(scope="module")
def bag_scores(bag, texts):
    return measure_names(bag, texts)


@pytest.fixture(scope="module")
def model():
    return tiny.model()


class Stuck:
    """A model that shows the same words with the same contributions whatever the text; they rest on its first word."""

    blank = "[MASK]"

    def as_read(self, texts):
        return list(texts)

    def contributions(self, texts, on_step=None):
        del on_step
        words = [NamedWord(i, name, (0, 3), 1.0, (-2.0, 2.0), 2.0) for i, name in enumerate(("sbs", "bog", "##grade"))]
        return [Reading(text, 1, tuple(words), frozenset()) for text in texts]

    def responses(self, probes, on_step=None):
        del on_step
        return [Response(2.0, 1.0) if probe.dimension < 3 else Response(0.0, 0.0) for probe in probes]

    def dimensions_of(self, words):
        return [(3 + i,) for i in range(len(words))]

    def neighbours(self, dimensions, k):
        del k
        return {i: frozenset() for i in dimensions}


# The ceiling and the floor


def test_a_bag_of_words_passes_every_test(bag_scores, texts):
    scores = bag_scores
    assert scores.delete.passed.share == scores.follow.passed.share == 1.0
    assert scores.follow.old_falls.share == scores.follow.new_opens.share == 1.0
    assert scores.own_words.share == scores.lexical_neighbours.share == 1.0
    assert scores.delete.at_special_tokens.share == scores.word_pieces.share == scores.punctuation.share == 0.0
    assert scores.delete.passed.count == 5 * len(texts)
    assert scores.sign_stability.share == 1.0


def test_shuffled_names_fail_where_true_ones_pass(bag_scores):
    scores = bag_scores
    assert scores.delete.shuffled.share == 0.0
    assert scores.follow.shuffled.share == 0.0
    assert scores.lexical_neighbours_chance.share < 0.7
    assert scores.delete.shuffled.count > 0


def test_a_model_whose_words_fire_whatever_the_text_fails(texts):
    stuck = Stuck()
    assert isinstance(stuck, NamedModel)
    scores = measure_names(stuck, texts)
    assert scores.delete.passed.share == scores.follow.passed.share == 0.0
    assert scores.own_words.share == scores.lexical_neighbours.share == 0.0
    assert scores.word_pieces.share == pytest.approx(1 / 3)


def test_function_words_are_weighed_by_contribution(bag, texts):
    readings = bag.contributions(texts)
    words = [word for reading in readings for word in reading.words]
    expected = sum(abs(w.contribution) for w in words if w.name in ("the", "was", "and", "it", "is"))
    share = function_word_share(readings).share
    assert share == pytest.approx(expected / sum(abs(w.contribution) for w in words))
    assert 0 < share < 1


# The lexical model


def rigged(open_bias: float) -> LexicalSAE:
    """A model whose word `plot` is held open by the decoder's bias alone; all other words are closed."""
    model = tiny.model(ModelConfig(gate="drelu", head="relu"))
    plot = tiny.wordpiece().convert_tokens_to_ids("plot")
    everything = torch.ones(len(model.dimensions), dtype=torch.bool)
    everything[plot] = False
    model.gate.close(everything)
    with torch.no_grad():
        model.backbone.decoder_bias[plot] = open_bias
    return model


def test_a_word_that_its_bias_holds_open_fails_the_delete_test(texts):
    model = rigged(open_bias=1000.0)
    scores = measure_names(model, texts, limit=10)
    assert scores.delete.passed.share == 0.0
    assert scores.delete.passed.count == 10
    assert scores.active_words == 1.0


def test_readings_agree_with_the_explanations(model, texts):
    readings = LexicalSAENames(model).contributions(texts[:6])
    for reading, explanation in zip(readings, explain(model, texts[:6]), strict=True):
        assert model.labels["classify"][reading.label] == explanation.label
        assert [word.name for word in reading.words] == [word.word for word in explanation.words]
        expected = [word.contribution for word in explanation.words]
        assert [word.contribution for word in reading.words] == pytest.approx(expected, abs=1e-5)
        assert all(abs(sum(word.contributions)) < 1e-4 for word in reading.words)


def test_a_probe_of_the_text_itself_gives_the_contribution_back(model, texts):
    named = LexicalSAENames(model)
    (reading,) = named.contributions(texts[:1])
    for word in reading.words[:3]:
        (response,) = named.responses([Probe(reading.text, word.dimension, reading.label)])
        assert response.contribution == pytest.approx(word.contribution, abs=1e-5)
    closed = next(i for i in range(len(model.dimensions)) if i not in {w.dimension for w in reading.words})
    assert named.responses([Probe(reading.text, closed, 0)]) == [Response(0.0, 0.0)]


@pytest.mark.parametrize("tokenizer", [tiny.wordpiece, tiny.byte_bpe, tiny.sentencepiece])
def test_masking_a_word_masks_all_its_pieces_and_nothing_else(tokenizer):
    tokenizer = deepcopy(tokenizer())
    # As in the published tokenizers whose words carry their space.
    tokenizer.add_special_tokens({"mask_token": AddedToken("[MASK]", lstrip=True, special=True)})
    backbone = Backbone(tiny.masked_lm("bert", vocab_size=len(tokenizer)), tokenizer)
    named = LexicalSAENames(LexicalSAE(ModelConfig(gate="drelu"), backbone, {"classify": ["no", "yes"]}))
    text = "the unhappy film was good"
    edited = replace_word(text, span_around(list(word_spans(text)), 6, 8), named.blank)
    before, after = (named._encode([t]).tokens.ids[0] for t in (text, edited))
    (at,) = [i for i, token in enumerate(after) if token == tokenizer.mask_token_id]
    tail = len(after) - at - 1
    assert after[:at] == before[:at]
    assert after[at + 1 :] == before[len(before) - tail :]
    offsets = named._encode([text]).offsets[0]
    words = {text[slice(*span)] for span in named._spans(text, offsets) if span}
    assert words == set(text.split())


def test_typed_special_tokens_stay_text(model):
    named = LexicalSAENames(model)
    (reading,) = named.contributions(["a good [MASK] film [SEP]"])
    tokens = named._encode([reading.text]).tokens.ids[0]
    assert tokens.count(named.model.tokenizer.mask_token_id) == 0
    assert tokens.count(named.model.tokenizer.sep_token_id) == 1


def test_what_rests_on_special_tokens_is_counted_and_fails(model):
    named = LexicalSAENames(model)
    readings = named.contributions([""])
    assert readings[0].words
    scores = delete_test(named, readings, seed=0)
    assert scores.at_special_tokens.share == 1.0
    assert scores.passed.share == scores.shuffled.share == 0.0
    assert follow_test(named, readings, SwapWords(named, ["good film"], 0), seed=0).passed.share == 0.0


def test_attention_pooling_and_sense_slots_are_read_too(texts):
    plot = tiny.wordpiece().convert_tokens_to_ids("plot")
    for config in (
        ModelConfig(gate="drelu", pool="attention"),
        ModelConfig.model_validate({"gate": "drelu", "expander": {"kind": "vpe", "token_ids": [plot]}}),
    ):
        scores = measure_names(tiny.model(config), texts, limit=4)
        assert scores.delete.at_special_tokens.share < 1
    named = LexicalSAENames(tiny.model(config))
    assert len(named.dimensions_of(["plot"])[0]) == 4
    assert {"plot", "plot@sense1"} <= {named.model.dimensions[i].name for i in named.dimensions_of(["plot"])[0]}


def test_only_whole_tokens_that_may_open_can_be_swapped_in(model):
    named = LexicalSAENames(model)
    film = tiny.wordpiece().convert_tokens_to_ids("film")
    assert named.dimensions_of(["film", "unhappy", "xyz", "FILM"]) == [(film,), (), (), (film,)]
    only_plot = LexicalSAENames(rigged(1.0))
    assert only_plot.dimensions_of(["film"]) == [()]


def test_neighbours_are_the_nearest_rows_of_the_decoder(model):
    named = LexicalSAENames(model)
    rows = model.backbone.decoder.weight.detach()
    film = tiny.wordpiece().convert_tokens_to_ids("film")
    similar = torch.nn.functional.cosine_similarity(rows[film][None], rows)
    similar[~model.dimensions.feature_mask] = -2
    similar[film] = -2
    assert named.neighbours([film], 5) == {film: frozenset(similar.topk(5).indices.tolist())}


@pytest.mark.parametrize("subject", ["bag", "model"])
def test_scores_depend_on_the_seed_alone(subject, texts, request):
    subject = request.getfixturevalue(subject)
    first = measure_names(subject, texts, seed=3, limit=8)
    assert measure_names(subject, texts, seed=3, limit=8) == first
    assert first.texts == 8


def test_scores_do_not_depend_on_the_batch_size(model, texts):
    small, large = (
        measure_names(LexicalSAENames(model, batch_size=size), texts, limit=9).as_dict() for size in (2, 64)
    )
    assert flat(small) == pytest.approx(flat(large), abs=1e-4)


def flat(scores: dict) -> dict:
    parts = {k: dict(enumerate(v)) if isinstance(v, tuple) else v for k, v in scores.items()}
    nested = {k: flat(v) if isinstance(v, dict) else {"": v} for k, v in parts.items()}
    return {f"{k}.{name}": value for k, inner in nested.items() for name, value in inner.items()}


def test_progress_is_told_and_results_are_plain(model, texts):
    steps = []
    scores = measure_names(model, texts, limit=3, on_step=steps.append)
    assert {step.task for step in steps} == {"reading texts", "reading edited texts", "where words are written"}
    assert steps[-1].done == steps[-1].total
    assert json.loads(json.dumps(scores.as_dict()))["delete"]["passed"]["count"] > 0


def test_no_text_is_refused(bag):
    with pytest.raises(ValueError, match="at least one"):
        measure_names(bag, [])


# The parts


def test_a_share_over_nothing_is_no_number():
    assert weighed([]) == Rate(None, 0)
    assert weighed([[(3.0, True), (1.0, False)]]) == Rate(0.75, 2)


def test_a_share_has_an_interval_over_texts_not_words():
    one_word_each = weighed([[(1.0, i < 60)] for i in range(80)])
    assert (one_word_each.share, one_word_each.count) == (0.75, 80)
    assert one_word_each.high - one_word_each.low == pytest.approx(2 * 1.96 * (0.75 * 0.25 / 80) ** 0.5, rel=0.15)
    # Ten words that agree say no more than one.
    ten_words_each = weighed([[(1.0, i < 60)] * 10 for i in range(80)])
    assert (ten_words_each.low, ten_words_each.high) == (one_word_each.low, one_word_each.high)


def test_the_scores_of_a_model_come_with_their_intervals(bag_scores, model, texts):
    for scores in (bag_scores, measure_names(model, texts, limit=12)):
        rates = [scores.delete.passed, scores.follow.passed, scores.function_words, scores.lexical_neighbours]
        for rate in (*rates, scores.delete.shuffled, scores.lexical_neighbours_chance):
            assert rate.low <= rate.share <= rate.high
    assert bag_scores.function_words.low < bag_scores.function_words.high
    # All pass, in 80 texts: exact ends, as resamples have no spread.
    assert bag_scores.delete.passed.low == pytest.approx(0.025 ** (1 / 80))


def test_a_word_is_replaced_wherever_it_stands():
    assert replace_word("Good plot, good acting, goodness", (11, 15), "bad") == "bad plot, bad acting, goodness"
    assert replace_word("It isn't. Isn't it?", (3, 8), "[MASK]") == "It [MASK]. [MASK] it?"


def test_a_token_belongs_to_the_whole_word_that_holds_it():
    spans = list(word_spans("an unfilmable plot..."))
    assert span_around(spans, 5, 9) == (3, 13)
    assert span_around(spans, 13, 18) == (14, 18)
    assert span_around(spans, 18, 21) == (18, 21)
    assert span_around(spans, 2, 3) is None


def test_contractions_count_whole_and_in_parts():
    assert distinct_words("The film's, -") == {"the", "film's", "film", "s"}


@pytest.mark.parametrize(
    "forms",
    [
        ("film", "films"),
        ("city", "cities"),
        ("church", "churches"),
        ("run", "runs", "running"),
        ("bore", "bored", "boring"),
        ("happy", "happily", "happiness"),
        ("movie", "movies"),
        ("class", "classes"),
        ("interest", "interesting", "interested"),
    ],
)
def test_inflections_share_a_stem(forms):
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(("word", "other"), [("film", "plot"), ("good", "great"), ("bad", "badge"), ("bank", "band")])
def test_other_words_do_not(word, other):
    assert stem(word) != stem(other)


def test_swaps_are_as_frequent_content_words_from_elsewhere(bag):
    corpus = ["film " * 10 + "plot " * 12 + "river " * 100 + "films " * 10 + "the " * 11 + "was " * 10 + "great " * 6]
    swaps = SwapWords(bag, corpus, seed=0)
    assert {swaps.choose("film", f"the film {i}") for i in range(20)} == {"plot", "great"}
    assert swaps.choose("film", "the plot of a film") == "great"
    assert swaps.choose("film", "a film: great plot, river") is None
    assert swaps.choose("river", "the river") == "plot"
    assert not are_related_forms("film", "plot")


def test_words_that_other_texts_show_are_the_chance_level(bag):
    readings = bag.contributions(["good film", "bad river"])
    around = surroundings_of(bag, readings)
    assert lexical_neighbour_share(readings, around).share == own_word_share(readings, around).share == 1.0
    chance = lexical_neighbour_chance(readings, around, seed=0)
    assert (chance.share, chance.count, chance.low) == (0.0, 4, 0.0)
    assert chance.high == pytest.approx(1 - 0.025 ** (1 / 2)), "two texts rule out little"
    assert lexical_neighbour_chance(readings[:1], around[:1], seed=0) == Rate(None, 0)


def test_inflections_and_neighbours_are_near_but_not_in_the_text(bag):
    (reading,) = bag.contributions(["good films"])
    film, plot = (NamedWord(i, name, (0, 4), 1.0, (-1.0, 1.0), 1.0) for i, name in ((900, "film"), (901, "plot")))
    (around,) = surroundings_of(bag, [reading])
    assert not around.has_word(film)
    assert around.has_near(film)
    assert not around.has_near(plot)
    assert replace(around, near=frozenset({901})).has_near(plot)


def test_sign_stability_is_the_mass_that_agrees_with_the_majority():
    def reading(value: float) -> Reading:
        return Reading("", 1, (NamedWord(0, "good", None, 1.0, (-value, value), value),), frozenset())

    assert sign_stability([reading(v) for v in (1, 1, 1, 2, -5)]) == Rate(0.5, 5)
    assert sign_stability([reading(v) for v in (1, 1, 1, -5)]) == Rate(None, 0)


def test_the_strongest_words_of_a_class_are_its_own(bag):
    texts, labels = reviews()
    strongest = strongest_words(bag, texts, labels, k=4)
    assert {word.name for word in strongest[0]} == set(BAD)
    assert {word.name for word in strongest[1]} == set(GOOD)
    best = strongest[1][0]
    assert best.frequency == best.count / labels.count(1)
    with pytest.raises(ValueError, match="one per text"):
        strongest_words(bag, texts, labels[:3])


def test_a_bag_of_words_of_three_classes_is_centered():
    bag = BagOfWords(["good film", "bad film", "long film"] * 3, [0, 1, 2] * 3)
    (reading,) = bag.contributions(["a good film"])
    assert reading.label == 0
    assert reading.words[0].name == "good"
    assert all(abs(sum(word.contributions)) < 1e-9 for word in reading.words)
    with pytest.raises(ValueError, match="two classes"):
        BagOfWords(["good"], [0])


@pytest.mark.parametrize(("left", "falls"), [(0.0, True), (0.4, True), (-0.4, True), (0.5, False), (-5.0, False)])
def test_a_contribution_that_turns_to_the_other_side_has_not_gone(left, falls):
    word = NamedWord(0, "good", (0, 4), 1.0, (-2.0, 2.0), 2.0)
    claim = Claim(Reading("good", 1, (word,), frozenset({0})), word, None)
    assert claim.falls(Response(left, 1.0)) == falls


def test_the_control_edits_another_word_and_not_another_way_to_write_the_same():
    text = "it isn't good and you don't care"
    spans = {"n't": (3, 8), "don't": (22, 27), "care": (28, 32)}
    words = [NamedWord(i, name, span, 1.0, (-2.0, 2.0), 2.0) for i, (name, span) in enumerate(spans.items())]
    claims = claims_of([Reading(text, 1, tuple(words), frozenset())], seed=0)
    assert [claim.other for claim in claims[:2]] == [(28, 32), (28, 32)]
