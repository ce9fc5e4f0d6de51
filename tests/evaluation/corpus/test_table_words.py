import pytest
import torch

from lexical_sae.evaluation.collect import collect
from lexical_sae.evaluation.corpus.survey import survey
from lexical_sae.evaluation.corpus.table_words import TableWordCollector, neighbour_agreement
from tests import tiny
from tests.literal import literal_model

LIKE = ("good", "great", "wonderful", "happy", "bad", "awful", "terrible", "boring", "play", "money", "river")
"""Words near to one another in the planted embedding; all but "movie" say the same."""


@pytest.fixture(scope="module")
def model():
    made = literal_model(shifting=False)
    place = {made.dimensions[i].name: i for i in range(len(made.dimensions))}
    embeddings = made.backbone.input_embeddings()
    with torch.no_grad():
        embeddings.zero_()
        made.head().word_vectors.zero_()
        for n, word in enumerate((*LIKE, "movie")):
            embeddings[place[word], 0], embeddings[place[word], 1 + n] = 1.0, 0.01
            made.head().word_vectors[place[word]] = torch.tensor([-1.0, 0.0, 1.0]) if word != "movie" else 0.0
        made.head().word_vectors[place["movie"]] = torch.tensor([1.0, 0.0, -1.0])
    return made


def found_in(model, texts):
    collector = TableWordCollector(model)
    collect(model, texts, [collector])
    return collector.words(top=3, min_count=2)


def test_a_word_that_its_neighbours_contradict_has_its_weight_from_the_data(model):
    assert found_in(model, ["a good movie", "a great movie", "bad movie"]).from_data_alone == ("movie",)
    assert found_in(model, ["a good plot", "great", "bad"]).from_data_alone == ()


def test_agreement_is_the_share_of_a_row_that_neighbours_say(model):
    place = {model.dimensions[i].name: i for i in range(len(model.dimensions))}
    rows = model.head().word_vectors.clone()
    rows[place["good"]] *= 2
    words = [place["good"], place["movie"]]
    # Seven of the eight nearest may be any of the others, which are alike, or "movie".
    own, other = neighbour_agreement(model, rows, words)
    assert own == pytest.approx(0.5) or own == pytest.approx(0.375)
    assert other < -0.9


def test_the_strongest_words_of_a_class_are_those_of_the_table(model):
    words = found_in(model, ["a good movie", "good movie", "movie"])
    listed = {label: [(word.name, word.weight, word.texts) for word in own] for label, own in words.classes}
    assert listed == {"negative": [("movie", 1.0, 3)], "neutral": [], "positive": [("good", 1.0, 2)]}


def test_where_every_word_is_rare_all_that_occur_are_listed(model):
    words = found_in(model, ["a good movie"])
    assert [word.name for _, own in words.classes for word in own] == ["movie", "good"]


def test_a_model_without_a_table_is_refused():
    with pytest.raises(ValueError, match="no table of words"):
        TableWordCollector(tiny.model())


def test_a_corpus_with_words_that_the_model_never_met_is_counted_all_the_same():
    model = literal_model()
    collector = TableWordCollector(model)
    survey(model, ["a boringly good film", "good"], beside=[collector])
    place = {model.dimensions[i].name: i for i in range(len(model.dimensions))}
    assert collector.texts[place["good"]] == 2
    assert len(collector.texts) == len(model.dimensions)
