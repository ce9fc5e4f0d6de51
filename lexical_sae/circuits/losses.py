"""What we ask of a circuit, as pure functions: tensors in, one number out.

Each is a mean over samples, so a batch gives the mean of its parts (weighted by their sizes), except where the
docstring states that a loss reads the batch as a whole. Attributions come from `lexical_sae.mechanistic.attribution`.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from lexical_sae.circuits.trackers import AttributionCentroidTracker as AttributionCentroidTracker
from lexical_sae.circuits.trackers import FeatureFrequencyTracker as FeatureFrequencyTracker
from lexical_sae.models.circuit_state import CircuitState, circuit_mask
from lexical_sae.outputs.classes import completeness_kl as completeness_kl
from lexical_sae.outputs.classes import weighted_cross_entropy as weighted_cross_entropy
from lexical_sae.utils.precision import full_precision

Scalar = Float[Tensor, ""]


def keep_circuit(
    state: CircuitState, attr: Float[Tensor, "*batch V"], fraction: float, temperature: float
) -> Float[Tensor, "*batch V"]:
    """The sparse vector with only its circuit left: what a head decides from."""
    return state.sparse_vector * circuit_mask(attr, state.sparse_vector != 0, fraction, temperature)


def completeness_ce(masked_logits: Float[Tensor, "N C"], labels: Int[Tensor, " N"]) -> Scalar:
    """Cross-entropy of the gold labels when only the circuit is left."""
    return cross_entropy(masked_logits, labels)


@full_precision()
def separation_cosine(centroids: Float[Tensor, "C V"], seen: Bool[Tensor, " C"]) -> Scalar:
    """Mean cosine between the centroids of every two classes that were seen; 0 if there are not two.

    Zero for want of classes is not "perfectly separated": a metric must check `seen` first.
    """
    unit = normalize(centroids, dim=-1)
    pairs = (seen[:, None] & seen[None]).triu(1)
    return ((unit @ unit.T) * pairs).sum() / pairs.sum().clamp(min=1)


@full_precision()
def separation_contrastive(
    attr: Float[Tensor, "N K"],
    labels: Int[Tensor, " N"],
    centroids: Float[Tensor, "C V"],
    seen: Bool[Tensor, " C"],
    margin: Scalar | float,
    words: Int[Tensor, " K"] | None = None,
) -> Scalar:
    """How far each sample's circuit fails to be nearer, by a margin, to its own class than to the nearest other one.

    With `a = |attr| / norm` and unit centroids mu: `relu(max_{c != y} a.mu_c - a.mu_y + margin)`. Centroids are
    detached: only the sample's own attribution learns. Classes not yet seen are no negatives; a sample whose own class
    is not seen, that has no negative, or that has no active word, counts zero. With `words`, `attr` has columns for
    those words alone, and is zero at all others.
    """
    unit = normalize(centroids.detach(), dim=-1)
    similarity = normalize(attr.abs(), dim=-1) @ (unit if words is None else unit[:, words]).T
    own = similarity.gather(-1, labels[:, None]).squeeze(-1)
    is_negative = seen.expand_as(similarity).scatter(-1, labels[:, None], False)
    hardest = similarity.masked_fill(~is_negative, -1.0).amax(-1)
    counts = is_negative.any(-1) & seen[labels] & (attr != 0).any(-1)
    return ((hardest - own + margin).relu() * counts).mean()


def hoyer(attr: Float[Tensor, "N V"]) -> Scalar:
    """`1 - (sqrt(V) - L1/L2) / (sqrt(V) - 1)`: 0 if one word carries all, 1 if all words carry the same.

    A sample without active words counts zero.
    """
    root, l2 = attr.shape[-1] ** 0.5, attr.norm(dim=-1)
    ratio = torch.where(l2 > 0, attr.abs().sum(-1) / l2.clamp(min=1e-12), 1.0)
    return (1 - (root - ratio) / (root - 1)).mean()


def df_flops(sparse_vector: Float[Tensor, "N V"], document_frequency: Float[Tensor, " V"]) -> Scalar:
    """`|q|_1 / (|q|_2 sqrt(V))` with `q = df * mean|s|`: how evenly common words are used. Scale does not matter.

    Reads the batch as a whole: the mean is taken before the ratio.
    """
    q = document_frequency.detach() * sparse_vector.abs().mean(0)
    return q.sum() / (q.norm().clamp(min=1e-12) * q.numel() ** 0.5)


def l1_l0(sparse_vector: Float[Tensor, "N V"]) -> Scalar:
    """`(sum s + 0.1 sum(2 sigmoid(10 s) - 1)) / V`: the size of the activations, and a smooth count of them.

    Zero at s = 0: the plain `sigmoid(10 s)` would add a constant of one half per closed word.
    """
    s = sparse_vector.abs()
    # 2 sigmoid(10 s) - 1 == tanh(5 s)
    return (s + 0.1 * (5 * s).tanh()).mean()


def gate_l0(open_prob: Float[Tensor, "N V"]) -> Scalar:
    """Mean probability that a gate is open."""
    return open_prob.mean()


def frequency_penalty(
    thresholds: Float[Tensor, " V"], under_active: Bool[Tensor, " V"], lowest_threshold: float
) -> Scalar:
    """Mean over under-active words of `log(theta / lowest)`, zero below the lowest: opens words that hardly ever open.

    Reads no sample at all, only what the tracker remembers of earlier batches.
    """
    excess = (thresholds.clamp(min=lowest_threshold) / lowest_threshold).log()
    return (excess * under_active).sum() / under_active.sum().clamp(min=1)


def active_count(is_open: Bool[Tensor, "N V"]) -> Scalar:
    """Mean number of open words per text or position, exactly: what is reported and constrained; no gradient."""
    return is_open.sum(-1).to(torch.float32).mean()


def active_surplus(is_open: Bool[Tensor, "N V"], open_prob: Float[Tensor, "N V"], target: float) -> Scalar:
    """`mean count / target - 1`, zero where no more words are open than wanted; its gradient is the smooth count's.

    Counted exactly: with a wide kernel the smooth count of a large vocabulary is far above the target while next to
    nothing is open, and would close that too. Reads the batch as a whole.

    Example: 3 and 5 words open, target 2 -> 1
    """
    count, smooth = active_count(is_open), open_prob.sum(-1).mean()
    # The exact count alone decides whether there is a surplus: `count + smooth - smooth` rounds, and at the target
    # the gradient would be there on one machine and not on another.
    return (count > target) * (count / target - 1 + (smooth - smooth.detach()) / target)


def own_words(excess: Float[Tensor, "N V"], own: Bool[Tensor, "N V"], margin: float) -> Scalar:
    """How far a text's own words fall short of opening by a margin, mean over them; a text without any counts zero.

    `excess` is how far each logit lies above what opens the word.

    Example: excess 0.4 and 3, both own, margin 1 -> 0.3
    """
    rows, words = own.nonzero(as_tuple=True)
    shortfall = (margin - excess[rows, words]).relu()
    counts = rows.bincount(minlength=len(excess)).clamp(min=1)
    return (shortfall.new_zeros(len(excess)).index_add(0, rows, shortfall) / counts).mean()
