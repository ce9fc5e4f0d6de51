"""`ModelConfig`: the union of the parts' settings, as recipes write it and `save_pretrained` keeps it."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lexical_sae.models.bundled import DEFAULT_BACKBONE
from lexical_sae.models.heads import BcosHead, ReluHead
from lexical_sae.models.layers.activation import DReLU, GatedJumpReLU, JumpReLUGate, PresenceGate
from lexical_sae.models.layers.context_shift import ContextShift
from lexical_sae.models.layers.literal_words import LiteralWords
from lexical_sae.models.layers.masking import WordMasking
from lexical_sae.models.layers.neighbourhood import Neighbourhood
from lexical_sae.models.layers.pooling import AttentionPool, MaxPool, SumPool
from lexical_sae.models.layers.saturation import Identity, Log1p
from lexical_sae.models.layers.shapes import ShapeFeatures
from lexical_sae.models.layers.virtual_expander import VirtualExpander
from lexical_sae.models.table_head import TableHead
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig, Shorthand
from lexical_sae.utils.plugins import OtherKinds, kinds_of

AnyGate = DReLU.Config | GatedJumpReLU.Config | JumpReLUGate.Config | PresenceGate.Config
OTHER_GATES = OtherKinds("gate", lambda: kinds_of(AnyGate))
register_gate = OTHER_GATES.register
"""Adds a gate of one's own to those that `model.gate` may name; a class decorator."""
GateConfig = Annotated[AnyGate, Field(discriminator="kind"), *OTHER_GATES.annotations]
SaturationConfig = Annotated[Log1p.Config | Identity.Config, Field(discriminator="kind")]
PoolConfig = Annotated[MaxPool.Config | AttentionPool.Config | SumPool.Config, Field(discriminator="kind")]
HeadConfig = Annotated[ReluHead.Config | BcosHead.Config | TableHead.Config, Field(discriminator="kind")]


LITERAL_PARTS = ("presence", "sum", "table")
"""Gate, pool and head of a model with literal words."""


class ModelConfig(PartConfig):
    """Every part of a `LexicalSAE`, in data-flow order."""

    name: str = DEFAULT_BACKBONE
    """Encoder: `bundled:minilm`, `bundled:mpnet`, `bundled:granite`, a local folder, or a hub name (docs: encoders)."""
    lexical_head: str | None = None
    """Folder of a head made by `lexical-sae fit-lexical-head`; null uses the checkpoint's own (or the bundled one)."""
    max_length: int = Field(default=256, ge=3)
    """Most tokens that the encoder reads at once, special tokens included; `long_texts` says what becomes of longer
    texts."""
    long_texts: Literal["cut", "whole"] = "cut"
    """`whole`: a text of more than `max_length` tokens is read in windows that overlap, and its words are those of all
    of it; for literal words. `cut`: its end is not read, with a warning."""
    most_windows: int = Field(default=32, ge=1)
    """Windows of a text that is read whole, at most; of a text that needs more the end is not read, with a warning."""
    expander: VirtualExpander.Config | None = None
    """Sense slots for chosen words; the `vpe` section of an experiment writes this."""
    neighbourhood: Neighbourhood.Config | None = None
    """Which words a token may open: itself and those nearest to it; null lets every token open every word."""
    literal: LiteralWords.Config | None = None
    """Literal words: the features of a text are the words written in it, whatever the masked-LM head predicts; null
    reads words from logits. Needs the gate `presence`, the pool `sum` and the head `table`; for documents."""
    context: ContextShift.Config | None = None
    """How far context may move a literal word's activation from its default in the table; null: not at all."""
    shapes: ShapeFeatures.Config | None = None
    """For taggers: named dimensions for how a word is written, which an uncased encoder does not see; null has none."""
    gate: Annotated[GateConfig, Shorthand] = JumpReLUGate.Config()
    """Which words are open: `drelu`, `gated_jumprelu`, `jumprelu`, or `presence` for literal words."""
    saturation: Annotated[SaturationConfig, Shorthand] = Log1p.Config()
    """How activations are compressed: `log1p` or `identity`."""
    pool: Annotated[PoolConfig, Shorthand] = MaxPool.Config()
    """How positions become one document: `max`, `attention`, or `sum` for literal words."""
    topk_per_position: int = Field(default=0, ge=0)
    """At inference, keep only the k strongest words of each position; 0 keeps all."""
    masking: WordMasking.Config | None = None
    """Words zeroed at random in training, so that removing words is in-distribution; null masks nothing."""
    head: Annotated[HeadConfig, Shorthand] = ReluHead.Config()
    """From the sparse vector to classes: `relu`, `bcos`, or `table` for literal words."""
    shared_head: bool = False
    """Whether all tasks use one head: `classify` and `tag` then have the same labels and share every parameter. false
    gives each task a head of its own."""

    @property
    def windows_read(self) -> int:
        """Of a long text, how many windows are read at most."""
        return self.most_windows if self.long_texts == "whole" else 1

    @model_validator(mode="after")
    def _literal_words_go_together(self) -> "ModelConfig":
        kinds = (self.gate.kind, self.pool.kind, self.head.kind)
        if self.literal is not None and (kinds != LITERAL_PARTS or self.neighbourhood or self.expander or self.shapes):
            raise SettingsError(
                "model.literal needs gate: presence, pool: sum and head: table, and neither neighbourhood nor vpe nor "
                f"shapes; got gate {kinds[0]}, pool {kinds[1]}, head {kinds[2]}. For those: recipe: neighbours"
            )
        if self.literal is None and (self.context is not None or set(kinds) & set(LITERAL_PARTS)):
            raise SettingsError(
                "model.context, gate: presence, pool: sum and head: table are for model.literal; set it"
            )
        if self.literal is None and self.long_texts == "whole":
            raise SettingsError("model.long_texts: whole is for model.literal; set long_texts: cut")
        return self
