import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from lexical_sae.circuits.losses import completeness_kl, weighted_cross_entropy
from lexical_sae.data import TextSplit
from lexical_sae.data.batches import tokenize
from lexical_sae.models.assembly import add_heads
from lexical_sae.training.folds import FoldedDocuments
from lexical_sae.training.table_choice import Penalties
from lexical_sae.training.tasks import Documents
from lexical_sae.training.word_table import TableFitter, WordVectors
from tests.literal import literal_model
from tests.tiny import BAD, GOOD

GENERATOR = np.random.default_rng(0)
COUNTS = GENERATOR.poisson(0.4, (30, 12)).astype(float)
LABELS = GENERATOR.integers(0, 3, 30)
VECTORS = torch.from_numpy(GENERATOR.normal(size=(12, 4)))
TIMES = GENERATOR.integers(1, 4, 30)
PENALTIES = Penalties(1e-2, 3e-2)


def fitter(rows, weights=None):
    known = WordVectors(VECTORS, torch.zeros(3, 4, dtype=torch.float64), torch.zeros(12, dtype=torch.long))
    given = None if weights is None else torch.tensor(weights, dtype=torch.float32)
    return TableFitter(csr_matrix(COUNTS[rows]), torch.from_numpy(LABELS[rows]), 3, known, given)


def test_a_table_of_weighted_texts_is_that_of_texts_given_as_often():
    weighted, repeated = fitter(np.arange(30), TIMES), fitter(np.repeat(np.arange(30), TIMES))
    # Words that are frequent cost more: that is of the texts, not of their weights.
    repeated.rarity, repeated.own, repeated.met = weighted.rarity, None, weighted.met
    rows = np.repeat(np.arange(30), TIMES)
    repeated.own = weighted.own.tocsr()[rows]
    ours, theirs = weighted.fit(PENALTIES), repeated.fit(PENALTIES)
    torch.testing.assert_close(ours.rows, theirs.rows, atol=1e-3, rtol=0)


def test_equal_weights_are_no_weights():
    plain, weighted = fitter(np.arange(30)), fitter(np.arange(30), np.full(30, 2.0))
    torch.testing.assert_close(plain.fit(PENALTIES).rows, weighted.fit(PENALTIES).rows, atol=1e-4, rtol=0)


def test_losses_of_weighted_samples_are_those_of_samples_given_as_often():
    logits, others, labels = torch.randn(30, 3), torch.randn(30, 3), torch.from_numpy(LABELS)
    times = torch.from_numpy(TIMES)
    shares = times / times.float().mean()
    again = logits.repeat_interleave(times, 0), labels.repeat_interleave(times)
    torch.testing.assert_close(
        weighted_cross_entropy(logits, labels, shares, 0.1), weighted_cross_entropy(*again, None, 0.1)
    )
    expected = completeness_kl(again[0], others.repeat_interleave(times, 0))
    torch.testing.assert_close(completeness_kl(logits, others, shares), expected)


def test_weights_go_with_their_texts_through_splits_and_folds():
    split = TextSplit(tuple(GOOD + BAD), (0,) * 4 + (1,) * 4, weights=tuple(map(float, range(8)))).take([5, 0])
    assert split.weights == (5.0, 0.0)
    with pytest.raises(ValueError, match="weights has 1 entries for 2 texts"):
        TextSplit(("a", "b"), (0, 1), weights=(1.0,))
    model = literal_model()
    texts = tokenize(model.tokenizer, GOOD + BAD, 16)
    documents = Documents(texts, torch.tensor([0] * 4 + [1] * 4), num_made=2, weights=torch.arange(8.0))
    folded = FoldedDocuments.of(documents, 0)
    assert folded.given().weights.tolist() == [0, 1, 2, 3, 4, 5]
    add_heads(model, folded.heads, like="classify")
    (rows, *_) = folded.alike(range(8))
    encoded = folded.encode(model, rows)
    assert sorted(encoded.weights.tolist()) == sorted(map(float, rows))
    # And so does the note of which were made by rule.
    assert [
        row for row, is_made in zip(encoded.weights.tolist(), encoded.is_made.tolist(), strict=True) if is_made
    ] == [row for row in encoded.weights.tolist() if row >= 6]


def test_data_with_other_weights_is_other_data():
    texts, labels = tokenize(literal_model().tokenizer, GOOD, 16), torch.zeros(4, dtype=torch.long)
    contents = [b"".join(Documents(texts, labels, weights=w).content()) for w in (None, torch.ones(4), torch.zeros(4))]
    assert len(set(contents)) == 3
