import json
from copy import deepcopy

import pytest
import torch

from lexical_sae.data.dimensions import DimensionTable
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.evaluation.corpus.diff import diff_models
from lexical_sae.evaluation.corpus.pairs import shared_names
from lexical_sae.evaluation.intervals import mean_and_interval
from lexical_sae.evaluation.names.lexical import LexicalSAENames
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from tests import tiny
from tests.evaluation.corpora import TEXTS

LABELS = ("negative", "neutral", "positive")


@pytest.fixture(scope="module")
def before():
    return tiny.model()


@pytest.fixture(scope="module")
def after():
    """Another head on the same encoder, its labels in another order."""
    torch.manual_seed(5)
    labels = {"classify": ["positive", "negative", "neutral"]}
    return LexicalSAE(ModelConfig(gate="drelu"), tiny.backbone(), labels).eval()


@pytest.fixture(scope="module")
def other_vocabulary():
    torch.manual_seed(6)
    backbone = Backbone(tiny.masked_lm(vocab_size=len(tiny.byte_bpe())), tiny.byte_bpe()).eval()
    return LexicalSAE(ModelConfig(gate="drelu"), backbone, {"classify": LABELS}).eval()


def readings_of(model):
    """Per text: label, and the contributions of each word by label."""
    names = model.labels["classify"]
    return [
        (names[r.label], {w.name: dict(zip(names, w.contributions, strict=True)) for w in r.words})
        for r in LexicalSAENames(model).contributions(TEXTS)
    ]


@pytest.mark.parametrize("second", ["after", "other_vocabulary"])
@pytest.mark.parametrize("has_labels", [True, False])
def test_the_diff_says_what_reading_text_by_text_says(before, second, has_labels, request):
    second = request.getfixturevalue(second)
    gold = [row % 3 for row in range(len(TEXTS))]
    asked = {"top": 999, "batch_size": 3, "min_count": 2, "all_tokens": True}
    found = diff_models(before, second, TEXTS, gold if has_labels else None, **asked)
    old, new = readings_of(before), readings_of(second)
    classes = [LABELS[label] for label in gold] if has_labels else [label for label, _ in old]
    for own in found.classes:
        rows = [row for row in range(len(TEXTS)) if classes[row] == own.label]
        assert own.texts == len(rows)
        words = {word.name: word for word in (*own.gained, *own.lost)}
        names = {name for row in rows for name in (*old[row][1], *new[row][1])}
        assert words.keys() <= names
        for name in names:
            said, says = ([r[row][1].get(name, {}).get(own.label, 0.0) for row in rows] for r in (old, new))
            difference = mean_and_interval([b - a for a, b in zip(said, says, strict=True)])
            if name not in words:
                assert difference.mean == pytest.approx(0, abs=1e-5)
                continue
            word = words[name]
            assert word.before == pytest.approx(sum(said) / len(rows), abs=1e-5)
            assert word.after == pytest.approx(sum(says) / len(rows), abs=1e-5)
            assert word.difference == pytest.approx(difference.mean, abs=1e-5)
            assert word.low == pytest.approx(difference.low, abs=1e-4)
            assert word.high == pytest.approx(difference.high, abs=1e-4)
            assert word.count == sum(name in old[row][1] or name in new[row][1] for row in rows)
            if word.low is not None and word.high is not None and abs(word.low) > 1e-4 and abs(word.high) > 1e-4:
                assert word.is_clear == (word.count >= 2 and not word.low <= 0 <= word.high)
        assert all(word.difference > 0 for word in own.gained)
        assert all(word.difference < 0 for word in own.lost)
    assert found.flipped == sum(a[0] != b[0] for a, b in zip(old, new, strict=True))
    assert sum(sum(counts.values()) for counts in found.flips_between.values()) == found.flipped == len(found.flips)
    if has_labels:
        assert found.accuracy is not None
        was, now = ([label == given for (label, _), given in zip(r, classes, strict=True)] for r in (old, new))
        assert (found.accuracy.before, found.accuracy.after) == (sum(was) / len(TEXTS), sum(now) / len(TEXTS))
        pairs = list(zip(was, now, strict=True))
        assert (found.accuracy.fixed, found.accuracy.broken) == (pairs.count((False, True)), pairs.count((True, False)))
    else:
        assert found.accuracy is None


