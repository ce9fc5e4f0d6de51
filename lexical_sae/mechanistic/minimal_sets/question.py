"""`Question`: which sets of words, removed or kept alone, make another class win?"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.mechanistic.minimal_sets.decision import Decision


class Margins(NamedTuple):
    """Margins of one class over another, `weights @ relu(hidden) + offsets`, with the rounding they may gather."""

    weights: Float[Tensor, "rows H"]
    offsets: Float[Tensor, " rows"]
    rounding: Float[Tensor, " rows"]

    def select(self, rows: Int[Tensor, " n"]) -> "Margins":
        """Some of the margins, in the order asked for."""
        return Margins(self.weights[rows], self.offsets[rows], self.rounding[rows])

    def mirrored(self) -> "Margins":
        """The same margins with the two classes exchanged."""
        return Margins(-self.weights, -self.offsets, self.rounding)


@dataclass(frozen=True)
class Question:
    """Sets of words are looked for whose choice lets an attacking class win.

    Row by row an attacker faces a defender, and the margin of the defender over it must fall to zero or below. Where
    `needs_all`, one attacker must beat every defender; otherwise several attackers face the same defender and one of
    them is enough. Both conditions are necessary; `is_answered_by` is the exact one, ties included.
    """

    decision: Decision
    is_removal: bool
    """Whether chosen words are removed and the others kept, or chosen words kept and the others removed."""
    attackers: Int[Tensor, " rows"]
    defenders: Int[Tensor, " rows"]
    needs_all: bool

    @classmethod
    def of_flips(cls, decision: Decision) -> "Question":
        """Whose removal makes any other class win?"""
        others = _classes_without(decision, decision.winner)
        return cls(decision, True, others, torch.full_like(others, decision.winner), needs_all=False)

    @classmethod
    def of_flips_to(cls, decision: Decision, label: int) -> "Question":
        """Whose removal makes this class win?"""
        others = _classes_without(decision, label)
        return cls(decision, True, torch.full_like(others, label), others, needs_all=True)

    @classmethod
    def of_sufficiency(cls, decision: Decision) -> "Question":
        """Which words, kept alone, give the same decision?"""
        others = _classes_without(decision, decision.winner)
        return cls(decision, False, torch.full_like(others, decision.winner), others, needs_all=True)

    @cached_property
    def margins(self) -> Margins:
        """The defender's margin over the attacker, in every row."""
        decision, attackers, defenders = self.decision, self.attackers, self.defenders
        return Margins(
            decision.readout[defenders] - decision.readout[attackers],
            decision.class_bias[defenders] - decision.class_bias[attackers],
            decision.rounding[defenders] + decision.rounding[attackers],
        )

    @cached_property
    def moves(self) -> Float[Tensor, "K H"]:
        """What choosing each word adds to the hidden units."""
        return -self.decision.word_terms if self.is_removal else self.decision.word_terms

    def kept(self, chosen: Bool[Tensor, "*sets K"]) -> Bool[Tensor, "*sets K"]:
        """The words that are still there."""
        return ~chosen if self.is_removal else chosen

    def hidden(self, chosen: Bool[Tensor, "*sets K"]) -> Float[Tensor, "*sets H"]:
        """Hidden units before their ReLU after the choice."""
        return self.decision.hidden(self.kept(chosen))

    def is_answered_by(self, chosen: Bool[Tensor, "*sets K"]) -> Bool[Tensor, "*sets"]:
        """Whether an attacker wins after the choice, evaluated in fp64."""
        return torch.isin(self.decision.logits(self.kept(chosen)).argmax(-1), self.attackers)

    def row_margins(self, hidden: Float[Tensor, "sets H"]) -> Float[Tensor, "sets rows"]:
        """The defender's margin over the attacker in every row, evaluated in fp64."""
        return hidden.relu() @ self.margins.weights.T + self.margins.offsets

    def distance(self, hidden: Float[Tensor, "sets H"]) -> Float[Tensor, " sets"]:
        """How much margin is still in the way: of the strongest defender, or before the nearest attacker."""
        rows = self.row_margins(hidden)
        return rows.amax(-1) if self.needs_all else rows.amin(-1)

    def first_rows(self) -> Int[Tensor, " n"]:
        """The rows to follow from the start: each attacker separately, or one that `rows_to_beat` replaces."""
        return torch.zeros(1, dtype=torch.long) if self.needs_all else torch.arange(len(self.attackers))

    def rows_to_beat(self, hidden: Float[Tensor, "sets H"], rows: Int[Tensor, " sets"]) -> Int[Tensor, " sets"]:
        """The row that bounds each family of sets: its own, or that of the strongest defender where all must fall."""
        return self.row_margins(hidden).argmax(-1) if self.needs_all else rows


def _classes_without(decision: Decision, label: int) -> Int[Tensor, " rows"]:
    return torch.tensor([c for c in range(decision.num_classes) if c != label])
