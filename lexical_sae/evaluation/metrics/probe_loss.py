"""How much of a class can be read from one word alone?

For each class, every active word gets a logistic probe of its own, `p = sigmoid(a s_j + b)`; the best word is chosen on
one half of the texts and its loss is reported on the other, beside the loss of knowing only how frequent the class is.
Halves are sampled at random within each class, so both have texts of every class that has two. A low loss
means that the class has a word of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import Subject, sampled
from lexical_sae.evaluation.text_sample import TextSample, join_codes
from lexical_sae.explanation import PIECE
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.report.explanation.removal import pieces_name

REFERENCE = "Gao et al. 2024, arXiv:2406.04093"
NEWTON_STEPS, HALVINGS = 30, 30
CONVERGED, ROUNDING = 1e-9, 1e-12
"""A step so small ends the search; a loss that rises by so little has not risen."""
RIDGE = 1e-2
"""Per text of a half: keeps the probe of a word that separates perfectly at a finite slope."""
FEWEST_TEXTS = 20


@dataclass(frozen=True)
class ProbedClass:
    """The word that tells most of one class."""

    label: str
    word: str
    loss: float
    """Binary cross-entropy of its probe on texts that did not choose it, in nats."""
    base_loss: float
    """The same of the class's frequency alone."""


@dataclass(frozen=True)
class ProbeResult:
    """The best probe of every class."""

    texts: int
    """On which losses are reported."""
    classes: tuple[ProbedClass, ...]
    loss: float
    """Mean over classes."""
    base_loss: float
    gain: Interval | None = None
    """By how much the loss is below that of the frequencies, paired by text; older files lack it."""


def compute_probe_loss(
    sample: TextSample, labels: Sequence[str], name_of: Callable[[int], str], seed: int = 0
) -> ProbeResult | None:
    """The best single-word probe of each class; None with too few texts, or of one class alone.

    With two classes one probe serves both, and the second class is shown.
    """
    if len(sample.rows) < FEWEST_TEXTS:
        return None
    chosen, reported = _halves(sample)
    (fit, fit_classes), (held, held_classes) = _part(sample, chosen), _part(sample, reported)
    tasks = [1] if len(labels) == 2 else range(len(labels))
    found: list[ProbedClass] = []
    gains: list[Float[Tensor, " N"]] = []
    for label in tasks:
        positive, unseen = fit_classes == label, held_classes == label
        if not 0 < int(positive.sum()) < len(positive):
            continue
        slope, bias = fit_word_probes(fit, positive)
        word = int(probe_losses(fit, positive, slope, bias).argmin())
        activation = slope.new_zeros(len(held)).index_add_(0, held.rows, held.values.double() * (held.ids == word))
        frequency = positive.double().mean().logit().expand(len(held))
        loss, base = _losses(slope[word] * activation + bias[word], unseen), _losses(frequency, unseen)
        found.append(ProbedClass(labels[label], name_of(word), float(loss.mean()), float(base.mean())))
        gains.append(base - loss)
    if not found:
        return None
    means = BootstrapMeans(seed=seed)
    means.update([sample.rows[i] for i in reported], {"gain": torch.stack(gains).mean(0)})
    losses, bases = [one.loss for one in found], [one.base_loss for one in found]
    return ProbeResult(len(reported), tuple(found), sum(losses) / len(found), sum(bases) / len(found), means["gain"])


