import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.evaluation.names.lexical import LexicalSAENames
from lexical_sae.evaluation.names.model import NamedWord, Reading
from lexical_sae.evaluation.names.presence import FEWEST, PresenceCollector, histogram_auc, measure_presence, stems_of
from lexical_sae.evaluation.names.random_head import with_random_lexical_head
from lexical_sae.evaluation.names.tests import measure_names
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.neighbourhood import NO_WORD, Neighbourhood
from lexical_sae.models.layers.virtual_expander import VirtualExpander
from lexical_sae.models.projected_reading import word_logits
from lexical_sae.report.terminal import name_figures
from tests import tiny
from tests.evaluation.names.test_tests import reviews

ids = tiny.wordpiece().convert_tokens_to_ids


def word(name: str, activation: float = 1.0, contribution: float = 1.0) -> NamedWord:
    return NamedWord(hash_free(name), name, None, activation, (-contribution, contribution), contribution)


def hash_free(name: str) -> int:
    return sum(ord(letter) * 31**i for i, letter in enumerate(name))


def presence(texts, shows, seed=0):
    """Scores when a text is read as the words that `shows` gives for it."""
    collector = PresenceCollector(texts, seed)
    for text in texts:
        collector.update(Reading(text, 1, tuple(shows(text)), frozenset()))
    return collector.result()


# The AUC


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
)
def test_the_auc_of_histograms_is_that_of_all_pairs(with_word, without):
    histograms = [np.bincount(values, minlength=4)[1:] for values in (with_word, without)]
    pairs = [(a > b) + (a == b) / 2 for a in with_word for b in without]
    assert histogram_auc(*histograms, len(with_word), len(without)) == pytest.approx(np.mean(pairs))


# True and false names


@pytest.fixture(scope="module")
def texts():
    return reviews()[0]


def test_words_that_fire_where_they_are_written_score_one_and_shuffled_names_do_not(texts):
    scores = presence(texts, lambda text: [word(stem) for stem in stems_of(text) if stem.isalpha()])
    assert scores.auc.share == 1.0
    assert scores.texts == len(texts)
    assert 0.3 < scores.shuffled.share < 0.75
    assert scores.shuffled.low <= scores.shuffled.share <= scores.shuffled.high


def test_words_that_fire_everywhere_or_by_lot_score_a_half(texts):
    assert presence(texts, lambda _: [word("film"), word("plot")]).auc.share == 0.5
    random = np.random.default_rng(0)
    drawn = presence(texts, lambda _: [word(name) for name in ("film", "plot") if random.random() < 0.5])
    assert 0.3 < drawn.auc.share < 0.7


def test_words_that_fire_where_they_are_not_written_score_nothing(texts):
    scores = presence(texts, lambda text: [] if "film" in stems_of(text) else [word("film")])
    assert scores.auc.share == 0.0


def test_an_inflection_counts_as_the_word():
    texts = ["two films", "one river"] * FEWEST
    assert presence(texts, lambda text: [word("film")] if "films" in text else []).auc.share == 1.0


def test_strength_tells_where_firing_does_not(texts):
    scores = presence(texts, lambda text: [word("film", 2.0 if "film" in stems_of(text) else 1.0)])
    assert scores.auc.share == 1.0


def test_the_mean_is_weighed_by_contribution(texts):
    right = presence(texts, lambda text: [word("film", 1, 3 if "film" in stems_of(text) else 0), word("plot", 1, 1)])
    (film,) = [one for one in right.words if one.name == "film"]
    total = sum(one.weight for one in right.words)
    assert right.auc.share == pytest.approx(sum(one.weight * one.auc for one in right.words) / total)
    assert film.texts == sum("film" in stems_of(text) for text in texts)


def test_rare_words_pieces_and_marks_are_left_out():
    texts = ["film and plot"] + ["plot"] * 9
    scores = presence(texts, lambda _: [word("film"), word("##ing"), word("!")])
    assert scores.auc.share is None
    assert scores.auc.count == 0


# A model and its control


@pytest.fixture(scope="module", params=["free", "neighbourhood", "senses"])
def model(request):
    config = {
        "free": ModelConfig(gate="drelu"),
        "neighbourhood": ModelConfig(gate="drelu", neighbourhood=Neighbourhood.Config(words_per_token=3)),
        "senses": ModelConfig(gate="drelu", expander=VirtualExpander.Config(token_ids=(ids("plot"),), num_senses=2)),
    }[request.param]
    made = tiny.model(config)
    made.start_from_backbone()
    return made


