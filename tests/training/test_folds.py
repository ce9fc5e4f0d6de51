import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.batches import TokenizedTexts, tokenize
from lexical_sae.training.folds import FOLDS, FoldedDocuments, containing_texts, random_folds
from lexical_sae.training.tasks import Documents
from tests import tiny

CLS, SEP = 3, 4


def framed(texts):
    return [[CLS, *ids, SEP] for ids in texts]


def in_folds(count=40, seed=0):
    generator = np.random.default_rng(seed)
    texts = framed(generator.integers(6, 40, generator.integers(1, 9)).tolist() for _ in range(count))
    tokens = TokenizedTexts(tuple(texts), (0,) * count, pad_id=0)
    return FoldedDocuments.of(Documents(tokens, torch.arange(count) % 3), seed)


def contains(longer, shorter):
    size = len(shorter)
    return any(longer[i : i + size] == shorter for i in range(len(longer) - size + 1))


def test_a_text_goes_with_one_that_contains_it_as_written():
    texts = ["good film", "a good film", "a bad film", "film good", "good", "good film", "church"]
    assert containing_texts(tokenize(tiny.wordpiece(), texts, 16).ids) == [1, 1, 2, 3, 1, 1, 6]


def test_numbers_of_tokens_are_compared_whole():
    assert containing_texts(framed([[11, 22, 3], [1, 22, 3], [11, 2]])) == [0, 1, 2]


TEXTS = st.lists(st.lists(st.integers(6, 9), max_size=6), min_size=1, max_size=12)


@given(TEXTS)
def test_every_text_that_another_contains_has_one_that_is_in_no_other(texts):
    found = containing_texts(framed(texts))
    for row, whole in enumerate(found):
        assert found[whole] == whole
        assert contains(texts[whole], texts[row])
        others = [i for i in range(len(texts)) if i != row and texts[row] and contains(texts[i], texts[row])]
        assert whole != row or all(found[i] == row for i in others)


@given(TEXTS, st.integers(0, 5))
def test_texts_that_contain_one_another_share_a_fold_and_none_is_empty_if_there_are_enough(texts, seed):
    folds = random_folds(framed(texts), seed, np.zeros(len(texts), dtype=int))
    groups = containing_texts(framed(texts))
    assert all(folds[row] == folds[whole] for row, whole in enumerate(groups))
    assert len(folds.unique()) == min(FOLDS, len(set(groups))) or len(set(groups)) > FOLDS
    if len(set(groups)) >= FOLDS:
        assert folds.unique().tolist() == list(range(FOLDS))


def test_folds_of_many_texts_are_about_equal_and_follow_from_the_seed():
    texts = framed([[i] for i in range(6, 1006)])
    folds = random_folds(texts, 1, np.zeros(1000, dtype=int))
    assert torch.equal(folds, random_folds(texts, 1, np.zeros(1000, dtype=int)))
    assert not torch.equal(folds, random_folds(texts, 2, np.zeros(1000, dtype=int)))
    assert folds.bincount().min() > 150


def test_labels_are_dealt_out_in_proportion():
    texts = framed([[i] for i in range(6, 46)])
    labels = np.arange(40) % 2
    folds = random_folds(texts, 1, labels).numpy()
    assert [np.bincount(labels[folds == k]).tolist() for k in range(FOLDS)] == [[4, 4]] * FOLDS


def test_texts_that_cannot_be_parted_are_refused():
    tokens = tokenize(tiny.wordpiece(), ["a good film", "good film"], 16)
    with pytest.raises(ValueError, match="the 2 given cannot be parted; give at least two texts"):
        FoldedDocuments.of(Documents(tokens, torch.tensor([0, 1])), seed=0)


def test_every_batch_is_of_one_fold_and_an_epoch_has_every_text_once():
    task = in_folds()
    batches = task.batches(4, np.random.default_rng(0), 0.0)
    assert sorted(row for batch in batches for row in batch) == list(range(40))
    assert max(map(len, batches)) == 4
    order = [{int(task.folds[row]) for row in batch} for batch in batches]
    assert all(len(folds) == 1 for folds in order)
    # Folds take turns: the last steps of an epoch are not those of one of them.
    assert order != sorted(order, key=min)
    assert len(batches) == len(task.batches(4, np.random.default_rng(9), 0.0))
    assert batches != task.batches(4, np.random.default_rng(9), 0.0)


def test_short_texts_come_first_where_it_is_asked():
    task = in_folds()
    batches = task.batches(4, np.random.default_rng(0), 1.0)
    lengths = [np.mean([len(task.texts.ids[row]) for row in batch]) for batch in batches]
    assert lengths == sorted(lengths)


def test_rows_that_are_alike_are_those_of_one_fold():
    task = in_folds()
    groups = task.alike(range(40))
    assert sorted(row for rows in groups for row in rows) == list(range(40))
    assert [{int(task.folds[row]) for row in rows} for rows in groups] == [{k} for k in range(FOLDS)]
    assert task.heads == tuple(f"classify_without_{k}" for k in range(FOLDS))


def test_the_labels_of_a_text_are_those_of_its_row():
    task = in_folds()
    assert torch.equal(task.labels, torch.arange(40) % 3)
    assert list(task.content()) == list(Documents(task.texts, task.labels).content())