def fit_word_probes(code: SparseCode, positive: Bool[Tensor, " N"]) -> tuple[Float[Tensor, " V"], Float[Tensor, " V"]]:
    """Slope and bias of every word's probe by Newton's method, all words at once.

    Texts without a word share one prediction, `sigmoid(b)`, so only active entries are ever looked at: memory is that
    of the code. The slope carries a small ridge penalty; the bias carries none.
    """
    texts, word = len(code), code.ids
    values, labels = code.values.double(), positive.double()
    rate = labels.mean()
    slope = values.new_zeros(code.size)
    bias = torch.full_like(slope, float((rate / (1 - rate)).log()))
    total, silent, silent_positive = _silent(code, labels)

    def penalised(slope: Float[Tensor, " V"], bias: Float[Tensor, " V"]) -> Float[Tensor, " V"]:
        return probe_losses(code, positive, slope, bias) + RIDGE / 2 * slope.square()

    loss = penalised(slope, bias)
    for _ in range(NEWTON_STEPS):
        p, p0 = (slope[word] * values + bias[word]).sigmoid(), bias.sigmoid()
        residual, weight = p - labels[code.rows], p * (1 - p)
        g_bias = total(residual) + silent * p0 - silent_positive
        g_slope = total(residual * values) + RIDGE * texts * slope
        h_bias = total(weight) + silent * p0 * (1 - p0) + 1e-9
        h_both, h_slope = total(weight * values), total(weight * values.square()) + RIDGE * texts
        determinant = h_bias * h_slope - h_both.square()
        down_bias = (h_slope * g_bias - h_both * g_slope) / determinant
        down_slope = (h_bias * g_slope - h_both * g_bias) / determinant
        if max(down_bias.abs().max(), down_slope.abs().max()) < CONVERGED:
            break
        # A full step overshoots where a probe is nearly certain, the further the stronger its word: each word's own
        # is halved until its loss does not rise.
        length = torch.ones_like(slope)
        tried = penalised(slope - down_slope, bias - down_bias)
        for _ in range(HALVINGS):
            if (tried <= loss + ROUNDING).all():
                break
            length = length.where(tried <= loss + ROUNDING, length / 2)
            tried = penalised(slope - length * down_slope, bias - length * down_bias)
        slope, bias, loss = slope - length * down_slope, bias - length * down_bias, tried
    return slope, bias


def probe_losses(
    code: SparseCode, positive: Bool[Tensor, " N"], slope: Float[Tensor, " V"], bias: Float[Tensor, " V"]
) -> Float[Tensor, " V"]:
    """Mean binary cross-entropy of every word's probe over the texts."""
    labels = positive.double()
    total, silent, silent_positive = _silent(code, labels)
    odds = slope[code.ids] * code.values.double() + bias[code.ids]
    spoken = total(softplus(odds) - labels[code.rows] * odds)
    return (spoken + silent * softplus(bias) - silent_positive * bias) / len(code)


def _silent(
    code: SparseCode, labels: Float[Tensor, " N"]
) -> tuple[Callable[[Tensor], Tensor], Float[Tensor, " V"], Float[Tensor, " V"]]:
    """How to sum entries by word, and for every word the texts that lack it: all of them, and the positive ones."""

    def total(entries: Float[Tensor, " K"]) -> Float[Tensor, " V"]:
        return entries.new_zeros(code.size).index_add_(0, code.ids, entries)

    own = labels[code.rows]
    return total, len(code) - total(torch.ones_like(own)), labels.sum() - total(own)


def _losses(odds: Float[Tensor, " N"], positive: Bool[Tensor, " N"]) -> Float[Tensor, " N"]:
    """Binary cross-entropy of each text, given its log-odds."""
    return softplus(odds) - positive.double() * odds


def _halves(sample: TextSample) -> tuple[list[int], list[int]]:
    """Places in the sample: every other text in random order, class by class."""
    order = sorted(range(len(sample.rows)), key=lambda i: (int(sample.classes[i]), sample.draws[i]))
    return order[::2], order[1::2]


def _part(sample: TextSample, places: Sequence[int]) -> tuple[SparseCode, Int[Tensor, " N"]]:
    """Some texts of the sample, with their classes."""
    parts = [(sample.code.ids[here], sample.code.values[here]) for here in map(sample.code.text, places)]
    return join_codes(parts, sample.code.size), sample.classes[list(places)]


def _measure(of: Subject) -> ProbeResult | None:
    def name_of(dimension: int) -> str:
        found = of.model.dimensions[dimension]
        return pieces_name(1) if found.kind == PIECE else found.name

    return compute_probe_loss(of.sample, of.labels, name_of, of.seed)


PROBES = sampled("probes", ProbeResult | None, _measure)
