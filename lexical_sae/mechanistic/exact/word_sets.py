"""Sets of active words to take away from texts: one by one, in pairs, or many together."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lexical_sae.models.sparse_code import SparseCode


@dataclass(frozen=True)
class WordSets:
    """R sets, each of words of one text of a `SparseCode`; no word twice in a set.

    Words are given as their places in the code. Entries `offsets[r]` up to `offsets[r + 1]` belong to set r.
    """

    rows: Int[Tensor, " R"]
    """The text that each set belongs to."""
    members: Int[Tensor, " M"]
    """Places in the code."""
    offsets: Int[Tensor, " R1"]

    @classmethod
    def singly(cls, code: SparseCode, chosen: Bool[Tensor, " K"]) -> "WordSets":
        """Every chosen word as a set of its own, in the order of the code."""
        members = chosen.nonzero().flatten()
        return cls(code.rows[members], members, torch.arange(len(members) + 1, device=members.device))

    @classmethod
    def together(cls, code: SparseCode, chosen: Bool[Tensor, " K"]) -> "WordSets":
        """One set per text: all of its chosen words, perhaps none.

        Example: a list of words everywhere: `WordSets.together(code, torch.isin(code.ids, word_ids))`
        """
        members = chosen.nonzero().flatten()
        counts = torch.bincount(code.rows[members], minlength=len(code))
        return cls(torch.arange(len(code), device=members.device), members, _ends(counts))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def counts(self) -> Int[Tensor, " R"]:
        """Number of words of each set."""
        return self.offsets.diff()

    def split(self, size: int) -> Iterator["WordSets"]:
        """The sets in order, at most `size` at a time; at least one part, though it may hold no set."""
        for start in range(0, max(len(self), 1), size):
            ends = self.offsets[start : start + size + 1]
            yield WordSets(self.rows[start : start + size], self.members[ends[0] : ends[-1]], ends - ends[0])

    def removed(self, code: SparseCode) -> SparseCode:
        """The words of each set as the text they would make."""
        ids, values, positions = code.ids[self.members], code.values[self.members], code.positions[self.members]
        return SparseCode(ids, values, positions, self.offsets, code.size)

    def kept(self, code: SparseCode) -> SparseCode:
        """What remains of its text when each set is taken away."""
        sizes = code.counts[self.rows]
        owner = torch.arange(len(self), device=sizes.device).repeat_interleave(sizes)
        nth = torch.arange(len(owner), device=sizes.device) - _ends(sizes)[owner]
        place = code.offsets[self.rows][owner] + nth
        # A number for each (set, place in the code), to look up which are taken away.
        total = len(code.ids)
        owner_of_member = torch.arange(len(self), device=sizes.device).repeat_interleave(self.counts)
        stays = ~torch.isin(owner * total + place, owner_of_member * total + self.members)
        owner, place = owner[stays], place[stays]
        shape = (len(self), code.size)
        return SparseCode.from_entries(owner, code.ids[place], code.values[place], code.positions[place], shape)


def strongest(code: SparseCode, scores: Float[Tensor, " K"], count: int) -> Bool[Tensor, " K"]:
    """True at the `count` words of each text with the largest |score|; of equal ones the lowest id."""
    places = torch.arange(len(code.ids), device=code.ids.device)
    # The cut keeps each entry's position: the place in the code travels there.
    kept = replace(code, values=scores.abs(), positions=places).keep_strongest(count).positions
    return torch.zeros_like(places, dtype=torch.bool).index_fill(0, kept, True)


def _ends(counts: Int[Tensor, " R"]) -> Int[Tensor, " R1"]:
    """Where each of several runs begins, and at the end their total."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
