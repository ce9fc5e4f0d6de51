"""Linear concept erasure on the sparse layer: LEACE, and the projection of the means.

LEACE is the smallest change after which no linear probe reads the concept. With X the centred words, Z the centred
concept and S = cov(X, Z), it is

    x - S (B' S)^-1 B' (x - mean),        B = pinv(X) Z

so nothing as large as V x V is needed: B is the least-squares solution of smallest norm, found by iteration on the
sparse words. Words that no text has are zero in S and in B, so only the support is computed.
After the change cov(x, Z) is zero *whatever* B is, as long as B' S can be inverted; iteration only has to be exact
for the change to be the smallest.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.sparse.linalg import LinearOperator, lsmr

from lexical_sae.intervene.concepts.removals import Erasure
from lexical_sae.intervene.concepts.word_matrix import Codes, texts_with

REFERENCE = "Belrose et al. 2023, arXiv:2306.03819"
TOLERANCE = 1e-13
MAX_ITERATIONS = 5_000


def fit_leace(codes: Codes, concept: Float[ndarray, " N"]) -> Erasure:
    """The LEACE eraser of a concept.

    Args:
        codes: Activations of the texts to fit on.
        concept: One number per text, such as 0 or 1.

    Returns:
        A removal that can be applied to other texts.

    Example: `erased = fit_leace(train_codes, is_about_women)(test_codes)`
    """
    words, support = _support(codes)
    mean, covariance, centered = _moments(words, concept)
    solution = lsmr(_Centered(words, mean), centered, atol=TOLERANCE, btol=TOLERANCE, conlim=0, maxiter=MAX_ITERATIONS)[
        0
    ]
    scale = float(solution @ covariance)
    # Nothing linear to erase: the concept is constant, or no word correlates with it.
    direction = (
        covariance / scale
        if scale > np.finfo(float).eps * float(centered @ centered) / len(centered)
        else 0.0 * covariance
    )
    return _erasure(codes.shape[1], support, mean, solution, direction)


def fit_mean_projection(codes: Codes, concept: Float[ndarray, " N"]) -> Erasure:
    """The orthogonal projection that makes the two class means equal.

    It also prevents linear probes from reading the concept, but changes texts more than LEACE does.
    """
    words, support = _support(codes)
    mean, covariance, _ = _moments(words, concept)
    length = float(covariance @ covariance)
    return _erasure(codes.shape[1], support, mean, covariance, covariance / length if length else covariance)


def _support(codes: Codes) -> tuple[Codes, ndarray]:
    support = np.flatnonzero(texts_with(codes))
    return codes[:, support].astype(np.float64), support


def _moments(
    words: Codes, concept: Float[ndarray, " N"]
) -> tuple[Float[ndarray, " K"], Float[ndarray, " K"], Float[ndarray, " N"]]:
    """Mean of the words, their covariance with the concept, and the centred concept."""
    rows = words.shape[0]
    centered = concept - concept.mean()
    mean = np.asarray(words.sum(axis=0)).ravel() / rows
    # The centred concept sums to zero, so the words need not be centred here.
    return mean, words.T @ centered / rows, centered


class _Centered(LinearOperator):
    """`words - mean` as an operator: written out it would be dense."""

    def __init__(self, words: Codes, mean: Float[ndarray, " K"]) -> None:
        super().__init__(np.dtype(np.float64), words.shape)
        self.words, self.transposed, self.mean = words, words.T.tocsr(), mean

    def _matvec(self, x: ndarray) -> ndarray:
        return self.words @ x - self.mean @ x

    def _rmatvec(self, x: ndarray) -> ndarray:
        return self.transposed @ x - self.mean * x.sum()


def _erasure(size: int, support: ndarray, mean: ndarray, reading: ndarray, direction: ndarray) -> Erasure:
    """The eraser in all V dimensions, zero outside the support."""
    wide = np.zeros((3, size))
    wide[:, support] = np.stack([mean, reading, direction])
    return Erasure(wide[0], wide[1][:, None], wide[2][None])
