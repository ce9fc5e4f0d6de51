"""Lines below a margin that hold for a whole family of word sets at once.

1. From what the free words can add to a hidden unit at most and at least, an interval for the unit.
2. Over the interval, a line above and a line below its ReLU: the chord, and a line through zero.
3. A margin weighs units positively and negatively: put the lower line where the weight is positive and the upper one
   where it is negative. The result is linear in "which free words are chosen", so its minimum is found exactly.

The idea is that of Wong & Kolter 2018 (arXiv:1711.00851) and Zhang et al. 2018 (arXiv:1811.00866), for inputs that are
either there or not.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.mechanistic.minimal_sets.question import Margins


class LinearBound(NamedTuple):
    """`margin >= constant + sum of the effects of the chosen words`, rounding included."""

    constant: Float[Tensor, " sets"]
    effects: Float[Tensor, "sets K"]


def bound_margins(
    margins: Margins,
    hidden: Float[Tensor, "sets H"],
    fall: Float[Tensor, "#sets H"],
    rise: Float[Tensor, "#sets H"],
    moves: Float[Tensor, "K H"],
) -> LinearBound:
    """A linear bound below one margin per family of sets.

    A family starts at `hidden`; choosing word j adds `moves[j]`, and all choices that belong to the family lower a
    unit by at most `fall` and raise it by at most `rise`.

    Example: hidden 1, weight -1, moves -1 and -1 (fall 2, rise 0): over [-1, 1] the ReLU is below h/2 + 1/2, so the
    margin is at least -1 + 1/2 for each chosen word. True margins: -1 for none, 0 for one, 0 for both.
    """
    low, high = hidden - fall, hidden + rise
    is_open = (low < 0) & (high > 0)
    always_on = (low >= 0).double()
    chord = torch.where(is_open, high / (high - low), always_on).clamp(0, 1)
    # The intercept is taken from the rounded slope: the line stays above both ends.
    above = torch.where(is_open, torch.maximum(-chord * low, high - chord * high), 0.0)
    # Any slope between 0 and 1 lies below; this one leaves the smaller triangle.
    below = torch.where(is_open, (high > -low).double(), always_on)
    is_positive = margins.weights >= 0
    slopes = margins.weights * torch.where(is_positive, below, chord)
    intercepts = (margins.weights * above).masked_fill(is_positive, 0.0)
    constant = (slopes * hidden + intercepts).sum(-1) + margins.offsets - margins.rounding
    return LinearBound(constant, slopes @ moves.T)
