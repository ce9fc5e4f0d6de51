import json
import math

import pytest
import torch

from lexical_sae.data import TaggedSplit
from lexical_sae.evaluation.tagging.faithfulness import measure_tags
from lexical_sae.inference.word_decisions import read_words, words_of
from lexical_sae.mechanistic.attribution import attribute_centered
from lexical_sae.models.circuit_state import circuit_mask
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import TAG
from tests import tiny

SENTENCES = (
    ("The", "Muslim", "bank", "was", "good", "."),
    ("Dogs", "play", "in", "a", "city"),
    ("film",) * 90,
    ("a", "\u200b", "River"),
    ("great", "plot", "and", "Terrible", "Acting", "!"),
)
SPLIT = TaggedSplit(SENTENCES, tuple(("O",) * (len(words) - 1) + ("B-PER",) for words in SENTENCES))
HALF = 0.5


def tagger(**settings):
    return tiny.model(ModelConfig.model_validate({"gate": "drelu", "shapes": {}, **settings}))


def dense_words(model):
    """The dense vector of every word that is read, and its true tag."""
    rows, vectors, gold = words_of(model, SENTENCES), [], []
    for read in read_words(model, SENTENCES, rows, batch_size=1):
        vectors.append(read.state.code.dense())
        gold += [model.labels[TAG].index(SPLIT.tags[sentence][word]) for sentence, word in read.places]
    return torch.cat(vectors), torch.tensor(gold)


@torch.no_grad()
def by_brute_force(model, vectors, gold):
    """Every word decided again by itself, the slow way: circuits of half its words, and no word at all."""

    def logits(vector):
        return model.decide(vector[None], TAG).logits[0]

    found = []
    for vector, true in zip(vectors, gold, strict=True):
        state = model.decide(vector[None], TAG)
        full, tag = state.logits[0], int(state.logits.argmax())
        said = attribute_centered(state, torch.tensor([tag]))[0]
        circuit = circuit_mask(said[None], vector[None] != 0, HALF, math.inf)[0]
        left = logits(vector * circuit)
        active = vector.nonzero().flatten()
        top = active[said[active].argsort(descending=True, stable=True)]
        k = min(max(1, round(HALF * len(active))), len(active))
        without_one, without_half, half = vector.clone(), vector.clone(), torch.zeros_like(vector)
        without_one[top[:1]] = 0
        without_half[top[:k]] = 0
        half[top[:k]] = vector[top[:k]]

        def lost(one, full=full, tag=tag):
            return float(full.softmax(-1)[tag] - logits(one).softmax(-1)[tag])

        found.append(
            {
                "right": tag == int(true),
                "agreement": int(left.argmax()) == tag,
                "accuracy": int(left.argmax()) == int(true),
                "empty": int(logits(torch.zeros_like(vector)).argmax()) == tag,
                "flips": int(logits(without_one).argmax()) != tag,
                "comprehensiveness": lost(without_half),
                "sufficiency": lost(half),
                "is_entity": model.labels[TAG][tag] != "O",
            }
        )
    return found


def mean(found, name):
    return sum(one[name] for one in found) / len(found)


def measured(model, **settings):
    return measure_tags(model, SPLIT, fractions=(HALF,), removed_words=(1,), **settings)


@pytest.mark.parametrize("settings", [{}, {"head": "bcos"}], ids=["relu", "bcos"])
def test_both_tiers_are_every_word_decided_again_by_brute_force(settings):
    model = tagger(**settings)
    words = by_brute_force(model, *dense_words(model))
    entities = [one for one in words if one["is_entity"]]
    assert 0 < len(entities) < len(words)
    found = measured(model)
    for tier, expected in ((found.all_words, words), (found.entities, entities)):
        assert tier.words == len(expected)
        (size,), (rate,) = tier.completeness.sizes, tier.removability.removed
        direct = tier.eraser.orders["direct"]
        for ours, name in (
            (tier.completeness.full_accuracy, "right"),
            (tier.completeness.empty.agreement, "empty"),
            (size.circuit.agreement, "agreement"),
            (size.circuit.accuracy, "accuracy"),
            (rate.orders["direct"], "flips"),
            (direct.comprehensiveness, "comprehensiveness"),
            (direct.sufficiency, "sufficiency"),
        ):
            assert ours.mean == pytest.approx(mean(expected, name), abs=1e-5), name
        assert tier.removability.everything.mean == pytest.approx(1 - mean(expected, "empty"))
        assert tier.verification.texts_beyond_tolerance == 0


