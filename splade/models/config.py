"""`ModelConfig`: the union of the parts' settings, as recipes write it and `save_pretrained` keeps it."""

from typing import Annotated

from pydantic import Field

from splade.models.bundled import DEFAULT_BACKBONE
from splade.models.heads import BcosHead, ReluHead
from splade.models.layers.activation import DReLU, GatedJumpReLU, JumpReLUGate
from splade.models.layers.masking import WordMasking
from splade.models.layers.neighbourhood import Neighbourhood
from splade.models.layers.pooling import AttentionPool, MaxPool
from splade.models.layers.saturation import Identity, Log1p
from splade.models.layers.shapes import ShapeFeatures
from splade.models.layers.virtual_expander import VirtualExpander
from splade.part import PartConfig, Shorthand

GateConfig = Annotated[DReLU.Config | GatedJumpReLU.Config | JumpReLUGate.Config, Field(discriminator="kind")]
SaturationConfig = Annotated[Log1p.Config | Identity.Config, Field(discriminator="kind")]
PoolConfig = Annotated[MaxPool.Config | AttentionPool.Config, Field(discriminator="kind")]
HeadConfig = Annotated[ReluHead.Config | BcosHead.Config, Field(discriminator="kind")]


class ModelConfig(PartConfig):
    """Every part of a `LexicalSAE`, in data-flow order."""

    name: str = DEFAULT_BACKBONE
    """Masked language model: `bundled:minilm`, a local folder, or a hub name."""
    lexical_head: str | None = None
    """Folder of a head made by `lexical-sae fit-lexical-head`; null uses the checkpoint's own (or the bundled one)."""
    max_length: int = Field(default=256, ge=3)
    """Longest text in tokens, special tokens included; longer texts are cut, and it is said."""
    expander: VirtualExpander.Config | None = None
    """Sense slots for chosen words; the `vpe` section of an experiment writes this."""
    neighbourhood: Neighbourhood.Config | None = None
    """Which words a token may open: itself and those nearest to it; null lets every token open every word."""
    shapes: ShapeFeatures.Config | None = None
    """For taggers: named dimensions for how a word is written, which an uncased encoder does not see; null has none."""
    gate: Annotated[GateConfig, Shorthand] = JumpReLUGate.Config()
    """Which words are open: `drelu`, `gated_jumprelu` or `jumprelu`."""
    saturation: Annotated[SaturationConfig, Shorthand] = Log1p.Config()
    """How strengths are compressed: `log1p` or `identity`."""
    pool: Annotated[PoolConfig, Shorthand] = MaxPool.Config()
    """How positions become one document: `max` or `attention`."""
    topk_per_position: int = Field(default=0, ge=0)
    """At inference, keep only the k strongest words of each position; 0 keeps all."""
    masking: WordMasking.Config | None = None
    """Words zeroed at random in training, so that removing words is in-distribution; null masks nothing."""
    head: Annotated[HeadConfig, Shorthand] = ReluHead.Config()
    """From the sparse vector to classes: `relu` or `bcos`."""
    shared_head: bool = False
    """Whether all tasks use one head: `classify` and `tag` then have the same labels and share every parameter. false
    gives each task a head of its own."""
