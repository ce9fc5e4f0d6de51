"""Which active words of a text are its circuit, and what is left of a decision with them or without them."""

import math

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lexical_sae.evaluation.collect import DecisionBatch
from lexical_sae.mechanistic.exact import Head, Removal, WordSets, class_centered, leave_one_out, remove
from lexical_sae.models.circuit_state import SparseCircuitState, circuit_mask
from lexical_sae.models.sparse_code import SparseCode

RANDOM_DRAWS = 5
"""Random choices of words per text; their mean is the control."""


def select_circuit(code: SparseCode, scores: Float[Tensor, " K"], fraction: float) -> Bool[Tensor, " K"]:
    """True at the words of each text's circuit: the hard `circuit_mask` that training uses, over its active words.

    Example: scores [4, -8, 1] of one text and a fraction of 0.34 -> [F, T, F]
    """
    if not len(code.ids):
        return torch.zeros_like(code.ids, dtype=torch.bool)
    # One line per text with room for the longest. Ids ascend within a text, so ties still go to the lowest id.
    rows = code.rows
    nth = torch.arange(len(rows), device=rows.device) - code.offsets[rows]
    padded = scores.new_zeros(len(code), int(code.counts.max()))
    active = torch.zeros_like(padded, dtype=torch.bool)
    padded[rows, nth], active[rows, nth] = scores, True
    return circuit_mask(padded, active, fraction, math.inf)[rows, nth].bool()


def logits_without(head: Head, state: SparseCircuitState, chosen: Bool[Tensor, " K"]) -> Float[Tensor, "B C"]:
    """The exact logits of each text when its chosen words are taken away."""
    return remove(head, state, WordSets.together(state.code, chosen)).effects.logits_without(state.logits)


def logits_of_only(head: Head, state: SparseCircuitState, chosen: Bool[Tensor, " K"]) -> Float[Tensor, "B C"]:
    """The exact logits of each text when only its chosen words are left."""
    return logits_without(head, state, ~chosen)


def centered_for(logits: Float[Tensor, "B C"], predicted: Tensor) -> Float[Tensor, " B"]:
    """Logit of the predicted class minus the mean over classes."""
    return (logits * class_centered(logits, predicted)).sum(-1)


class Rankings:
    """Orders of the active words by their contribution to the predicted class, each computed once per batch.

    `direct` is direct logit attribution, `leave_one_out` the exact effect of removing each word alone, `random` several
    orders sampled at random. Orders are given as scores, all positive and distinct, greatest first: the k
    greatest are the same number of words under every name.
    """

    NAMES = ("direct", "leave_one_out", "random")

    def __init__(self, head: Head, seed: int = 0, draws: int = RANDOM_DRAWS) -> None:
        self.head, self.seed, self.draws = head, seed, draws
        self._batch: DecisionBatch | None = None
        self._orders: dict[str, list[Tensor]] = {}
        self._removals: Removal | None = None

    def orders(self, batch: DecisionBatch) -> dict[str, list[Tensor]]:
        """The orders of a batch's words by name: one each, `random` several."""
        self._look_at(batch)
        return self._orders

    def removals(self, batch: DecisionBatch) -> Removal:
        """The exact effect of removing each active word alone, in the order of the code."""
        self._look_at(batch)
        assert self._removals is not None
        return self._removals

    def _look_at(self, batch: DecisionBatch) -> None:
        if batch is self._batch:
            return
        state = batch.state
        self._removals = leave_one_out(self.head, state)
        direction = class_centered(state.logits, batch.predicted)
        self._orders = {
            "direct": [_as_order(speaks_for_predicted(batch))],
            "leave_one_out": [_as_order(self._removals.effects.towards(direction))],
            "random": [_as_order(random_scores(batch, [self.seed, draw])) for draw in range(self.draws)],
        }
        self._batch = batch


def speaks_for_predicted(batch: DecisionBatch) -> Float[Tensor, " K"]:
    """Class-centred contribution of every active word to the predicted class of its text."""
    return batch.contributions.gather(1, batch.predicted[batch.state.code.rows, None]).squeeze(1)


def random_scores(batch: DecisionBatch, seed: list[int]) -> Float[Tensor, " K"]:
    """A random number per active word; a text's numbers do not depend on the texts it is read with."""
    code = batch.state.code
    drawn = [
        np.random.default_rng([*seed, row]).random(n) for row, n in zip(batch.rows, code.counts.tolist(), strict=True)
    ]
    return torch.from_numpy(np.concatenate(drawn)).to(code.values)


def _as_order(scores: Float[Tensor, " K"]) -> Float[Tensor, " K"]:
    """Scores replaced by their rank, the greatest highest; of equal ones the earlier word is higher."""
    best_first = scores.argsort(descending=True, stable=True)
    ranks = torch.arange(len(scores), 0, -1, device=scores.device, dtype=scores.dtype)
    return torch.empty_like(ranks).index_copy(0, best_first, ranks)