def planted_tagger():
    """Two words decide: with "bank" open a word is a place, with "river" a person; all others say next to nothing."""
    model = tagger(shapes=None)
    head, names = model.head(TAG), [dimension.name for dimension in model.dimensions]
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.word_vectors[:, 0] = 1e-3
        head.class_weights[3, 0], head.class_weights[1, 1] = 1.0, 1.0
        head.class_bias[0] = 0.05
        head.word_vectors[names.index("bank"), 0] = 10.0
        head.word_vectors[names.index("river"), 1] = 10.0
    return model, {names.index("bank"), names.index("river")}


def test_the_words_that_decide_are_enough_and_flip_the_tag_and_random_ones_are_not_and_do_not():
    model, planted = planted_tagger()
    vectors, _ = dense_words(model)
    assert sum(bool(planted & set(vector.nonzero().flatten().tolist())) for vector in vectors) > 20
    entities = measure_tags(model, SPLIT, fractions=(0.1,), removed_words=(1,)).entities
    (size,), (rate,) = entities.completeness.sizes, entities.removability.removed
    assert size.circuit.agreement.mean > 0.9
    assert size.random.agreement.mean < 0.5
    assert size.advantage.mean > 0.4
    assert entities.completeness.empty.agreement.mean == 0
    assert rate.orders["direct"].mean > rate.orders["random"].mean + 0.4
    assert entities.removability.everything.mean == 1
    assert entities.eraser.comprehensiveness_advantage.mean > 0.05


def test_batches_do_not_matter_and_the_seed_draws_the_random_words():
    model = tagger()
    one, all_at_once = measured(model, batch_size=1), measured(model, batch_size=64)
    other = measured(model, seed=1)
    for tier in ("all_words", "entities"):
        first, second, third = (
            getattr(found, tier).completeness.sizes[0].random for found in (one, all_at_once, other)
        )
        assert first.kl.mean == pytest.approx(second.kl.mean, rel=1e-4)
        assert (first.kl.low, first.kl.high) == pytest.approx((second.kl.low, second.kl.high), rel=1e-4)
        assert first.kl.mean != pytest.approx(third.kl.mean, rel=1e-4)


def test_words_of_a_sentence_are_drawn_together():
    model = tagger()
    found = measured(model).all_words.completeness.full_accuracy
    alone = measure_tags(model, SPLIT.take([2]), fractions=(HALF,), removed_words=(1,)).all_words
    assert found.low is not None
    # One sentence has no interval, however many words it has.
    assert alone.words == 90
    assert alone.completeness.full_accuracy.low is None


def test_tags_are_separated_by_their_words():
    found = measured(tagger()).separation
    assert found.cosine is not None
    assert 0 <= found.cosine.mean <= 1
    assert found.cosine_by_chance is not None


def test_without_an_entity_there_is_no_tier_of_entities():
    model = tagger()
    with torch.no_grad():
        model.head(TAG).class_bias[0] = 1e4
    found = measured(model)
    assert found.entities is None
    assert found.all_words.completeness.empty.agreement.mean == 1
    assert json.loads(json.dumps(found.as_dict()))["entities"] is None


def test_a_tag_that_the_model_does_not_know_is_refused():
    with pytest.raises(ValueError, match="tag 'B-ORG' is not a label of this model"):
        measure_tags(tagger(), TaggedSplit((("a",),), (("B-ORG",),)))
