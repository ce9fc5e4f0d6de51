"""`LexicalSAE`: backbone > expander > gate > saturation > pool > head.

Two routes lead from text to a decision, and give the same answer:
- `forward` makes the strength of every word at every position, [B, L, V]; `classify` and `tag` read it.
- `encode_document` pools logits before the gate where the parts allow it; `classify_document` reads it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from splade.circuits.core import CircuitState, SparseCircuitState
from splade.circuits.sparse_code import SparseCode
from splade.models.backbone import Backbone, load_backbone
from splade.models.config import ModelConfig
from splade.models.heads import BcosHead, ReluHead
from splade.models.layers.activation import Gate, GateOutput
from splade.models.layers.pooling import TopK
from splade.models.layers.vocab_head import max_logits, open_logits, padded_rows, winning_positions
from splade.types import TokenIds, TokenMask
from splade.vocab import DimensionTable, Vocabulary

CLASSIFY, TAG = "classify", "tag"


@dataclass(frozen=True)
class EncodedSequence:
    """Words per position, with what the gate said; padding is zero everywhere."""

    sparse_sequence: Float[Tensor, "B L V"]
    gate: GateOutput


@dataclass(frozen=True)
class EncodedDocument:
    """Words per document, with what the gate says of the greatest logit of each word."""

    sparse_vector: Float[Tensor, "B V"]
    gate: GateOutput


class LexicalSAE(nn.Module):
    """A classifier and tagger whose features are words."""

    def __init__(self, config: ModelConfig, backbone: Backbone, labels: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.config = config
        self.labels = _checked_labels(labels)
        self.backbone = backbone
        vocabulary = Vocabulary(backbone.tokenizer, backbone.vocab_size)
        senses = config.expander.dimensions(vocabulary) if config.expander else []
        self.dimensions = DimensionTable(vocabulary, senses)
        size = len(self.dimensions)
        self.expander = config.expander.build(backbone.width, vocabulary) if config.expander else None
        self.gate: Gate = config.gate.build(size)
        self.gate.close(~self.dimensions.feature_mask)
        self.saturation = config.saturation.build()
        self.topk = TopK(config.topk_per_position)
        self.pool = config.pool.build(size)
        self.masking = config.masking.build() if config.masking else nn.Identity()
        self.heads = nn.ModuleDict({name: config.head.build(size, len(ls)) for name, ls in self.labels.items()})

    @classmethod
    def from_backbone(cls, config: ModelConfig, labels: Mapping[str, Sequence[str]]) -> "LexicalSAE":
        """A new model on the backbone that the config names, its heads untrained."""
        return cls(config, load_backbone(config.name, lexical_head=config.lexical_head), labels)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> "LexicalSAE":
        """The model saved in a folder; see `splade.models.persistence`."""
        from splade.models.persistence import from_pretrained

        return from_pretrained(folder)

    def save_pretrained(self, folder: str | Path) -> Path:
        """Write the model to a folder; see `splade.models.persistence`."""
        from splade.models.persistence import save_pretrained

        return save_pretrained(self, folder)

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The backbone's tokenizer."""
        return self.backbone.tokenizer

    @property
    def max_length(self) -> int:
        """Longest text in tokens: the config's wish within the backbone's limit."""
        return min(self.config.max_length, self.backbone.max_tokens)

    def word_logits(self, input_ids: TokenIds, attention_mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B L V"]:
        """Logit of every dimension at every position; -inf at padding, which no gate opens."""
        hidden = self.backbone.hidden(input_ids, attention_mask)
        logits = self.backbone.decoder(hidden)
        if self.expander is not None:
            logits = self.expander(hidden, logits)
        return logits.masked_fill(~attention_mask[..., None], -torch.inf)

    def encode(self, input_ids: TokenIds, attention_mask: TokenMask) -> EncodedSequence:
        """Strength of every word at every position, with the gate's own account of it."""
        mask = attention_mask.bool()
        gate = self.gate(self.word_logits(input_ids, mask))
        return EncodedSequence(self.topk(self.saturation(gate.activated)), gate)

    def forward(self, input_ids: TokenIds, attention_mask: TokenMask) -> Float[Tensor, "B L V"]:
        """Strength of every word at every position."""
        return self.encode(input_ids, attention_mask).sparse_sequence

    def encode_document(self, input_ids: TokenIds, attention_mask: TokenMask) -> EncodedDocument:
        """Strength of every word in the document.

        Gate and saturation are non-decreasing, so pooling logits first gives the same strengths as pooling
        strengths, and neither gate nor penalties ever see [B, L, V].
        """
        if not self._pools_logits_first:
            encoded = self.encode(input_ids, attention_mask)
            # Every field is non-decreasing in the logit, so its maximum is what the greatest logit gives.
            gate = GateOutput(*(field.amax(1) for field in encoded.gate))
            return EncodedDocument(self.pool(encoded.sparse_sequence, attention_mask.bool()), gate)
        gate = self.gate(self.max_logits(input_ids, attention_mask))
        return EncodedDocument(self.saturation(gate.activated), gate)

    @torch.no_grad()
    def encode_sparse(self, input_ids: TokenIds, attention_mask: TokenMask) -> SparseCode:
        """The active words of each document with the positions that gave them; for inference."""
        mask = attention_mask.bool()
        if not self._pools_logits_first:
            sequence = self.encode(input_ids, mask).sparse_sequence
            pooled = self.pool(sequence, mask)
            rows, ids = pooled.nonzero(as_tuple=True)
            positions = sequence[rows, :, ids].argmax(1) if self.pool.pools_logits_first else None
            return SparseCode.from_dense(pooled, positions)
        hidden = self.backbone.hidden(input_ids, mask)
        strengths = self.saturation(self.gate(self._pool_logits(hidden, mask)).activated)
        return SparseCode.from_dense(strengths, self._winners(hidden, mask, strengths))

    @torch.no_grad()
    def encode_positions(
        self, input_ids: TokenIds, attention_mask: TokenMask, chosen: Bool[Tensor, "B L"]
    ) -> SparseCode:
        """The active words of each chosen position, a row of the code per position; for inference.

        `read(code, TAG)` then tags them. [B, L, V] is never made.
        """
        hidden = self.backbone.hidden(input_ids, attention_mask.bool())[chosen]
        opening, size = self.gate.opening_logits(), self.backbone.vocab_size
        rows, words, logits = open_logits(
            hidden, self.backbone.decoder.weight, self.backbone.decoder_bias, opening[:size]
        )
        if self.expander is not None:
            rows, words, logits = self._with_slots(hidden, rows, words, logits, opening)
        values = self.saturation(self.gate(logits, words).activated)
        at = chosen.nonzero()[:, 1][rows]
        code = SparseCode.from_entries(rows, words, values, at, (len(hidden), len(self.dimensions)))
        return code.keep_strongest(self.topk.k) if self.topk.k else code

    def _with_slots(
        self, hidden: Float[Tensor, "N D"], rows: Tensor, words: Tensor, logits: Tensor, opening: Float[Tensor, " V"]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Entries of the split words replaced by those of the sense slots that are picked and open."""
        assert self.expander is not None
        plain = ~torch.isin(words, self.expander.token_ids)
        slots = self._slot_logits(hidden)
        columns = self.expander.slot_columns(self.backbone.vocab_size)
        slot_rows, slot, sense = (slots > opening[columns]).nonzero(as_tuple=True)
        rows = torch.cat([rows[plain], slot_rows])
        words = torch.cat([words[plain], columns[slot, sense]])
        logits = torch.cat([logits[plain], slots[slot_rows, slot, sense]])
        order = torch.argsort(rows * len(self.dimensions) + words)
        return rows[order], words[order], logits[order]

    def max_logits(self, input_ids: TokenIds, attention_mask: TokenMask) -> Float[Tensor, "B V"]:
        """Greatest logit of every dimension over the real positions, sense slots included."""
        mask = attention_mask.bool()
        return self._pool_logits(self.backbone.hidden(input_ids, mask), mask)

    @property
    def _pools_logits_first(self) -> bool:
        """Whether documents may be pooled before the gate: not with attention, nor with a cap per position."""
        return self.pool.pools_logits_first and (self.training or self.topk.k == 0)

    def _pool_logits(self, hidden: Float[Tensor, "B L D"], mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B V"]:
        pooled = max_logits(hidden, self.backbone.decoder.weight, self.backbone.decoder_bias, mask)
        if self.expander is None:
            return pooled
        return self.expander.place(pooled, self._masked_slot_logits(hidden, mask).amax(1))

    def _slot_logits(self, hidden: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch K M"]:
        """Logits of the sense slots of the split words."""
        assert self.expander is not None
        split = self.expander.token_ids
        word_logits = hidden @ self.backbone.decoder.weight[split].T + self.backbone.decoder_bias[split]
        return self.expander.slot_logits(hidden, word_logits)

    def _masked_slot_logits(
        self, hidden: Float[Tensor, "B L D"], mask: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B L K M"]:
        """The same, -inf at padding."""
        return self._slot_logits(hidden).masked_fill(~mask[..., None, None], -torch.inf)

    def _winners(
        self, hidden: Float[Tensor, "B L D"], mask: Bool[Tensor, "B L"], strengths: Float[Tensor, "B V"]
    ) -> Int[Tensor, " K"]:
        """Position that gave each active word its logit, document by document."""
        weight = self.backbone.decoder.weight
        words, is_active = padded_rows(strengths[:, : len(weight)] != 0)
        winners = winning_positions(hidden, weight, mask, words)
        if self.expander is None:
            return winners[is_active]
        positions = winners.new_zeros(len(hidden), len(weight)).scatter_(1, words, winners)
        slot_winners = self._masked_slot_logits(hidden, mask).argmax(1)
        return self.expander.place(positions, slot_winners)[strengths != 0]

    def classify(
        self,
        sparse_sequence: Float[Tensor, "B L V"],
        attention_mask: TokenMask,
        head: str = CLASSIFY,
    ) -> CircuitState:
        """Decision on each document, from the words at its positions."""
        return self.decide(self.pool(sparse_sequence, attention_mask.bool()), head)

    def classify_document(
        self,
        input_ids: TokenIds,
        attention_mask: TokenMask,
        head: str = CLASSIFY,
    ) -> CircuitState:
        """Decision on each document, by the document route."""
        return self.decide(self.encode_document(input_ids, attention_mask).sparse_vector, head)

    def read(self, code: SparseCode, head: str = CLASSIFY) -> SparseCircuitState:
        """Decision on each document, from its active words alone; for inference."""
        return self._head(head).read(code)

    def tag(self, sparse_sequence: Float[Tensor, "*batch V"], head: str = TAG) -> Float[Tensor, "*batch C"]:
        """Logits of the tags at every position; one head serves all positions."""
        return self.decide(sparse_sequence, head).logits

    def tag_state(
        self,
        sparse_sequence: Float[Tensor, "B L V"],
        positions: Bool[Tensor, "B L"],
        head: str = TAG,
    ) -> CircuitState:
        """Decisions at the chosen positions, one per row: `[N, ...]` with N the number of chosen positions."""
        return self.decide(sparse_sequence[positions], head)

    def decide(self, sparse_vector: Float[Tensor, "*batch V"], head: str) -> CircuitState:
        """A head's decision on sparse vectors; in training, after random word masking."""
        return self._head(head)(self.masking(sparse_vector))

    def _head(self, name: str) -> ReluHead | BcosHead:
        if name not in self.heads:
            raise ValueError(f"this model has no head {name!r}; it has: {', '.join(self.heads)}")
        return self.heads[name]  # pyright: ignore[reportReturnType]


def _checked_labels(labels: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    checked = {name: tuple(values) for name, values in labels.items()}
    if not checked:
        raise ValueError("a model needs at least one head, e.g. labels={'classify': ['negative', 'positive']}")
    for name, values in checked.items():
        if not name.isidentifier() or hasattr(nn.ModuleDict, name):
            raise ValueError(f"head {name!r} cannot be named so; choose a plain name such as 'classify' or 'tag'")
        if len(values) < 2:
            raise ValueError(f"head {name!r} needs at least two labels, got {list(values)}")
        if len(set(values)) < len(values):
            raise ValueError(f"head {name!r} has a label twice: {list(values)}")
    return checked
