"""The effect of removing words on every logit, exactly; and what direct attribution predicts.

For a head of two ReLU layers a removal is a subtraction in the hidden layer: with `h` the hidden units of the text,

    effect_c = sum_k W2[c, k] (relu(h_k) - relu(h_k - sum_j s_j W1[k, j]))

over the words j of the set, so R removals cost one [R, H] operation. Any other head reads what is left of the text.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.mechanistic.exact.forms import Head, ReluLayers, relu_layers
from lexical_sae.mechanistic.exact.word_sets import WordSets
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.utils.precision import full_precision

NUMBERS_AT_ONCE = 2**22
"""Largest intermediate tensor, in numbers; sets are worked on in parts that stay below it."""


@dataclass(frozen=True)
class ClassEffects:
    """Changes of logits, one per set of words and class; positive where the words contribute to the class."""

    rows: Int[Tensor, " R"]
    """The text that each set belongs to."""
    per_class: Float[Tensor, "R C"]
    """Logit with the words minus logit without them."""

    def towards(self, direction: Float[Tensor, "B C"]) -> Float[Tensor, " R"]:
        """The change in a direction over the classes, given per text."""
        return (self.per_class * direction[self.rows]).sum(-1)

    def logits_without(self, logits: Float[Tensor, "B C"]) -> Float[Tensor, "R C"]:
        """The logits that are left, from those of the whole texts."""
        return logits[self.rows] - self.per_class


@dataclass(frozen=True)
class Removal:
    """What taking sets of words away does."""

    effects: ClassEffects
    region_changed: Bool[Tensor, " R"]
    """Whether a hidden unit switched, so that direct attribution need not hold. A unit within rounding of zero may
    count either way; a head that is not piecewise linear has new weights after every removal."""


@torch.no_grad()
@full_precision()
def remove(head: Head, state: SparseCircuitState, sets: WordSets) -> Removal:
    """The exact effect of taking each set of words away, for every class.

    Example: the five strongest words of each text at once, for the predicted class against the mean of all:
    `remove(head, state, WordSets.together(code, strongest(code, scores, 5))).effects.towards(direction)`
    """
    layers = relu_layers(head)
    if getattr(head, "is_linear", False):
        # The rows of the words go with them, and there is no unit to switch. That is `predict_removal` without its
        # product with the identity, which with many classes would cost more than all else.
        lost = sets.removed(state.code).weighted_sum(state.word_vectors)
        return Removal(ClassEffects(sets.rows, lost), torch.zeros_like(sets.rows, dtype=torch.bool))
    take_away = _by_reading(head, state) if layers is None else _by_subtraction(layers, state)
    effects, changed = zip(*(take_away(part) for part in _in_parts(state, sets)), strict=True)
    return Removal(ClassEffects(sets.rows, torch.cat(effects)), torch.cat(changed))


def leave_one_out(head: Head, state: SparseCircuitState) -> Removal:
    """The exact effect of taking away each active word alone, in the order of the code."""
    return remove(head, state, WordSets.singly(state.code, torch.ones_like(state.code.ids, dtype=torch.bool)))


@torch.no_grad()
@full_precision()
def predict_removal(state: SparseCircuitState, sets: WordSets) -> ClassEffects:
    """What direct attribution predicts for each removal: the sum of its words' contributions, as if no unit switched.

    Beside `remove` it shows how often direct attribution is wrong about an effect's sign, or about the class left.
    Of `along_path(head, state)` it sums path attributions instead.
    """
    parts = []
    for part in _in_parts(state, sets):
        lost = part.removed(state.code).weighted_sum(state.word_vectors)
        parts.append((state.readout[part.rows] @ lost[..., None]).squeeze(-1))
    return ClassEffects(sets.rows, torch.cat(parts))


def _in_parts(state: SparseCircuitState, sets: WordSets) -> Iterator[WordSets]:
    """The sets, as many at a time as keep [sets, C, H] small."""
    num_classes, width = state.readout.shape[-2:]
    return sets.split(max(1, NUMBERS_AT_ONCE // (num_classes * width)))


TakeAway = Callable[[WordSets], tuple[Float[Tensor, "R C"], Bool[Tensor, " R"]]]


def _by_subtraction(layers: ReluLayers, state: SparseCircuitState) -> TakeAway:
    hidden = state.code.weighted_sum(state.word_vectors) + layers.hidden_bias

    def take_away(sets: WordSets) -> tuple[Float[Tensor, "R C"], Bool[Tensor, " R"]]:
        before = hidden[sets.rows]
        after = before - sets.removed(state.code).weighted_sum(state.word_vectors)
        # Differences before the sum over units: a small effect keeps its digits beside a large logit.
        effects = (before.relu() - after.relu()) @ layers.class_weights.T
        return effects, ((before > 0) != (after > 0)).any(-1)

    return take_away


def _by_reading(head: Head, state: SparseCircuitState) -> TakeAway:
    def take_away(sets: WordSets) -> tuple[Float[Tensor, "R C"], Bool[Tensor, " R"]]:
        return state.logits[sets.rows] - head.read(sets.kept(state.code)).logits, sets.counts > 0

    return take_away
