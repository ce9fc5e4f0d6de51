import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexical_sae.evaluation.corpus.atlas import region_atlas
from lexical_sae.evaluation.corpus.regions import RegionSampler
from tests.evaluation.corpora import centered_weights, random_head, read_batch, relu_head
from tests.strategies import sparse_vectors

LABELS = ("x", "y", "z")


def sample_of(head, vectors, batch_size=4, **settings):
    sampler = RegionSampler(head, **settings)
    for start in range(0, len(vectors), batch_size):
        rows = range(start, min(start + batch_size, len(vectors)))
        sampler.update(read_batch(head, vectors[list(rows)], rows=rows))
    return sampler.sample()


def atlas_of(head, vectors, labels=LABELS, **settings):
    return region_atlas(sample_of(head, vectors), labels, "word{}".format, **settings)


def planted():
    """Three kinds of text, each with its own units on: word 0, 1 or 2 opens a pair of units, words 3 and 4 use it.

    In the first kind word 3 speaks for x, in the second for y; word 4 the other way around; the third is for z.
    """
    opened = [[9.0, 9, 0, 0, 0], [0, 0, 9, 9, 0], [0, 0, 0, 0, 9]]
    used = [[1.0, -1, -1, 1, 0], [-1, 1, 1, -1, 0]]
    weights = [[1.0, -1, 1, -1, 0], [-1, 1, -1, 1, 0], [0, 0, 0, 0, 0.2]]
    head = relu_head(opened + used, weights, hidden_bias=[-3] * 5)
    generator = torch.Generator().manual_seed(0)
    kinds = torch.tensor([0] * 12 + [1] * 9 + [2] * 3)
    vectors = torch.zeros(24, 5, dtype=torch.float64)
    vectors[:, 3:] = torch.rand(24, 2, generator=generator, dtype=torch.float64)
    vectors[torch.arange(24), kinds] = 1.0
    order = torch.randperm(24, generator=generator)
    return head, vectors[order], kinds[order]


def test_planted_regions_are_found_with_their_own_word_lists():
    head, vectors, _ = planted()
    atlas = atlas_of(head, vectors, coverage=0.85, agreement=1.0)
    assert atlas.regions == 3
    assert [(group.texts, group.regions, group.agreement) for group in atlas.groups] == [(12, 1, 1.0), (9, 1, 1.0)]
    assert [group.margin_r2 for group in atlas.groups] == [pytest.approx(1.0)] * 2
    assert (atlas.coverage, atlas.agreement) == (21 / 24, 1.0)
    first, second = atlas.groups
    # Weights within a region: word 3 changes its side.
    assert [(w.name, w.weight) for w in first.words["x"] if w.name == "word3"] == [("word3", 2.0)]
    assert [(w.name, w.weight) for w in second.words["y"] if w.name == "word3"] == [("word3", 2.0)]
    assert "word3" not in [w.name for w in second.words["x"]]
    assert first.decisions.keys() == set(LABELS)
    assert sum(first.decisions.values()) == 12
    assert len(atlas_of(head, vectors, coverage=1.0, agreement=1.0).groups) == 3


def test_units_that_never_switch_are_told_from_those_that_do():
    head, vectors, kinds = planted()
    atlas = atlas_of(head, vectors)
    assert {unit.unit: unit.share_on for unit in atlas.switching} == {
        0: 12 / 24, 1: 12 / 24, 2: 9 / 24, 3: 9 / 24, 4: 3 / 24
    }  # fmt: skip
    assert [unit.relevance for unit in atlas.switching] == sorted((u.relevance for u in atlas.switching), reverse=True)
    alone = atlas_of(head, vectors[kinds == 2])
    assert (alone.always_on, alone.always_off, alone.switching) == (1, 4, ())
    assert (len(alone.groups), alone.coverage) == (1, 1.0)


def test_units_that_say_nothing_do_not_part_texts():
    """Ten units that switch at random but count for no class: regions multiply, groups stay."""
    head, vectors, _ = planted()
    noisy = torch.cat([vectors, torch.rand(24, 10, dtype=torch.float64).round()], dim=1)
    word_vectors = torch.block_diag(head.word_vectors, 9 * torch.eye(10)).tolist()
    class_weights = [[*row, *[2.0] * 10] for row in head.class_weights.tolist()]
    atlas = atlas_of(relu_head(word_vectors, class_weights, hidden_bias=[-3] * 15), noisy, coverage=1.0, agreement=1.0)
    assert atlas.regions > 20
    assert [group.texts for group in atlas.groups] == [12, 9, 3]
    assert [unit.relevance for unit in atlas.switching[-10:]] == [0.0] * 10


