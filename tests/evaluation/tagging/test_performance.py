import pytest
import torch

from lexical_sae.data import TaggedSplit
from lexical_sae.evaluation.tagging.entities import score_entities
from lexical_sae.evaluation.tagging.lexicon import entity_lexicons
from lexical_sae.evaluation.tagging.performance import score_tagger
from lexical_sae.inference.tagging import tag
from lexical_sae.inference.word_decisions import read_words, words_of
from lexical_sae.mechanistic.attribution import attribute_centered
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.pooling import TopK
from lexical_sae.models.lexical_sae import TAG
from tests import tiny

SENTENCES = (
    ("The", "Muslim", "bank", "was", "good", "."),
    ("Dogs", "play", "in", "a", "city"),
    ("film",) * 90,
    ("a", "\u200b", "River"),
)
SPLIT = TaggedSplit(SENTENCES, tuple(("O",) * (len(words) - 1) + ("B-PER",) for words in SENTENCES))


def tagger(**settings):
    return tiny.model(ModelConfig.model_validate({"gate": "drelu", "shapes": {}, **settings}))


def states(model):
    """Every labelled position by itself, the slow way."""
    rows = words_of(model, SENTENCES)
    for read in read_words(model, SENTENCES, rows, batch_size=1):
        dense = read.state.code.dense()
        with torch.no_grad():
            yield from (model.decide(row[None], TAG) for row in dense)


def test_scores_are_those_of_each_position_by_itself():
    model = tagger()
    found = score_tagger(model, SPLIT, (3,), batch_size=2)
    counts = [int((state.sparse_vector > 0).sum()) for state in states(model)]
    assert len(counts) == found.entities.words - 1
    assert found.active_words == pytest.approx(sum(counts) / len(counts))
    assert found.sparsity == pytest.approx(1 - found.active_words / len(model.dimensions))
    assert found.words_unread == 1
    assert found.sentences_in_windows == 1
    assert found.identity_error < 1e-5
    assert 0 < found.active_shapes < found.active_words
    assert found.predicted == tuple(sentence.tags for sentence in tag(model, SENTENCES))
    assert found.entities == score_entities(SPLIT.tags, found.predicted)
    figures = found.as_dict()
    assert figures["f1"] == found.entities.overall.f1
    assert set(figures["types"]) == set(found.entities.types)


def test_a_point_of_the_curve_is_the_model_with_that_cap():
    model = tagger()
    found = {point.k: point for point in score_tagger(model, SPLIT, (1, 4, 10_000)).curve}
    for k in (1, 4):
        model.topk = TopK(k)
        capped = score_tagger(model, SPLIT, ())
        assert capped.active_words == pytest.approx(found[k].active_words)
        assert capped.entities.overall.f1 == found[k].f1
        assert capped.active_words <= k + len(model.shapes)
    assert found[10_000].active_words == found[0].active_words
    assert list(found) == [1, 4, 10_000, 0]


def test_without_shapes_nothing_is_counted_as_one():
    assert score_tagger(tagger(shapes=None), SPLIT, ()).active_shapes == 0


def test_a_cap_of_nothing_is_refused():
    with pytest.raises(ValueError, match="a cap of 0 words"):
        score_tagger(tagger(), SPLIT, (0,))


def test_a_lexicon_is_the_mean_of_what_words_say_where_a_type_is_predicted():
    model = tagger()
    names = model.labels[TAG]
    sums, positions = {}, {}
    for state in states(model):
        predicted = state.logits.argmax(-1)
        kind = names[int(predicted)][2:]
        positions[kind] = positions.get(kind, 0) + 1
        sums[kind] = sums.get(kind, 0) + attribute_centered(state, predicted)[0].double()
    lexicons = {
        lexicon.type: lexicon for lexicon in entity_lexicons(model, SENTENCES, top=5, batch_size=3, all_tokens=True)
    }
    assert set(lexicons) == {"LOC", "PER"}
    for kind, lexicon in lexicons.items():
        assert lexicon.positions == positions.get(kind, 0)
        if not lexicon.positions:
            assert lexicon.words == ()
            continue
        best = (sums[kind] / positions[kind]).topk(5)
        assert [word.contribution for word in lexicon.words] == pytest.approx(
            [value for value in best.values.tolist() if value > 0], rel=1e-3, abs=1e-5
        )
        assert all(0 < word.active <= 1 for word in lexicon.words)
    assert any(lexicon.words for lexicon in lexicons.values())


def test_a_lexicon_names_whole_words_and_shapes_and_sums_the_rest():
    model = tagger()
    listed, every = (
        entity_lexicons(model, SENTENCES, top=10_000, all_tokens=all_tokens) for all_tokens in (False, True)
    )
    assert any("##" in word.word for own in every for word in own.words)
    assert any(own.pieces for own in listed)
    for own, whole in zip(listed, every, strict=True):
        kept = [word for word in whole.words if word.word[:1].isalpha()]
        assert list(own.words) == kept
        assert whole.pieces is None
