"""From hidden states to the logits of words: every word at every position, or only what can matter.

With a neighbourhood a token reaches the few words in its row of the table; without one it reaches them all. Both give
the same three things: the greatest logit of each word in a document, the words of a document that can open, and the
words of a position that can open. The slow form, all logits at all positions, is `everywhere`.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import linear

from lexical_sae.models.backbone import Backbone
from lexical_sae.models.layers.activation import Gate
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.neighbourhood import Neighbourhood, near_logits, pool_near
from lexical_sae.models.layers.screening import Candidates, Screen
from lexical_sae.models.layers.virtual_expander import VirtualExpander
from lexical_sae.models.layers.vocab_head import can_open, max_logits, open_logits, padded_rows, winning_positions
from lexical_sae.utils.precision import full_precision

TIE = 1e-5
"""Words this near to opening, relative to their logit, are left for the gate to decide."""


class Projection:
    """The decoder with its neighbourhood and sense slots. No module, and never kept: it reads its model's parts.

    A model makes one for each use, so that a part which is replaced is replaced here too.
    """

    def __init__(
        self,
        backbone: Backbone,
        neighbourhood: Neighbourhood | None,
        expander: VirtualExpander | None,
        gate: Gate,
        screen: Screen,
    ) -> None:
        self.backbone, self.neighbourhood, self.expander, self.gate = backbone, neighbourhood, expander, gate
        self.screen = screen

    @full_precision()
    def everywhere(
        self, hidden: Float[Tensor, "B L D"], input_ids: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B L W"]:
        """Logit of every dimension at every position; -inf at padding and out of a token's reach."""
        logits = self.backbone.decoder(hidden)
        reach = mask[..., None]
        if self.neighbourhood is not None:
            reach = self.neighbourhood.allows(input_ids, mask)
            cut_rows = self.neighbourhood.decoder_rows[logits.shape[-1] :]
            logits = torch.cat([logits, logits[..., cut_rows]], dim=-1) if len(cut_rows) else logits
        logits = logits.masked_fill(~reach, -torch.inf)
        return logits if self.expander is None else self.expander(hidden, logits)

    @full_precision()
    def pooled(
        self, hidden: Float[Tensor, "B L D"], input_ids: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B W"]:
        """Greatest logit of every dimension over the real positions, with gradients."""
        if self.neighbourhood is None:
            pooled = max_logits(hidden, self.backbone.decoder.weight, self.backbone.decoder_bias, mask)
        else:
            words = self.neighbourhood.words(input_ids, mask)
            pooled = pool_near(self._near(hidden, words), words, self._num_words)
        if self.expander is None:
            return pooled
        return self.expander.place(pooled, self._slots(hidden, input_ids, mask).amax(1))

    @full_precision()
    def at(
        self,
        hidden: Float[Tensor, "B L D"],
        input_ids: Int[Tensor, "B L"],
        chosen: Bool[Tensor, "B L"],
    ) -> Float[Tensor, "N W"]:
        """Logit of every dimension at each chosen position, with gradients: `everywhere(...)[chosen]`, and no more."""
        states = hidden[chosen]
        if self.neighbourhood is None:
            logits = self.backbone.decoder(states)
        else:
            words = self.neighbourhood.words(input_ids, chosen)[chosen][:, None]
            logits = pool_near(self._near(states[:, None], words), words, self._num_words)
        if self.expander is None:
            return logits
        return self.expander.place(logits, self._slots(hidden, input_ids, chosen)[chosen])

    @property
    def computes_words_alone(self) -> bool:
        """Whether the logits of some words can be computed without the others: `words_at` works."""
        return self.neighbourhood is None and self.expander is None

    @full_precision()
    def words_at(
        self, hidden: Float[Tensor, "B L D"], chosen: Bool[Tensor, "B L"], words: Int[Tensor, " W"]
    ) -> Float[Tensor, "N W"]:
        """The columns of `at` of these words alone."""
        return linear(hidden[chosen], self.backbone.decoder.weight[words], self.backbone.decoder_bias[words])

    @full_precision()
    def open_words(
        self, hidden: Float[Tensor, "B L D"], input_ids: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]
    ) -> Candidates:
        """The words of each document that can open, with the position that gives each its logit; for inference."""
        plain_opening = self._plain_opening()
        if self.neighbourhood is None:
            weight, bias = self.backbone.decoder.weight, self.backbone.decoder_bias
            # In training the weights change with every step: nothing worth preparing.
            found = None if self.gate.training else self.screen.candidates(hidden, weight, bias, mask, plain_opening)
            if found is None:
                found = _all_open(hidden, weight, bias, mask, plain_opening)
        else:
            words = self.neighbourhood.words(input_ids, mask)
            found = _strongest_of_each(self._open_near(self._near(hidden, words), words, plain_opening))
        if self.expander is None:
            return found
        slots = self._slots(hidden, input_ids, mask).max(1)
        return self._with_slots(found, slots.values, slots.indices)

    @full_precision()
    def open_at(
        self, hidden: Float[Tensor, "B L D"], input_ids: Int[Tensor, "B L"], chosen: Bool[Tensor, "B L"]
    ) -> Candidates:
        """The words of each chosen position that can open, a row per position; for inference."""
        states, at = hidden[chosen], chosen.nonzero()[:, 1]
        plain_opening = self._plain_opening()
        if self.neighbourhood is None:
            weight, bias = self.backbone.decoder.weight, self.backbone.decoder_bias
            rows, words, logits = open_logits(states, weight, bias, plain_opening)
        else:
            near = self.neighbourhood.words(input_ids, chosen)[chosen].sort(-1).values
            rows, words, logits, _ = self._open_near(self._near(states, near)[:, None], near[:, None], plain_opening)
        found = Candidates(rows, words, logits, at[rows])
        if self.expander is None:
            return found
        slots = self._slots(hidden, input_ids, chosen)[chosen]
        return self._with_slots(found, slots, at[:, None, None].expand(slots.shape))

    def _opening(self) -> Float[Tensor, " W"]:
        """A logit just below what opens each dimension, so that rounding leaves ties to the gate."""
        opening = self.gate.opening_logits()
        # Never below fp32, as in the gate: half precision has neither the bound nor the margin.
        opening = opening.to(torch.promote_types(opening.dtype, torch.float32))
        return opening - TIE * (1 + opening.abs().clamp(max=1e6))

    @property
    def _num_words(self) -> int:
        """Words with a column of their own: the vocabulary, and what the neighbourhood adds to it."""
        return self.backbone.vocab_size if self.neighbourhood is None else len(self.neighbourhood.decoder_rows)

    def _plain_opening(self) -> Float[Tensor, " V"]:
        """The same for words alone; infinite for split words, whose sense slots stand for them."""
        opening = self._opening()[: self._num_words]
        return opening if self.expander is None else opening.index_fill(0, self.expander.token_ids, torch.inf)

    def _near(self, hidden: Float[Tensor, "*batch D"], words: Int[Tensor, "*batch N"]) -> Float[Tensor, "*batch N"]:
        assert self.neighbourhood is not None
        rows = self.neighbourhood.decoder_rows[words.clamp(min=0)].masked_fill(words == NO_WORD, NO_WORD)
        return near_logits(hidden, self.backbone.decoder.weight, self.backbone.decoder_bias, rows)

    @staticmethod
    def _open_near(
        logits: Float[Tensor, "B L N"], words: Int[Tensor, "B L N"], opening: Float[Tensor, " V"]
    ) -> Candidates:
        """Entries whose logit opens their word, by document, position, and place in the table."""
        at = (can_open(logits, opening[words.clamp(min=0)]) & (words != NO_WORD)).nonzero(as_tuple=True)
        return Candidates(at[0], words[at], logits[at], at[1])

    def _slots(
        self, hidden: Float[Tensor, "B L D"], input_ids: Int[Tensor, "B L"], real: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B L K M"]:
        """Logits of the sense slots of the split words; -inf at padding and out of reach."""
        assert self.expander is not None
        split = self.expander.token_ids
        logits = hidden @ self.backbone.decoder.weight[split].T + self.backbone.decoder_bias[split]
        reach = real[..., None]
        if self.neighbourhood is not None:
            reach = (self.neighbourhood.words(input_ids, real)[..., None, :] == split[:, None]).any(-1)
        return self.expander.slot_logits(hidden, logits.masked_fill(~reach, -torch.inf))

    def _with_slots(
        self, found: Candidates, slots: Float[Tensor, "R K M"], positions: Int[Tensor, "R K M"]
    ) -> Candidates:
        """The entries joined by those of the sense slots that are picked and can open."""
        assert self.expander is not None
        columns = self.expander.slot_columns(self._num_words)
        opening = self._opening()
        at = can_open(slots, opening[columns]).nonzero(as_tuple=True)
        rows, slot, sense = at
        ours = Candidates(rows, columns[slot, sense], slots[at], positions[at])
        joined = Candidates(*(torch.cat(pair) for pair in zip(found, ours, strict=True)))
        order = torch.argsort(joined.documents * len(opening) + joined.words)
        return Candidates(*(field[order] for field in joined))


def _all_open(
    hidden: Float[Tensor, "B L D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"],
    mask: Bool[Tensor, "B L"],
    opening: Float[Tensor, " V"],
) -> Candidates:
    """The same as a screen finds, by computing all of it."""
    pooled = max_logits(hidden, weight, bias, mask)
    is_open = can_open(pooled, opening)
    rows, words = is_open.nonzero(as_tuple=True)
    padded, is_entry = padded_rows(is_open)
    return Candidates(rows, words, pooled[rows, words], winning_positions(hidden, weight, mask, padded)[is_entry])


def _strongest_of_each(found: Candidates) -> Candidates:
    """One entry per document and word, that with the greatest logit, of equal ones the first; by document and word."""
    by_logit = torch.argsort(found.logits, descending=True, stable=True)
    size = int(found.words.max()) + 1 if len(found.words) else 1
    keys = (found.documents * size + found.words)[by_logit]
    order = by_logit[torch.argsort(keys, stable=True)]
    sorted_keys = (found.documents * size + found.words)[order]
    is_first = torch.ones_like(sorted_keys, dtype=torch.bool)
    is_first[1:] = sorted_keys[1:] != sorted_keys[:-1]
    return Candidates(*(field[order[is_first]] for field in found))
