"""Does masking words make out-of-distribution inputs for the head?

"Zeroing a word causes no shift of distribution" is a claim. What the head sees of a text is its hidden layer. Its usual
place and spread are taken from texts as the head was trained on them, random masking included where the model was
trained with it. A text counts as *outside* when its (Mahalanobis) distance from that place is beyond what 95 % of such
texts have, on either side: too far out, or suspiciously near the middle. So 5 % is no shift.

Texts are dealt out at random: a third gives place and spread, a third the distances that are usual, a third is tried.
The order of a corpus, often that of its labels, does not matter, and texts as in training are tried like all others.

Two controls say what the check can see. The words of two texts at once are too much, and are seen. Activations
scattered over words of other texts are nonsense of the usual size; where these pass, the check sees the size and
direction of the hidden layer, but not whether words belong together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from sklearn.covariance import LedoitWolf
from torch import Tensor

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.circuit_words import select_circuit
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import Subject, sampled
from lexical_sae.mechanistic.exact import WordSets
from lexical_sae.models.sparse_code import SparseCode

REFERENCE = "Madsen et al. 2023, arXiv:2310.07819"
MASKED_FRACTIONS = (0.1, 0.2, 0.5)
INSIDE = 0.95
FEWEST_TEXTS = 120
"""Below this the third that sets the bounds is too small: of 39 texts the outermost two stand for 5 %."""

MaskingRange = tuple[float, float]
"""Smallest and largest share of words that training masked."""


@dataclass(frozen=True)
class MaskedTexts:
    """Share of texts outside the usual when a share of their words is gone."""

    fraction: float
    strongest: Interval
    random: Interval


@dataclass(frozen=True)
class MaskingResult:
    """Texts with words taken away beside whole texts; all figures are shares of texts outside the usual."""

    texts: int
    """That were tried."""
    trained_with_masking: bool
    as_trained: Interval
    """Texts as in training, of which none set the bounds: 5 % but for the noise of both thirds."""
    whole: Interval
    masked: tuple[MaskedTexts, ...]
    merged: Interval
    """The words of two texts at once, paired at random."""
    scattered: Interval
    """The same activations on words of other texts."""


def check_masking(
    code: SparseCode,
    word_vectors: Float[Tensor, "V H"],
    scores: Float[Tensor, " K"],
    trained: MaskingRange | None,
    fractions: Sequence[float] = MASKED_FRACTIONS,
    seed: int = 0,
) -> MaskingResult | None:
    """How usual texts without some of their words look to the head; None with too few texts to tell.

    `scores` say how much each active word matters, `trained` how much random masking training used.
    """
    if len(code) < FEWEST_TEXTS:
        return None
    generator = np.random.default_rng([seed, 4])
    fits, bounds, tried = np.array_split(generator.permutation(len(code)), 3)

    def hidden(some: SparseCode) -> Float[ndarray, "N H"]:
        return some.weighted_sum(word_vectors).double().numpy()

    def at_random() -> Float[Tensor, " K"]:
        return torch.from_numpy(generator.random(len(code.ids))).to(code.values)

    usual, whole = hidden(_masked_as_trained(code, trained, generator)), hidden(code)
    # Shrunk towards a sphere: a head has more hidden units than a small sample has texts to tell their spread.
    fitted = LedoitWolf().fit(usual[fits])
    ends = (1 - INSIDE) / 2, (1 + INSIDE) / 2
    # Weibull's quantiles: that share of texts other than those that set the bounds is expected beyond them.
    low, high = np.quantile(fitted.mahalanobis(usual[bounds]), ends, method="weibull")
    means = BootstrapMeans(seed=seed)

    def outside(name: str, vectors: Float[ndarray, "N H"]) -> None:
        distance = fitted.mahalanobis(vectors)
        means.update(tried.tolist(), {name: torch.from_numpy((distance < low) | (distance > high))})

    outside("as trained", usual[tried])
    outside("whole", whole[tried])
    # The hidden layer is linear in the words: two texts at once are two hidden layers added up.
    outside("merged", whole[tried] + whole[np.roll(tried, 1)])
    outside("scattered", hidden(replace(code, ids=code.ids[generator.permutation(len(code.ids))]))[tried])
    for fraction in fractions:
        for name, order in (("strongest", scores), ("random", at_random())):
            outside(f"{name} {fraction}", hidden(_without(code, select_circuit(code, order, fraction)))[tried])
    masked = tuple(MaskedTexts(f, means.share(f"strongest {f}"), means.share(f"random {f}")) for f in fractions)
    return MaskingResult(
        len(tried),
        trained is not None,
        means.share("as trained"),
        means.share("whole"),
        masked,
        means.share("merged"),
        means.share("scattered"),
    )


def _without(code: SparseCode, chosen: Bool[Tensor, " K"]) -> SparseCode:
    return WordSets.together(code, chosen).kept(code)


def _masked_as_trained(code: SparseCode, trained: MaskingRange | None, generator: np.random.Generator) -> SparseCode:
    """Each word gone with a probability drawn per text from the range, as in training."""
    if trained is None:
        return code
    rates = torch.from_numpy(generator.uniform(*trained, len(code)))
    return _without(code, torch.from_numpy(generator.random(len(code.ids))) < rates[code.rows])


def _measure(of: Subject) -> MaskingResult | None:
    masking, sample = of.model.config.masking, of.sample
    trained = None if masking is None else (masking.low, masking.high)
    return check_masking(sample.code, sample.word_vectors, sample.contributions, trained, seed=of.seed)


OUT_OF_DISTRIBUTION = sampled("masking", MaskingResult | None, _measure)
