"""`LexicalSAE`: backbone > neighbourhood > expander > gate > saturation > pool > head.

Documents and positions have a head each, or share one (`shared_head`): then no parameter is particular to a task.
Shape features, where a tagger has them, join the words before the head. Two routes lead from text to a decision, and
give the same answer:
- `forward` makes the activation of every word at every position, [B, L, V]; `classify` and `tag` read it.
- `encode_document` pools logits before the gate where the parts allow it; `classify_document` reads it.

How words are read is in `literal_reading` and `projected_reading`, what a new model is made of in `assembly`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.models import projected_reading
from lexical_sae.models.assembly import (
    build_heads,
    checked_labels,
    dimension_embeddings,
    dimension_table,
    never_open,
    with_words_of,
)
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.calibration import Calibration
from lexical_sae.models.circuit_state import CircuitState, SparseCircuitState
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.encoded import EncodedDocument, EncodedSequence
from lexical_sae.models.heads import CLASSIFY, TAG, Head
from lexical_sae.models.layers.activation import Gate
from lexical_sae.models.layers.pooling import TopK
from lexical_sae.models.layers.screening import Screen
from lexical_sae.models.literal_reading import literal_document, literal_sequence, read_words, sparse_code
from lexical_sae.models.long_texts import Windows, longest_text, window_of, windows_of
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.models.projected_reading import Shapes, States
from lexical_sae.models.projection import Projection
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.models.table_head import TableHead
from lexical_sae.models.word_views import with_words
from lexical_sae.outputs import CLASSES, OutputKind
from lexical_sae.types import TokenIds, TokenMask
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.precision import full_precision


class LexicalSAE(nn.Module):
    """A classifier and tagger whose features are words."""

    shape_vectors: nn.Parameter | None

    def __init__(
        self, config: ModelConfig, backbone: Backbone, labels: Mapping[str, Sequence[str]], output: OutputKind = CLASSES
    ) -> None:
        super().__init__()
        self.config = config
        self.output = output
        """What it puts out for a text; a tag is always one of several."""
        self.labels = checked_labels(config, labels, output)
        self.backbone = backbone
        vocabulary = Vocabulary(backbone.tokenizer, backbone.vocab_size)
        self.dimensions = dimension_table(config, vocabulary)
        size = len(self.dimensions)
        self.expander = config.expander.build(backbone.width) if config.expander else None
        self.neighbourhood = config.neighbourhood.build(vocabulary) if config.neighbourhood else None
        self.gate: Gate = config.gate.build(size)
        self.gate.close(never_open(config, self.dimensions))
        self.literal = config.literal.build(vocabulary) if config.literal else None
        self.context = config.context.build(backbone.encoder_width, size) if config.context else None
        shapes = config.shapes.dimensions() if config.shapes else []
        self.shapes = config.shapes.build(size - len(shapes)) if config.shapes else None
        shapes_in_encoder = config.shapes is not None and config.shapes.in_encoder
        # Zero at first: a new model's encoder is the pretrained one.
        vectors = nn.Parameter(torch.zeros(len(shapes), backbone.input_width)) if shapes_in_encoder else None
        self.register_parameter("shape_vectors", vectors)
        self.saturation = config.saturation.build()
        self.topk = TopK(config.topk_per_position)
        self.pool = config.pool.build(size)
        self.masking = config.masking.build() if config.masking else nn.Identity()
        self.heads = nn.ModuleDict(build_heads(config, size, self.labels))
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
        model = cls(with_words_of(config, backbone, texts), backbone, labels, output)
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
            head.start_from(dimension_embeddings(self))

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

    def encoder_states(
        self,
        input_ids: TokenIds,
        attention_mask: TokenMask,
        shapes: Shapes | None = None,
        windows: Windows | None = None,
    ) -> States:
        """The encoder's last hidden states; with orthographic features as input if the model is set so.

        Texts that are longer than a window are read in windows, by default in all of theirs.
        """
        windows = windows or windows_of(self, input_ids, attention_mask)
        if windows is not None:
            return windows.states(self.backbone.encoder_states, input_ids)
        return self.backbone.encoder_states(input_ids, attention_mask.bool(), self.shape_inputs(shapes))

    def shape_inputs(self, shapes: Shapes | None) -> Float[Tensor, "B L I"] | None:
        """What shapes add to the vectors that the encoder reads; nothing if it does not get them."""
        if self.shape_vectors is None or shapes is None:
            return None
        return shapes.to(self.shape_vectors.dtype) @ self.shape_vectors

    def encode(
        self, input_ids: TokenIds, attention_mask: TokenMask, states: States | None = None, shapes: Shapes | None = None
    ) -> EncodedSequence:
        """Strength of every word at every position, with the gate's own account of it.

        `states` are `encoder_states` of the same input, if they are there already. Without `shapes`, how words are
        written is not known, as in a document.
        """
        mask = attention_mask.bool()
        if self.literal is not None:
            return literal_sequence(self, input_ids, mask, states)
        return projected_reading.sequence(self, input_ids, mask, states, shapes)

    def encode_at(
        self,
        input_ids: TokenIds,
        attention_mask: TokenMask,
        chosen: Bool[Tensor, "B L"],
        states: States | None = None,
        shapes: Shapes | None = None,
        *,
        live_only: bool = False,
    ) -> EncodedDocument:
        """The rows of `encode` at the chosen positions, with gradients; [B, L, V] is never made.

        `live_only` as in `encode_document`.
        """
        mask = attention_mask.bool()
        return projected_reading.chosen_positions(self, input_ids, mask, chosen, states, shapes, live_only=live_only)

    def forward(self, input_ids: TokenIds, attention_mask: TokenMask) -> Float[Tensor, "B L V"]:
        """Strength of every word at every position."""
        return self.encode(input_ids, attention_mask).sparse_sequence

    def encode_document(
        self,
        input_ids: TokenIds,
        attention_mask: TokenMask,
        states: States | None = None,
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
        mask = attention_mask.bool()
        if self.literal is not None:
            return literal_document(self, input_ids, mask, states, is_read, live_only=live_only)
        return projected_reading.document(self, input_ids, mask, states, live_only=live_only)

    @torch.no_grad()
    def encode_sparse(self, input_ids: TokenIds, attention_mask: TokenMask, states: States | None = None) -> SparseCode:
        """The active words of each document with the positions that gave them; for inference.

        `states` as in `encode`.
        """
        mask = attention_mask.bool()
        if self.literal is not None:
            read = read_words(self, input_ids, mask, states)
            return sparse_code(read, (len(input_ids), len(self.dimensions)))
        return projected_reading.document_code(self, input_ids, mask, states)

    @torch.no_grad()
    def encode_positions(
        self,
        input_ids: TokenIds,
        attention_mask: TokenMask,
        chosen: Bool[Tensor, "B L"],
        shapes: Shapes | None = None,
        states: States | None = None,
    ) -> SparseCode:
        """The active words of each chosen position, a row of the code per position; for inference.

        `read(code, TAG)` then tags them. [B, L, V] is never made. Padding cannot be chosen: it has no words. A cap per
        position is one on words; shapes stay. `shapes` are those of all words, not of the chosen ones alone: the
        encoder may get them as input. `states` as in `encode`.
        """
        return projected_reading.positions_code(self, input_ids, attention_mask.bool(), chosen, shapes, states)

    def max_logits(
        self, input_ids: TokenIds, attention_mask: TokenMask, states: States | None = None
    ) -> Float[Tensor, "B V"]:
        """Greatest logit of every dimension over the real positions, sense slots included."""
        mask = attention_mask.bool()
        if self.literal is not None:
            return literal_document(self, input_ids, mask, states, None, live_only=False).logits
        return projected_reading.max_logits(self, input_ids, mask, states)

    def classify(
        self, sparse_sequence: Float[Tensor, "B L V"], attention_mask: TokenMask, head: str = CLASSIFY
    ) -> CircuitState:
        """Decision on each document, from the words at its positions."""
        return self.decide(self.pool(sparse_sequence, attention_mask.bool()), head)

    def classify_document(self, input_ids: TokenIds, attention_mask: TokenMask, head: str = CLASSIFY) -> CircuitState:
        """Decision on each document, by the document route."""
        return self.decide(self.encode_document(input_ids, attention_mask).sparse_vector, head)

    def read(self, code: SparseCode, head: str = CLASSIFY) -> SparseCircuitState:
        """Decision on each document, from its active words alone; for inference."""
        return self.head(head).read(code)

    def tag(self, sparse_sequence: Float[Tensor, "*batch V"], head: str = TAG) -> Float[Tensor, "*batch C"]:
        """Logits of the tags at every position; one head serves all positions."""
        return self.decide(sparse_sequence, head).logits

    def tag_state(
        self, sparse_sequence: Float[Tensor, "B L V"], positions: Bool[Tensor, "B L"], head: str = TAG
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

    def distinct_heads(self, names: Iterable[str] | None = None) -> list[Head]:
        """The heads of these names, by default of all, each once: a shared head has several names."""
        return list(dict.fromkeys(self.head(name) for name in (self.heads if names is None else names)))
