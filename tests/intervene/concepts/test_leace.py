import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.linear_model import LogisticRegression

from lexical_sae.intervene.concepts.leace import fit_leace, fit_mean_projection
from lexical_sae.intervene.concepts.removals import ZeroWords

COLUMNS = np.arange(12)


def texts(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sparse activations that tell a concept, with a column that is never active and one that is there twice."""
    rng = np.random.default_rng(seed)
    concept = (rng.random(300) < 0.4).astype(float)
    activations = rng.random((300, 12)) * (rng.random((300, 12)) < 0.4)
    activations[:, :3] += 0.5 * concept[:, None] * (rng.random((300, 3)) < 0.7)
    activations[:, 5] = 0
    activations[:, 7] = activations[:, 1]
    return activations, concept


def whitened(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The textbook form: whiten, project the concept's direction out, colour again."""
    mean, centered = x.mean(0), z - z.mean()
    values, vectors = np.linalg.eigh(np.cov(x.T, bias=True))
    kept = values > values.max() * 1e-12
    scale = np.where(kept, values.clip(min=1e-300), 1.0)
    root = (vectors * np.where(kept, scale**0.5, 0)) @ vectors.T
    inverse = (vectors * np.where(kept, scale**-0.5, 0)) @ vectors.T
    direction = inverse @ (x - mean).T @ centered
    direction /= np.linalg.norm(direction)
    return x - (x - mean) @ inverse @ np.outer(direction, direction) @ root


@pytest.mark.parametrize("seed", range(4))
def test_leace_is_the_textbook_form(seed):
    x, z = texts(seed)
    found = fit_leace(csr_array(x), z)(csr_array(x)).dense(COLUMNS)
    np.testing.assert_allclose(found, whitened(x, z), atol=1e-6)
    assert np.abs(found - x).max() > 0.05


@pytest.mark.parametrize("seed", range(2))
def test_leace_is_that_of_the_library(seed):
    library = pytest.importorskip("concept_erasure")
    torch = pytest.importorskip("torch")
    x, z = texts(seed)
    fitter = library.LeaceFitter(12, 1, dtype=torch.float64, shrinkage=False, constrain_cov_trace=False, svd_tol=1e-12)
    fitter.update(torch.tensor(x), torch.tensor(z[:, None]))
    expected = fitter.eraser(torch.tensor(x)).numpy()
    np.testing.assert_allclose(fit_leace(csr_array(x), z)(csr_array(x)).dense(COLUMNS), expected, atol=1e-6)


@pytest.mark.parametrize("fit", [fit_leace, fit_mean_projection])
def test_no_linear_probe_reads_what_was_erased_but_it_did_before(fit):
    x, z = texts(0)
    erased = fit(csr_array(x), z)(csr_array(x)).dense(COLUMNS)
    assert LogisticRegression().fit(x, z).score(x, z) > 0.75
    np.testing.assert_allclose((z - z.mean()) @ erased, 0, atol=1e-10)
    np.testing.assert_allclose(erased[z == 1].mean(0), erased[z == 0].mean(0), atol=1e-10)
    assert LogisticRegression().fit(erased, z).score(erased, z) <= max(z.mean(), 1 - z.mean()) + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_leace_changes_texts_less_than_the_means_do(seed):
    x, z = texts(seed)
    changes = [
        np.square(fit(csr_array(x), z)(csr_array(x)).dense(COLUMNS) - x).mean()
        for fit in (fit_leace, fit_mean_projection)
    ]
    assert changes[0] < changes[1]


@pytest.mark.parametrize("fit", [fit_leace, fit_mean_projection])
def test_new_texts_are_erased_by_what_was_fitted_and_words_never_seen_are_left_alone(fit):
    x, z = texts(0)
    new = np.zeros((2, 12))
    new[0, 5], new[1, 0] = 3.0, 3.0
    eraser = fit(csr_array(x), z)
    found = eraser(csr_array(new)).dense(COLUMNS)
    by_hand = new - ((new - x.mean(0)) @ eraser.readings) @ eraser.directions
    np.testing.assert_allclose(found, by_hand, atol=1e-12)
    assert found[0, 5] == 3.0


@pytest.mark.parametrize("fit", [fit_leace, fit_mean_projection])
def test_a_concept_that_is_the_same_everywhere_erases_nothing(fit):
    x, _ = texts(0)
    same = fit(csr_array(x), np.ones(300))(csr_array(x)).dense(COLUMNS)
    np.testing.assert_array_equal(same, x)


def test_fifty_thousand_words_take_little_memory():
    rng = np.random.default_rng(0)
    codes = csr_array(random_array((400, 50_000), density=0.001, rng=rng))
    concept = (np.asarray(codes[:, :5000].sum(axis=1)).ravel() > 2.4).astype(float)
    tracemalloc.start()
    eraser = fit_leace(codes, concept)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    erased = eraser(codes)
    columns = np.flatnonzero(eraser.directions[0])
    np.testing.assert_allclose((concept - concept.mean()) @ erased.dense(columns), 0, atol=1e-8)
    assert peak < 100e6


def test_zeroing_takes_the_words_out_and_nothing_else():
    x, _ = texts(1)
    found = ZeroWords.of([0, 7])(csr_array(x)).dense(COLUMNS)
    expected = x.copy()
    expected[:, [0, 7]] = 0
    np.testing.assert_array_equal(found, expected)
    assert x[:, 0].any()
