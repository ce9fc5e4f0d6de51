"""`LexicalSAE`: backbone > neighbourhood > expander > gate > saturation > pool > head.

Documents and positions have a head each, or share one (`shared_head`): then no parameter is particular to a task.
Shape features, where a tagger has them, join the words before the head. Two routes lead from text to a decision, and
give the same answer:
- `forward` makes the activation of every word at every position, [B, L, V]; `classify` and `tag` read it.
- `encode_document` pools logits before the gate where the parts allow it; `classify_document` reads it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from lexical_sae.data.batches import tokenize
from lexical_sae.data.encoding import special_tokens_around
from lexical_sae.data.vocabulary import DimensionTable, Vocabulary
from lexical_sae.models.backbone import Backbone, load_backbone
from lexical_sae.models.calibration import Calibration
from lexical_sae.models.circuit_state import CircuitState, SparseCircuitState
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.heads import CLASSIFY, TAG, Head
from lexical_sae.models.layers.activation import Gate, GateOutput
from lexical_sae.models.layers.cut_words import NO_WORD, frequent_cut_words
from lexical_sae.models.layers.literal_words import multi_piece_words
from lexical_sae.models.layers.pooling import TopK
from lexical_sae.models.layers.screening import Candidates, Screen
from lexical_sae.models.literal_reading import read_words, sparse_code
from lexical_sae.models.long_texts import Windows, longest
from lexical_sae.models.projection import Projection
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.models.table_head import TableHead
from lexical_sae.models.word_views import with_words
from lexical_sae.outputs import CLASSES, Classes, OutputKind
from lexical_sae.types import TokenIds, TokenMask
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.precision import full_precision

EncoderStates = Float[Tensor, "B L E"]


@dataclass(frozen=True)
class EncodedSequence:
    """Words per position, with the gate's output; padding is zero everywhere."""

    sparse_sequence: Float[Tensor, "B L V"]
    gate: GateOutput
    logits: Float[Tensor, "B L V"]
    """What the gate was given; -inf where a word cannot open."""


@dataclass(frozen=True)
class EncodedDocument:
    """Words per document or chosen position, with the gate's output for the greatest logit of each word."""

    sparse_vector: Float[Tensor, "B K"]
    gate: GateOutput
    logits: Float[Tensor, "B K"]
    """Greatest logit of each word; -inf where it cannot open."""
    words: Int[Tensor, " K"] | None = None
    """The dimension of each column, where only live ones have a column; None where all have."""
    in_reach: Bool[Tensor, " V"] | None = None
    """Dimensions that a token of the batch may open, with a column or without; None without a neighbourhood."""