def test_one_group_is_enough_where_one_linear_model_is():
    head = relu_head([[1, -1, 0], [2, 1, -1]], torch.eye(3).tolist(), hidden_bias=[50, 50, 50])
    atlas = atlas_of(head, torch.rand(10, 2).double())
    assert len(atlas.groups) == 1
    assert (atlas.groups[0].margin_r2, atlas.agreement) == (pytest.approx(1.0), 1.0)


@given(st.integers(0, 99), sparse_vectors(11, 9), st.integers(1, 4))
@settings(max_examples=25)
def test_groups_are_as_faithful_as_they_say(seed, vectors, max_groups):
    head = random_head(seed=seed)
    atlas = atlas_of(head, vectors, coverage=1.0, agreement=1.0, max_groups=max_groups, top=99)
    assert 1 <= len(atlas.groups) <= max_groups
    assert sum(group.texts for group in atlas.groups) == 11
    assert sum(group.agreement * group.texts for group in atlas.groups) / 11 == pytest.approx(atlas.agreement)
    assert [group.texts for group in atlas.groups] == sorted((g.texts for g in atlas.groups), reverse=True)
    is_on = vectors @ head.word_vectors + head.hidden_bias > 0
    assert atlas.regions == len({tuple(row) for row in is_on.tolist()})
    if len(atlas.groups) == 1:
        state = head(vectors)
        linear = vectors @ state.W_eff.mean(0).T + state.b_eff.mean(0)
        alike = linear.argmax(-1) == state.logits.argmax(-1)
        assert atlas.agreement == pytest.approx(float(alike.double().mean()))
        pair = state.logits.topk(2).indices
        wanted, given_ = (z.gather(1, pair) @ torch.tensor([1.0, -1]).double() for z in (state.logits, linear))
        if atlas.groups[0].margin_r2 is not None:
            r2 = 1 - (wanted - given_).square().sum() / (wanted - wanted.mean()).square().sum()
            assert atlas.groups[0].margin_r2 == pytest.approx(float(r2), abs=1e-9)
        weights, activations = centered_weights(head, vectors).mean(0), vectors.mean(0)
        for index, label in enumerate(LABELS):
            expected = {
                f"word{j}": float(weights[index, j]) for j in range(9) if weights[index, j] * activations[j] > 0
            }
            words = atlas.groups[0].words[label]
            assert {word.name: word.weight for word in words} == pytest.approx(expected)
            for word in words:
                j = int(word.name.removeprefix("word"))
                assert word.contribution == pytest.approx(float(weights[index, j] * activations[j]))
                assert word.count == int((vectors[:, j] != 0).sum())


def test_the_sample_depends_on_the_places_of_texts_not_on_the_batches():
    head, vectors, _ = planted()
    few = sample_of(head, vectors, batch_size=24, limit=10)
    again = sample_of(head, vectors, batch_size=5, limit=10)
    assert torch.equal(few.hidden, again.hidden)
    assert torch.equal(few.code.dense(), again.code.dense())
    assert (len(few.hidden), few.texts) == (10, 24)
    # Units are counted on every text, also on those that were not kept.
    assert torch.equal(few.share_on, sample_of(head, vectors).share_on)
    assert not torch.equal(few.hidden, sample_of(head, vectors, limit=10, seed=1).hidden)
    assert torch.allclose(few.hidden, few.code.dense() @ head.word_vectors + head.hidden_bias)
    assert torch.allclose(few.logits(few.is_on.double()), head(few.code.dense()).logits)


def test_the_atlas_is_the_same_twice_and_plain_data():
    head, vectors, _ = planted()
    assert atlas_of(head, vectors) == atlas_of(head, vectors)
    assert json.loads(json.dumps(atlas_of(head, vectors).as_dict()))["sampled"] == 24


def test_texts_without_words_and_a_single_text_have_an_atlas():
    head = random_head()
    assert len(atlas_of(head, torch.zeros(3, 9).double()).groups) == 1
    alone = atlas_of(head, torch.ones(1, 9).double())
    assert (alone.groups[0].texts, alone.groups[0].margin_r2, alone.agreement) == (1, None, 1.0)


def test_a_head_without_regions_is_refused():
    with pytest.raises(ValueError, match="BcosHead has no regions"):
        RegionSampler(random_head("bcos"))
    with pytest.raises(ValueError, match="give at least one"):
        RegionSampler(random_head()).sample()
    for wrong, message in (({"coverage": 0.0}, "coverage is 0.0"), ({"max_groups": 0}, "at least one group")):
        with pytest.raises(ValueError, match=message):
            atlas_of(random_head(), torch.ones(2, 9).double(), **wrong)
