"""Vectors of words from texts, with and without labels."""

import numpy as np
import pytest
import scipy.sparse
import torch

from lexical_sae.data.batches import tokenize
from lexical_sae.training.literal_vectors import (
    _adding_up,
    _remainder,
    _with_moved_map,
    ridge_solution,
    vectors_of,
    word_vectors,
    words_in_texts,
)
from lexical_sae.training.tasks import Documents
from lexical_sae.training.unlabelled import UnlabelledTexts, WordsInTexts
from tests.literal import literal_model
from tests.tiny import BAD, GOOD, WORDS

FEW, LABELS = ["a good film", "a bad plot"], [0, 1]


def sentences(count, seed, length=6):
    """Texts of words drawn at random."""
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, length)) for _ in range(count)]


def documents(model, texts=FEW, labels=LABELS, unlabelled=()):
    more = UnlabelledTexts(unlabelled) if unlabelled else None
    return Documents(tokenize(model.tokenizer, texts, 16), torch.tensor(labels), unlabelled=more)


def read(model, texts):
    with torch.no_grad():
        return words_in_texts(model.eval(), tokenize(model.tokenizer, texts, 16), None)


def test_a_word_of_unlabelled_texts_alone_was_met_and_others_move_too():
    model = literal_model()
    without = word_vectors(model, documents(model), adds_up=True)
    found = word_vectors(model, documents(model, unlabelled=("the church was a wonderful church", "a good dog")))
    church, good = model.tokenizer.convert_tokens_to_ids(["church", "good"])
    assert without.counts[[church, good]].tolist() == [0, 1]
    assert found.counts[[church, good]].tolist() == [2, 2]
    assert not torch.allclose(found.vectors[good], without.vectors[good], atol=0.01)


def test_no_label_enters_with_unlabelled_texts_either():
    model, more = literal_model(), tuple(sentences(20, 0))
    first, second = (
        word_vectors(model, documents(model, labels=labels, unlabelled=more)) for labels in (LABELS, LABELS[::-1])
    )
    assert torch.equal(first.vectors, second.vectors)
    assert torch.equal(first.from_embedding, second.from_embedding)


def test_unlabelled_texts_tell_the_states_of_texts_that_nobody_read():
    model = literal_model()
    new, labelled = read(model, sentences(200, 1)), read(model, sentences(8, 2))

    def unexplained(vectors):
        left = _remainder(vectors.vectors, new)
        nothing = _remainder(torch.zeros_like(vectors.vectors), new)
        # Vectors are scaled: the best multiple of them counts.
        said = nothing - left
        return (
            np.square(nothing - said * (nothing * said).sum() / np.square(said).sum()).sum() / np.square(nothing).sum()
        )

    alone = unexplained(vectors_of(model, labelled))
    together = unexplained(vectors_of(model, labelled, read(model, sentences(300, 3))))
    assert together < 0.8 * alone


def test_the_map_is_moved_for_words_never_met_too_and_tells_the_texts_states_better():
    model = literal_model()
    texts = read(model, GOOD + BAD)
    plain = vectors_of(model, texts)
    moved = vectors_of(model, texts, adds_up=True)
    embeddings = model.literal.embeddings(model.backbone.input_embeddings()).double()
    church = model.tokenizer.convert_tokens_to_ids("church")
    expected = embeddings[church] @ moved.from_embedding[:-1] + moved.from_embedding[-1]
    torch.testing.assert_close(moved.vectors[church], expected)
    assert not torch.allclose(moved.vectors[church], plain.vectors[church], atol=0.01)
    unscaled = _with_moved_map(plain, embeddings, texts)
    assert (
        np.square(_remainder(unscaled.vectors, texts)).sum() < 0.9 * np.square(_remainder(plain.vectors, texts)).sum()
    )


def planted(texts=400, words=12, width=3, seed=0):
    """Texts whose states are the sums of their words' true vectors."""
    generator = np.random.default_rng(seed)
    activations = scipy.sparse.csr_matrix((generator.random((texts, words)) < 0.3).astype(float))
    true = generator.normal(size=(words, width))
    states = torch.from_numpy(activations @ true).float()
    counts = torch.from_numpy(np.asarray(activations.sum(0)).ravel()).long()
    sixteen = torch.full((texts,), 1)
    # Of one token: the state that a table has to sum to is four times the mean.
    return WordsInTexts(torch.zeros(words, width), counts, activations, states / 4, sixteen), torch.from_numpy(true)


def test_vectors_add_up_to_the_states_of_texts():
    texts, true = planted()
    found = _adding_up(torch.zeros_like(true), texts)
    # Held as by ten texts, of some 84 in which a word stands without the others.
    assert (found - true).norm() < 0.25 * true.norm()
    assert torch.cosine_similarity(found, true, dim=-1).min() > 0.97
    once = texts.activations[:1]
    rare = WordsInTexts(texts.sums, texts.counts, once, texts.means[:1], texts.tokens[:1])
    assert torch.equal(_adding_up(true, rare), true), "of one text nothing is left after centring"


@pytest.mark.parametrize("held", [0.5, 10.0])
def test_conjugate_gradients_find_the_ridge_solution(held):
    generator = np.random.default_rng(0)
    A = scipy.sparse.csr_matrix(generator.random((60, 25)) * (generator.random((60, 25)) < 0.2))
    left = generator.normal(size=(60, 4))
    left -= left.mean(0)
    dense = A.toarray() - A.toarray().mean(0)
    expected = np.linalg.solve(dense.T @ dense + held * np.eye(25), dense.T @ left)
    np.testing.assert_allclose(ridge_solution(A, left, held), expected, atol=2e-3 * np.abs(expected).max())
    assert not ridge_solution(A, np.zeros((60, 4)), held).any()


def test_unlabelled_texts_are_read_once_for_models_with_other_words():
    first, second = literal_model(("badly",)), literal_model(("badly", "boringly", "filmed"))
    texts, reads = UnlabelledTexts(("a badly plot badly", "good film")), []

    def reading(model):
        return lambda tokenized: reads.append(1) or words_in_texts(model.eval(), tokenized, None)

    with torch.no_grad():
        texts.words(first, reading(first))
        moved = texts.words(second, reading(second))
        expected = UnlabelledTexts(texts.texts).words(second, reading(second))
    assert len(reads) == 2
    torch.testing.assert_close(moved.sums, expected.sums)
    assert torch.equal(moved.counts, expected.counts)
    assert (moved.activations != expected.activations).nnz == 0
    (badly,) = second.dimensions.find("badly")
    assert moved.counts[badly] == 2