def test_in_the_control_every_word_speaks_for_another_and_nothing_else_changes(model):
    control = with_random_lexical_head(model, seed=3)
    input_ids, mask = tiny.batch()
    ours, theirs = (word_logits(one, input_ids, mask.bool()) for one in (model, control))
    size = model.backbone.vocab_size
    before, after = (logits[..., :size][mask].sort(-1).values for logits in (ours, theirs))
    torch.testing.assert_close(before, after)
    moved = [i for i in range(size) if not torch.equal(ours[..., i], theirs[..., i])]
    closed = model.gate.closed[:size]
    assert len(moved) > 10
    assert not closed[moved].any()
    embeddings = [one.backbone.encoder.get_input_embeddings().weight for one in (model, control)]
    assert torch.equal(*embeddings)
    if model.expander is not None:
        assert ids("plot") not in moved


def test_a_word_opens_its_stand_in_where_neighbourhoods_hold():
    made = tiny.model(ModelConfig(gate="drelu", neighbourhood=Neighbourhood.Config(words_per_token=1)))
    made.start_from_backbone()
    table = with_random_lexical_head(made, seed=0).neighbourhood.table[:, 0]
    words = (made.neighbourhood.table[:, 0] != NO_WORD).nonzero().flatten()
    assert sorted(table[words].tolist()) == words.tolist()
    assert int((table[words] == words).sum()) <= 3


def test_names_fall_to_chance_in_the_control_and_the_delete_test_does_not(texts):
    made = tiny.model(ModelConfig(gate="drelu", neighbourhood=Neighbourhood.Config(words_per_token=1)))
    made.start_from_backbone()
    with torch.no_grad():
        # Every word that may open does.
        made.backbone.decoder.bias += 50
    scores = measure_names(made, texts, limit=12)
    assert scores.own_words.share == 1.0
    assert scores.presence.auc.share > 0.95
    control = scores.random_head
    assert control is not None
    assert control.own_words.share < 0.4
    assert control.presence.share < 0.75
    assert control.follow.share < 0.3
    assert control.delete.share > 0.9


def test_a_word_behind_the_cut_is_not_written_for_the_model():
    made = tiny.model(ModelConfig(gate="drelu", max_length=8, neighbourhood=Neighbourhood.Config(words_per_token=1)))
    made.start_from_backbone()
    with torch.no_grad():
        made.backbone.decoder.bias += 50
    named = LexicalSAENames(made)
    far = "the acting was terrible and boring in the city film"
    assert named.as_read([far, "a good film  "]) == ["the acting was terrible and boring", "a good film  "]
    assert named.contributions([far])[0].text == "the acting was terrible and boring"
    scores = measure_presence(named, ["a good film", "a bank", far] * FEWEST)
    (film,) = [one for one in scores.words if one.name == "film"]
    assert (film.auc, film.texts) == (1.0, FEWEST)


def test_presence_of_a_model_depends_on_its_texts_and_seed_alone(texts):
    named = LexicalSAENames(tiny.model())
    steps = []
    first = measure_presence(named, texts[:20], seed=1, on_step=steps.append)
    assert measure_presence(named, texts[:20], seed=1) == first
    assert (steps[-1].done, steps[-1].total) == (20, 20)


def test_the_table_of_names_shows_both_and_older_files_still_open(texts):
    from lexical_sae.evaluation.names.bag_of_words import BagOfWords

    scores = measure_names(BagOfWords(*reviews()), texts, limit=6).as_dict()
    assert scores["random_head"] is None
    _, rows = name_figures("bag", scores)
    assert "presence" in [name for name, _, _ in rows]
    half = {"share": 0.5, "count": 3, "low": 0.4, "high": 0.6}
    keys = ("delete", "follow", "own_words", "lexical_neighbours", "presence")
    _, rows = name_figures("model", scores | {"random_head": dict.fromkeys(keys, half)})
    assert rows[-1][0] == "random lexical head"
    del scores["presence"], scores["random_head"]
    assert len(name_figures("bag", scores)[1]) == 7
