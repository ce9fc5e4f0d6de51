"""Virtual Polysemy Expansion: several sense slots for chosen words."""

from typing import Literal

import torch
from jaxtyping import Float, Int, Shaped
from pydantic import Field, field_validator
from torch import Tensor, nn

from lexical_sae.data.dimensions import Dimension, Kind
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig


class VirtualExpander(nn.Module):
    """Splits chosen words into sense slots; at each position the hidden state picks one slot per word.

    Slot 0 reuses the word's own dimension, slots 1.. are appended as `word@sense1`, `word@sense2`, ... The slot that
    is picked carries the word's logit, the others -inf: zero would open a DReLU gate with a negative threshold.
    """

    token_ids: Tensor

    class Config(PartConfig):
        kind: Literal["vpe"] = "vpe"
        token_ids: tuple[int, ...] = Field(min_length=1)
        """Vocabulary ids of the words to split."""
        num_senses: int = Field(default=4, ge=2)
        """Slots per word, the word's own dimension included."""

        @field_validator("token_ids")
        @classmethod
        def _once_each(cls, ids: tuple[int, ...]) -> tuple[int, ...]:
            if len(set(ids)) < len(ids):
                raise SettingsError(f"vpe.token_ids names a word twice: {sorted(i for i in ids if ids.count(i) > 1)}")
            return ids

        def build(self, width: int) -> "VirtualExpander":
            return VirtualExpander(self, width)

        def dimensions(self, vocabulary: Vocabulary) -> list[Dimension]:
            """Names of the appended slots, word by word; ids that are no words are refused."""
            outside = [i for i in self.token_ids if not 0 <= i < vocabulary.size or not vocabulary.feature_mask[i]]
            if outside:
                raise SettingsError(
                    f"vpe.token_ids {outside} are not words of this encoder's vocabulary (size {vocabulary.size}); "
                    "give ids of its own tokenizer"
                )
            senses = range(1, self.num_senses)
            kind: dict[int, Kind] = {i: "sense" if vocabulary.clean_mask[i] else "piece" for i in self.token_ids}
            return [Dimension(f"{vocabulary.names[i]}@sense{m}", kind[i]) for i in self.token_ids for m in senses]

    def __init__(self, config: Config, width: int) -> None:
        super().__init__()
        self.config = config
        self.num_senses = config.num_senses
        self.register_buffer("token_ids", torch.tensor(config.token_ids), persistent=False)
        self.scores = nn.Linear(width, len(config.token_ids) * config.num_senses)

    def slot_logits(
        self, hidden: Float[Tensor, "*batch D"], word_logits: Float[Tensor, "*batch K"]
    ) -> Float[Tensor, "*batch K M"]:
        """The logit of each sense slot of each split word: the word's logit in the picked slot, -inf elsewhere."""
        scores = self.scores(hidden).unflatten(-1, (-1, self.num_senses))
        probabilities = scores.softmax(-1)
        picked = torch.zeros_like(scores, dtype=torch.bool).scatter_(-1, scores.argmax(-1, keepdim=True), True)
        # Straight-through: the factor is one, its gradient that of the softmax. Added from the left it would round.
        factor = 1 + (probabilities - probabilities.detach())
        # A word that cannot open here (-inf) has no slot to pick; as a factor, -inf would make gradients NaN.
        can_open = word_logits[..., None] != -torch.inf
        finite = word_logits.masked_fill(word_logits == -torch.inf, 0.0)
        return torch.where(picked & can_open, finite[..., None] * factor, -torch.inf)

    def forward(
        self, hidden: Float[Tensor, "*batch D"], word_logits: Float[Tensor, "*batch V"]
    ) -> Float[Tensor, "*batch W"]:
        """Word logits with the split words' own columns replaced by slot 0 and the other slots appended."""
        slots = self.slot_logits(hidden, word_logits[..., self.token_ids])
        return self.place(word_logits, slots)

    def slot_columns(self, num_words: int) -> Int[Tensor, "K M"]:
        """The dimension of each slot: the word's own, then those appended after all words."""
        extra = self.num_senses - 1
        appended = num_words + torch.arange(len(self.token_ids) * extra, device=self.token_ids.device)
        return torch.cat([self.token_ids[:, None], appended.view(-1, extra)], dim=1)

    def place(
        self, words: Shaped[Tensor, "*batch V"], slots: Shaped[Tensor, "*batch K M"]
    ) -> Shaped[Tensor, "*batch W"]:
        """Put the logits of the slots into their columns."""
        own = words.index_copy(words.dim() - 1, self.token_ids, slots[..., 0])
        return torch.cat([own, slots[..., 1:].flatten(-2)], dim=-1)