@pytest.mark.parametrize("second", ["after", "other_vocabulary"])
@pytest.mark.parametrize("top", [1, 999])
@pytest.mark.parametrize("all_tokens", [False, True])
def test_the_words_of_a_flip_and_the_bias_sum_to_the_change_of_margin(before, second, top, all_tokens, request):
    second = request.getfixturevalue(second)
    found = diff_models(before, second, TEXTS, top=top, all_tokens=all_tokens)
    assert found.flipped
    assert any(flip.pieces for flip in found.flips) != all_tokens
    old, new = readings_of(before), readings_of(second)
    for flip in found.flips:
        assert flip.text == TEXTS[flip.row]
        assert (flip.before, flip.after) == (old[flip.row][0], new[flip.row][0])
        assert found.flips_between[flip.before][flip.after] > 0
        assert flip.margin_before <= 0 <= flip.margin_after
        pieces = flip.pieces.contribution if flip.pieces else 0.0
        total = sum(word.difference for word in flip.words) + flip.other_words + pieces + flip.bias
        assert total == pytest.approx(flip.margin_after - flip.margin_before, abs=1e-4)
        values = [word.difference for word in flip.words]
        assert values == sorted(values, reverse=True)
        for word in flip.words:
            said, says = (r[flip.row][1].get(word.name) for r in (old, new))
            for value, given in ((word.before, said), (word.after, says)):
                expected = given[flip.after] - given[flip.before] if given else 0.0
                assert value == pytest.approx(expected, abs=1e-5)
            assert word.difference == pytest.approx(word.after - word.before, abs=1e-9)
    changes = [flip.margin_after - flip.margin_before for flip in found.flips]
    assert changes == sorted(changes, reverse=True)


def test_a_model_does_not_differ_from_itself(before):
    found = diff_models(before, before, TEXTS)
    assert (found.flipped, found.flips, found.only_before, found.only_after) == (0, (), 0, 0)
    assert all(own.gained == own.lost == () for own in found.classes)


def test_a_planted_change_is_the_one_that_is_found(before):
    """Between two models that differ in the vector of one word, only texts with that word can differ."""
    names = readings_of(before)
    word = next(name for _, words in names for name in words if sum(name in w for _, w in names) < len(TEXTS))
    (dimension,) = [i for i in range(len(before.dimensions)) if before.dimensions[i].name == word]
    changed = deepcopy(before)
    with torch.no_grad():
        changed.head().word_vectors[dimension] += 3.0
    found = diff_models(before, changed, TEXTS, max_flips=99)
    having = {row for row, (_, words) in enumerate(names) if word in words}
    assert having
    assert {flip.row for flip in found.flips} <= having
    assert any(change.name == word for own in found.classes for change in (*own.gained, *own.lost))


def test_of_equal_logits_each_model_names_the_label_that_it_has_first(before, after):
    undecided = deepcopy(after)
    with torch.no_grad():
        undecided.head().class_weights.zero_()
    found = diff_models(before, undecided, TEXTS, max_flips=99)
    assert found.flipped
    assert {flip.after for flip in found.flips} == {"positive"}


def test_only_the_greatest_flips_are_kept_but_all_are_counted(before, after):
    every, few = (diff_models(before, after, TEXTS * 2, max_flips=limit) for limit in (99, 2))
    assert len(every.flips) == every.flipped == few.flipped > 2
    assert few.flips == every.flips[:2]
    assert few.flips_between == every.flips_between


def test_results_are_plain_data(before, after):
    plain = json.loads(json.dumps(diff_models(before, after, TEXTS, [0] * len(TEXTS)).as_dict()))
    assert plain["texts"] == len(TEXTS)
    assert plain["accuracy"]["fixed"] >= 0


def test_words_are_matched_by_name():
    tables = [DimensionTable(Vocabulary(tokenizer)) for tokenizer in (tiny.wordpiece(), tiny.byte_bpe())]
    names, first, second = shared_names(*tables)
    assert len(set(names)) == len(names)
    for table, places in zip(tables, (first, second), strict=True):
        assert [names[i] for i in places.tolist()] == table.names(range(len(table)))
    assert len(names) < len(tables[0]) + len(tables[1])


def test_both_models_read_the_same_texts_of_a_generator(before, after):
    assert diff_models(before, after, (text for text in TEXTS)) == diff_models(before, after, TEXTS)


def test_what_cannot_be_compared_is_refused(before):
    other = LexicalSAE(ModelConfig(gate="drelu"), tiny.backbone(), {"classify": ["spam", "ham"]})
    with pytest.raises(ValueError, match="negative, neutral, positive and spam, ham"):
        diff_models(before, other, TEXTS)
    with pytest.raises(ValueError, match="give at least one"):
        diff_models(before, before, [])
    with pytest.raises(ValueError, match="text 0: label 7 is not the place"):
        diff_models(before, before, ["good"], [7])