class LexicalSAE(nn.Module):
    """A classifier and tagger whose features are words."""

    shape_vectors: nn.Parameter | None

    def __init__(
        self,
        config: ModelConfig,
        backbone: Backbone,
        labels: Mapping[str, Sequence[str]],
        output: OutputKind = CLASSES,
    ) -> None:
        super().__init__()
        self.config = config
        self.output = output
        """What it puts out for a text; a tag is always one of several."""
        self.labels = _checked_labels(labels, output, shared=config.shared_head)
        if not isinstance(output, Classes) and config.literal is None:
            raise SettingsError(
                f"{output.title}: that is for models with literal words (recipe anchored); leave the recipe out"
            )
        self.backbone = backbone
        vocabulary = Vocabulary(backbone.tokenizer, backbone.vocab_size)
        appended = config.literal or config.neighbourhood
        cut_words = appended.dimensions() if appended else []
        senses = config.expander.dimensions(vocabulary) if config.expander else []
        shapes = config.shapes.dimensions() if config.shapes else []
        self.dimensions = DimensionTable(vocabulary, [*cut_words, *senses, *shapes], numbers=config.literal is not None)
        size = len(self.dimensions)
        self.expander = config.expander.build(backbone.width) if config.expander else None
        self.neighbourhood = config.neighbourhood.build(vocabulary) if config.neighbourhood else None
        self.gate: Gate = config.gate.build(size)
        self.gate.close(~self.dimensions.feature_mask)
        if config.neighbourhood:
            unnamed = ~config.neighbourhood.nameable(vocabulary)
            _check_split_words_are_named(config, vocabulary, unnamed)
            appended = torch.zeros(len(self.dimensions.appended), dtype=torch.bool, device="cpu")
            self.gate.close(torch.cat([unnamed, appended]))
        self.literal = config.literal.build(vocabulary) if config.literal else None
        if self.literal is not None:
            words = torch.ones(size, dtype=torch.bool, device="cpu")
            words[: vocabulary.size] = vocabulary.word_mask
            self.gate.close(~words)
        self.context = config.context.build(backbone.encoder_width, size) if config.context else None
        self.shapes = config.shapes.build(size - len(shapes)) if config.shapes else None
        shapes_in_encoder = config.shapes is not None and config.shapes.in_encoder
        # Zero at first: a new model's encoder is the pretrained one.
        vectors = nn.Parameter(torch.zeros(len(shapes), backbone.input_width)) if shapes_in_encoder else None
        self.register_parameter("shape_vectors", vectors)
        self.saturation = config.saturation.build()
        self.topk = TopK(config.topk_per_position)
        self.pool = config.pool.build(size)
        self.masking = config.masking.build() if config.masking else nn.Identity()
        self.heads = nn.ModuleDict(_build_heads(config, size, self.labels))
        for head in self.distinct_heads():
            if isinstance(head, TableHead):
                head.make_room(backbone.input_width)
        self._screen = Screen()
        self.calibration: Calibration | None = None
        """For warnings about unusual texts and for abstention; training makes it."""

    @classmethod
    def from_backbone(
        cls,
        config: ModelConfig,
        labels: Mapping[str, Sequence[str]],
        texts: Sequence[str] = (),
        output: OutputKind = CLASSES,
    ) -> "LexicalSAE":
        """A new model on the backbone that the config names, its heads untrained.

        Words that the tokenizer cuts up get dimensions by their frequency in `texts`, as many as the config allows;
        literal words all do.
        """
        reads_logits = config.literal is None
        backbone = load_backbone(config.name, lexical_head=config.lexical_head, reads_logits=reads_logits)
        config = _with_multi_piece_words(_with_cut_words(config, backbone, texts), backbone, texts)
        model = cls(config, backbone, labels, output)
        model.start_from_backbone()
        return model

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> "LexicalSAE":
        """The model saved in a folder; see `lexical_sae.models.persistence`."""
        from lexical_sae.models.persistence import from_pretrained

        return from_pretrained(folder)

    def save_pretrained(self, folder: str | Path) -> Path:
        """Write the model to a folder; see `lexical_sae.models.persistence`."""
        from lexical_sae.models.persistence import save_pretrained

        return save_pretrained(self, folder)

    @full_precision()
    def start_from_backbone(self) -> None:
        """What a new model takes from its pretrained decoder: who is near to whom, and where word vectors start."""
        if self.neighbourhood is not None:
            self.neighbourhood.choose(self.backbone.decoder.weight.detach())
        for head in self.distinct_heads():
            head.start_from(self.dimension_embeddings())

    def dimension_embeddings(self) -> Float[Tensor, "V D"]:
        """The decoder's row of each dimension's word: senses of a word share theirs, a shape has a random one.

        A word that the tokenizer cuts up has the mean of its tokens'.
        """
        rows = self.backbone.decoder.weight.detach()
        if self.literal is not None:
            rows = self.literal.embeddings(rows)
        elif self.neighbourhood is not None and len(self.neighbourhood.cut):
            rows = torch.cat([rows, self.neighbourhood.cut.embeddings(rows)])
        if self.expander is not None:
            senses = self.expander.token_ids.repeat_interleave(self.expander.num_senses - 1)
            rows = torch.cat([rows, rows[senses]])
        if self.shapes is not None:
            drawn = torch.randn(len(self.shapes), rows.shape[1], generator=torch.Generator().manual_seed(0))
            rows = torch.cat([rows, rows.mean(0) + rows.std() * drawn.to(rows)])
        return rows

    @property
    def projection(self) -> Projection:
        """The way from hidden states to logits, by the parts that the model has now."""
        return Projection(self.backbone, self.neighbourhood, self.expander, self.gate, self._screen)

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The backbone's tokenizer."""
        return self.backbone.tokenizer

    @property
    def window(self) -> int:
        """Most tokens that the encoder reads at once: the config's wish within the backbone's limit."""
        return window_of(self.config, self.backbone)

    @property
    def max_length(self) -> int:
        """Longest text in tokens: one window, or of a model that reads long texts whole as many as it may take."""
        return longest_text(self.config, self.backbone)

    def own_words(self, input_ids: TokenIds) -> TokenIds:
        """The dimension of the word that stands at each position: its token, or at the first of several the word's.

        With a neighbourhood or literal words, -1 at the other tokens of a word, and at all of a word without a
        dimension.
        """
        parted = self.literal or self.neighbourhood
        return input_ids if parted is None else parted.own_words(input_ids)

    def opened_to(self, texts: Iterable[Sequence[int]]) -> "LexicalSAE":
        """This model, or where tokenised texts have words that it never met, a view in which they have dimensions.

        For literal words (`word_views`). Every weight is shared; new words come after the others, and their rows from
        their spelling.
        """
        return self if self.literal is None else with_words(self, self.literal.new_words(texts))

    @property
    def asks_encoder(self) -> bool:
        """Whether decisions depend on the encoder: without context, literal words are their table."""
        return self.literal is None or self.context is not None

    @property
    def temperature(self) -> float:
        """What the logits of documents are divided by before they become probabilities: 1 without a calibration."""
        return 1.0 if self.calibration is None else self.calibration.figures.temperature

    def probabilities(self, logits: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        """The calibrated probabilities of a document's labels. Dividing all logits by one number keeps their order."""
        return self.output.probabilities(logits / self.temperature)

    def output_of(self, head: str) -> OutputKind:
        """What a head puts out."""
        return CLASSES if head == TAG else self.output

    def adopt(self, view: "LexicalSAE") -> None:
        """Become what a view of this model is: its parts, dimensions and settings, until another is adopted."""
        self._modules, self.dimensions, self.config = view._modules, view.dimensions, view.config

    def encoder_parameters(self) -> Iterator[nn.Parameter]:
        """What makes the encoder's states: the backbone, and the vectors of orthographic features where it gets
        them."""
        yield from self.backbone.parameters()
        if self.shape_vectors is not None:
            yield self.shape_vectors

    def encoder_states(
        self,
        input_ids: TokenIds,
        attention_mask: TokenMask,
        shapes: Bool[Tensor, "B L S"] | None = None,
        windows: Windows | None = None,
    ) -> EncoderStates:
        """The encoder's last hidden states; with orthographic features as input if the model is set so.

        Texts that are longer than a window are read in windows, by default in all of theirs.
        """
        windows = windows or self.windows(input_ids, attention_mask)
        if windows is not None:
            return windows.states(self.backbone.encoder_states, input_ids)
        return self.backbone.encoder_states(input_ids, attention_mask.bool(), self._told(shapes))

    def windows(self, input_ids: TokenIds, attention_mask: TokenMask) -> Windows | None:
        """The windows of a batch with a text that is longer than one; None for other batches."""
        if input_ids.shape[1] <= self.window or self.literal is None or self.config.long_texts == "cut":
            return None
        around = special_tokens_around(self.tokenizer)
        return Windows.of(attention_mask.bool(), self.window, around, self.literal.begins(input_ids))

    def read_at_once(self, texts: Iterable[Sequence[int]]) -> Iterator[list[int]]:
        """The tokens of tokenised texts as the encoder reads them: those of each text, or of each of its windows."""
        for ids in texts:
            at_once = torch.tensor([ids], device=self.gate.closed.device)
            windows = self.windows(at_once, torch.ones_like(at_once, dtype=torch.bool))
            if windows is None:
                yield list(ids)
            else:
                parts = zip(windows.columns, windows.mask, strict=True)
                yield from (at_once[0, at[mask]].tolist() for at, mask in parts)

    def _told(self, shapes: Bool[Tensor, "B L S"] | None) -> Float[Tensor, "B L I"] | None:
        """What shapes add to the vectors that the encoder reads; nothing if it does not get them."""
        if self.shape_vectors is None or shapes is None:
            return None
        return shapes.to(self.shape_vectors.dtype) @ self.shape_vectors

    def word_logits(
        self,
        input_ids: TokenIds,
        attention_mask: Bool[Tensor, "B L"],
        states: EncoderStates | None = None,
        shapes: Bool[Tensor, "B L S"] | None = None,
    ) -> Float[Tensor, "B L V"]:
        """Logit of every dimension at every position; -inf at padding, which no gate opens."""
        hidden = self._hidden(input_ids, attention_mask, states, shapes)
        return self._all_columns(self.projection.everywhere(hidden, input_ids, attention_mask))

    def _all_columns(self, logits: Float[Tensor, "*batch W"]) -> Float[Tensor, "*batch V"]:
        """Logits of words with a place for each shape feature."""
        return logits if self.shapes is None else self.shapes.add_columns(logits)

    def _hidden(
        self,
        input_ids: TokenIds,
        mask: Bool[Tensor, "B L"],
        states: EncoderStates | None,
        shapes: Bool[Tensor, "B L S"] | None = None,
    ) -> Float[Tensor, "B L D"]:
        """What the decoder multiplies, from the encoder's states where the caller has them."""
        if states is not None:
            return self.backbone.transform(states)
        return self.backbone.hidden(input_ids, mask, self._told(shapes))

    def encode(
        self,
        input_ids: TokenIds,
        attention_mask: TokenMask,
        states: EncoderStates | None = None,
        shapes: Bool[Tensor, "B L S"] | None = None,
    ) -> EncodedSequence:
        """Strength of every word at every position, with the gate's own account of it.

        `states` are `encoder_states` of the same input, if they are there already. Without `shapes`, how words are
        written is not known, as in a document.
        """
        mask = attention_mask.bool()
        if self.literal is not None:
            return self._literal_sequence(input_ids, mask, states)
        logits = self.word_logits(input_ids, mask, states, shapes)
        gate = self.gate(logits)
        return EncodedSequence(self._with_shapes(self.topk(self.saturation(gate.activated)), shapes), gate, logits)

    def _literal_sequence(
        self, input_ids: TokenIds, mask: Bool[Tensor, "B L"], states: EncoderStates | None
    ) -> EncodedSequence:
        """Every word at its position, with its share of the word's activation in the document: the slow form."""
        read = read_words(self, input_ids, mask, states)
        at = (read.rows, read.positions, read.words)
        logits = read.defaults.new_full((*input_ids.shape, len(self.dimensions)), -torch.inf).index_put(
            at, torch.zeros_like(read.defaults)
        )
        nothing = torch.zeros_like(logits)
        return EncodedSequence(nothing.index_put(at, read.activations), self.gate(logits), logits)

    def _literal_document(
        self,
        input_ids: TokenIds,
        mask: Bool[Tensor, "B L"],
        states: EncoderStates | None,
        is_read: Bool[Tensor, "B L"] | None,
        *,
        live_only: bool,
    ) -> EncodedDocument:
        """The activation of every word; the gate reports which of them context shifted, and how nearly."""
        read = read_words(self, input_ids, mask, states, is_read=is_read)
        live, columns = read.words.unique(return_inverse=True)
        words, columns = (live, columns) if live_only else (None, read.words)
        shape = (len(input_ids), len(live) if live_only else len(self.dimensions))
        nothing = read.activations.new_zeros(shape)
        at = (read.rows, columns)
        activations = nothing.index_put(at, read.activations, accumulate=True)
        place = read.rows * shape[1] + columns
        shifted, smooth = (
            nothing.flatten().scatter_reduce(0, place, part, "amax").view(shape)
            for part in (read.shifts.is_shifted.to(nothing.dtype), read.shifts.smooth_count)
        )
        logits = torch.full_like(nothing, -torch.inf).index_put(at, torch.zeros_like(read.defaults))
        return EncodedDocument(activations, GateOutput(activations, shifted, smooth), logits, words)

    def _refuse_positions(self) -> None:
        if self.literal is not None:
            raise SettingsError(
                "a model with literal words decides on documents: a word's tag does not follow from the word alone. "
                "Tag with recipe: neighbours"
            )

    def encode_at(
        self,
        input_ids: TokenIds,
        attention_mask: TokenMask,
        chosen: Bool[Tensor, "B L"],
        states: EncoderStates | None = None,
        shapes: Bool[Tensor, "B L S"] | None = None,
        *,
        live_only: bool = False,
    ) -> EncodedDocument:
        """The rows of `encode` at the chosen positions, with gradients; [B, L, V] is never made.

        `live_only` as in `encode_document`.
        """
        self._refuse_positions()
        present = self._required(shapes, chosen)
        hidden = self._hidden(input_ids, attention_mask.bool(), states, shapes)
        # All words without gradients and then the live ones with them, where few words can be computed alone.
        projection = self.projection
        twice = live_only and projection.computes_words_alone and self.gate.reach() is not None
        with torch.set_grad_enabled(torch.is_grad_enabled() and not twice):
            logits = self._all_columns(projection.at(hidden, input_ids, chosen))
        words, in_reach = (
            self._live_words(logits, self.own_words(input_ids)[chosen]) if live_only else None,
            self._in_reach(logits),
        )
        if words is not None and twice:
            named = words if self.shapes is None else words[: -len(self.shapes)]
            logits = self._all_columns(projection.words_at(hidden, chosen, named))
        elif words is not None:
            logits = logits.index_select(1, words)
        gate = self.gate(logits, words)
        sparse = self.topk(self.saturation(gate.activated))
        return EncodedDocument(self._with_shapes(sparse, present), gate, logits, words, in_reach)

    def _live_words(self, logits: Float[Tensor, "N V"], own: Int[Tensor, "*batch"]) -> Int[Tensor, " K"] | None:
        """Dimensions that a training step on these samples can change, in their order; None if that may be all.

        A text's own words may be pushed to open from any distance below their threshold. Shapes know no thresholds.
        """
        live = self.gate.live_words(logits)
        if live is None:
            return None
        own = own[own != NO_WORD]
        live[own] |= ~self.gate.closed[own]
        if self.shapes is not None:
            live[self.shapes.first :] = True
        return live.nonzero().flatten()

    def _in_reach(self, logits: Float[Tensor, "N V"]) -> Bool[Tensor, " V"] | None:
        return None if self.neighbourhood is None else logits.detach().isfinite().any(0)

    def _with_shapes(
        self, words: Float[Tensor, "*batch V"], shapes: Bool[Tensor, "*batch S"] | None
    ) -> Float[Tensor, "*batch V"]:
        if self.shapes is None or shapes is None:
            return words
        return self.shapes.fill(words, shapes, self.gate.closed)

    def _required(
        self, shapes: Bool[Tensor, "B L S"] | None, chosen: Bool[Tensor, "B L"]
    ) -> Bool[Tensor, "N S"] | None:
        """Shapes of positions that are to be tagged: a tagger that was trained with them needs them."""
        if (self.shapes is None) == (shapes is None):
            return None if shapes is None else shapes[chosen]
        if shapes is None:
            raise SettingsError(
                "this model was made to see how words are written: give `shapes`, what model.shapes.describe(words) "
                "holds for each word at its first token"
            )
        raise SettingsError("this model has no shape features; leave `shapes` out, or set model.shapes in its settings")

    def forward(self, input_ids: TokenIds, attention_mask: TokenMask) -> Float[Tensor, "B L V"]:
        """Strength of every word at every position."""
        return self.encode(input_ids, attention_mask).sparse_sequence

    def encode_document(
        self,
        input_ids: TokenIds,
        attention_mask: TokenMask,
        states: EncoderStates | None = None,
        *,
        live_only: bool = False,
        is_read: Bool[Tensor, "B L"] | None = None,
    ) -> EncodedDocument:
        """Strength of every word in the document; `states` as in `encode`, `is_read` as in `read_words`.

        Gate and saturation are non-decreasing, so pooling logits first gives the same activations as pooling
        activations, and neither gate nor penalties ever see [B, L, V].

        `live_only` leaves out words that no text of the batch opens or can learn to open by this step, nearly all of
        them: what is computed and learned stays the same, but for which words are masked at random, at a fraction of
        the cost. Gates under which every word learns have all columns all the same.
        """
        if self.literal is not None:
            return self._literal_document(input_ids, attention_mask.bool(), states, is_read, live_only=live_only)
        if not self._pools_logits_first:
            encoded = self.encode(input_ids, attention_mask, states)
            # Every field is non-decreasing in the logit, so its maximum is what the greatest logit gives.
            gate = encoded.gate.map(lambda field: field.amax(1))
            pooled = self.pool(encoded.sparse_sequence, attention_mask.bool())
            logits = encoded.logits.amax(1)
            return EncodedDocument(pooled, gate, logits, in_reach=self._in_reach(logits))
        logits = self.max_logits(input_ids, attention_mask, states)
        words, in_reach = (
            self._live_words(logits, self.own_words(input_ids)) if live_only else None,
            self._in_reach(logits),
        )
        logits = logits if words is None else logits.index_select(1, words)
        gate = self.gate(logits, words)
        return EncodedDocument(self.saturation(gate.activated), gate, logits, words, in_reach)

    @torch.no_grad()
    def encode_sparse(
        self, input_ids: TokenIds, attention_mask: TokenMask, states: EncoderStates | None = None
    ) -> SparseCode:
        """The active words of each document with the positions that gave them; for inference.

        `states` as in `encode`.
        """
        mask = attention_mask.bool()
        if self.literal is not None:
            read = read_words(self, input_ids, mask, states)
            return sparse_code(read, (len(input_ids), len(self.dimensions)))
        if not self._pools_logits_first:
            sequence = self.encode(input_ids, mask, states).sparse_sequence
            pooled = self.pool(sequence, mask)
            rows, ids = pooled.nonzero(as_tuple=True)
            positions = sequence[rows, :, ids].argmax(1) if self.pool.pools_logits_first else None
            return SparseCode.from_dense(pooled, positions)
        hidden = self._hidden(input_ids, mask, states)
        return self._code(self.projection.open_words(hidden, input_ids, mask), len(hidden))

    @torch.no_grad()
    def encode_positions(
        self,
        input_ids: TokenIds,
        attention_mask: TokenMask,
        chosen: Bool[Tensor, "B L"],
        shapes: Bool[Tensor, "B L S"] | None = None,
        states: EncoderStates | None = None,
    ) -> SparseCode:
        """The active words of each chosen position, a row of the code per position; for inference.

        `read(code, TAG)` then tags them. [B, L, V] is never made. Padding cannot be chosen: it has no words. A cap per
        position is one on words; shapes stay. `shapes` are those of all words, not of the chosen ones alone: the
        encoder may get them as input. `states` as in `encode`.
        """
        self._refuse_positions()
        mask = attention_mask.bool()
        if chosen.dtype != torch.bool:
            raise SettingsError(
                f"chosen must be a mask of type bool, not {chosen.dtype}: as numbers it would be an index"
            )
        if bool((chosen & ~mask).any()):
            raise SettingsError(
                f"{int((chosen & ~mask).sum())} of the chosen positions are padding: choose within the mask"
            )
        present = self._required(shapes, chosen)
        hidden = self._hidden(input_ids, mask, states, shapes)
        code = self._code(self.projection.open_at(hidden, input_ids, chosen), int(chosen.sum()))
        if self.topk.k and not self.training:
            code = code.keep_strongest(self.topk.k)
        if self.shapes is None or present is None:
            return code
        return self.shapes.join(code, present, self.gate.closed, chosen.nonzero()[:, 1])

    def _code(self, found: Candidates, rows: int) -> SparseCode:
        """The activations of the words that the gate opens."""
        values = self.saturation(self.gate(found.logits, found.words).activated)
        is_open = values != 0
        at, words, _, positions = (field[is_open] for field in found)
        return SparseCode.from_entries(at, words, values[is_open], positions, (rows, len(self.dimensions)))

    def max_logits(
        self, input_ids: TokenIds, attention_mask: TokenMask, states: EncoderStates | None = None
    ) -> Float[Tensor, "B V"]:
        """Greatest logit of every dimension over the real positions, sense slots included."""
        mask = attention_mask.bool()
        if self.literal is not None:
            return self._literal_document(input_ids, mask, states, None, live_only=False).logits
        return self._all_columns(self.projection.pooled(self._hidden(input_ids, mask, states), input_ids, mask))

    @property
    def _pools_logits_first(self) -> bool:
        """Whether documents may be pooled before the gate: not with attention, nor with a cap per position."""
        return self.pool.pools_logits_first and (self.training or self.topk.k == 0)

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
        return self.head(head).read(code)

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

    def decide(
        self, sparse_vector: Float[Tensor, "*batch V"], head: str, words: Int[Tensor, " V"] | None = None
    ) -> CircuitState:
        """A head's decision on sparse vectors, of all words or of some; in training, after random word masking."""
        return self.head(head)(self.masking(sparse_vector), words)

    def head(self, name: str = CLASSIFY) -> Head:
        """The head of this name."""
        if name not in self.heads:
            raise SettingsError(f"this model has no head {name!r}; it has: {', '.join(self.heads)}")
        return self.heads[name]  # pyright: ignore[reportReturnType]

    def add_heads(self, names: Sequence[str], like: str) -> None:
        """New heads for the labels of another one, for as long as training needs them."""
        size, labels = len(self.dimensions), self.labels[like]
        for name in names:
            head = self.config.head.build(size, len(labels)).to(next(self.head(like).parameters()))
            if isinstance(head, TableHead):
                head.make_room(self.backbone.input_width)
            self.heads[name], self.labels[name] = head, labels

    def drop_heads(self, names: Sequence[str]) -> None:
        """Take heads away again."""
        for name in names:
            del self.heads[name], self.labels[name]

    def distinct_heads(self, names: Iterable[str] | None = None) -> list[Head]:
        """The heads of these names, by default of all, each once: a shared head has several names."""
        return list(dict.fromkeys(self.head(name) for name in (self.heads if names is None else names)))


def window_of(config: ModelConfig, backbone: Backbone) -> int:
    """Most tokens that the encoder of a model with these settings reads at once."""
    return min(config.max_length, backbone.max_tokens)


def longest_text(config: ModelConfig, backbone: Backbone) -> int:
    """Longest text in tokens that a model with these settings reads."""
    special = backbone.tokenizer.num_special_tokens_to_add()
    return longest(window_of(config, backbone), special, config.windows_read)


def _build_heads(config: ModelConfig, size: int, labels: Mapping[str, Sequence[str]]) -> dict[str, nn.Module]:
    """A new head per name; with `shared_head`, one head under every name."""
    if not config.shared_head:
        return {name: config.head.build(size, len(own)) for name, own in labels.items()}
    return dict.fromkeys(labels, config.head.build(size, len(next(iter(labels.values())))))


def _with_multi_piece_words(config: ModelConfig, backbone: Backbone, texts: Sequence[str]) -> ModelConfig:
    """The settings with every word of these texts that the tokenizer splits; a list that is given stays."""
    if config.literal is None or config.literal.multi_piece_words or not texts:
        return config
    read = tokenize(backbone.tokenizer, texts, longest_text(config, backbone))
    vocabulary = Vocabulary(backbone.tokenizer, backbone.vocab_size)
    words = multi_piece_words(map(vocabulary.split_words, read.ids), vocabulary)
    return config.model_copy(update={"literal": config.literal.model_copy(update={"multi_piece_words": words})})


def _with_cut_words(config: ModelConfig, backbone: Backbone, texts: Sequence[str]) -> ModelConfig:
    """The settings with the words that get a dimension because of these texts; a list that is given stays."""
    near = config.neighbourhood
    if near is None or near.cut_words or not near.most_cut_words or not texts:
        return config
    read = tokenize(backbone.tokenizer, texts, min(config.max_length, backbone.max_tokens))
    vocabulary = Vocabulary(backbone.tokenizer, backbone.vocab_size)
    words = frequent_cut_words(read.ids, vocabulary, near.most_cut_words, function_words=near.function_words)
    return config.model_copy(update={"neighbourhood": near.model_copy(update={"cut_words": words})})


def _check_split_words_are_named(config: ModelConfig, vocabulary: Vocabulary, unnamed: Bool[Tensor, " V"]) -> None:
    """No token could ever open the senses of a word that has no neighbourhood."""
    dead = [vocabulary.names[i] for i in (config.expander.token_ids if config.expander else ()) if unnamed[i]]
    if dead:
        raise SettingsError(
            f"vpe.token_ids splits {', '.join(map(repr, dead))}, which no token may activate in a neighbourhood "
            "(function words, single letters and word pieces have none): split other words, or leave one of the two out"
        )


def _checked_labels(
    labels: Mapping[str, Sequence[str]], output: OutputKind, *, shared: bool
) -> dict[str, tuple[str, ...]]:
    checked = {name: tuple(values) for name, values in labels.items()}
    if not checked:
        raise SettingsError("a model needs at least one head, e.g. labels={'classify': ['negative', 'positive']}")
    for name, values in checked.items():
        if not name.isidentifier() or hasattr(nn.ModuleDict, name):
            raise SettingsError(f"head {name!r} cannot be named so; choose a plain name such as 'classify' or 'tag'")
        least = CLASSES.least_names if name == TAG else output.least_names
        if len(values) < least:
            wanted = "at least two labels" if least == CLASSES.least_names else "a name of what it puts out"
            raise SettingsError(f"head {name!r} needs {wanted}, got {list(values)}")
        if len(set(values)) < len(values):
            raise SettingsError(f"head {name!r} has a label twice: {list(values)}")
    if shared:
        _check_labels_can_be_shared(checked)
    return checked


def _check_labels_can_be_shared(labels: Mapping[str, tuple[str, ...]]) -> None:
    """One head has one list of labels, and is shared only if several tasks use it."""
    if len(labels) < 2:
        raise SettingsError(
            f"model.shared_head is one head for several tasks, but this model has only {next(iter(labels))!r}; give "
            "labels for 'classify' and 'tag' (data.documents in an experiment), or set model.shared_head: false"
        )
    (first, expected), *others = labels.items()
    for name, values in others:
        if values != expected:
            raise SettingsError(
                f"model.shared_head needs the same labels in the same order for every task, but {first!r} has "
                f"{list(expected)} and {name!r} has {list(values)}; make them equal, or set model.shared_head: false"
            )
