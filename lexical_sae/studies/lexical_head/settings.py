"""Settings of a lexical head's fit; separate, so that `--help` does not import the rest."""

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from lexical_sae.utils.part import PartConfig


class LexicalHeadSettings(PartConfig):
    """How a lexical head is fitted."""

    tokens: PositiveInt = 1_500_000
    """Tokens of text to fit on, an equal share from each file."""
    held_out_tokens: PositiveInt = 60_000
    """Tokens of held-out text to score on."""
    longest_piece: PositiveInt = 126
    """Longest piece the text is cut into, in tokens; the shortest has 4."""
    cached_tokens: PositiveInt = 1_000_000
    """Encoder states in memory at a time: two bytes per number, so 0.8 GB at 384 numbers per token."""
    passes: PositiveInt = 2
    """Times each cached state is used."""
    batch_size: PositiveInt = 1024
    candidates: PositiveInt = 3000
    """Random words in the softmax of a step, besides the batch's own; at most the whole vocabulary."""
    learning_rate: PositiveFloat = 1e-2
    weight_decay: NonNegativeFloat = 0.01
    masked_share: float = Field(default=0.15, ge=0, le=1)
    """Share of tokens masked in a corrupted piece; half of the pieces are corrupted."""
    swapped_share: float = Field(default=0.15, ge=0, le=1)
    """Share of tokens replaced by random ones in a corrupted piece."""
    frequency_threshold: PositiveFloat = 4e-5
    """A token more frequent than this is used `sqrt(threshold / frequency)` of the time."""
    neighbour_share: float = Field(default=0.2, ge=0, lt=1)
    """Share of the target given to a word's nearest words, also where it begins a longer one."""
    neighbours: PositiveInt = 32
    neighbour_temperature: PositiveFloat = 0.1
    """Softmax temperature of a neighbour's share: cosine difference for a factor of e."""
    check_every: PositiveInt = 100
    """Steps between validations."""
    patience: PositiveInt = 6
    """Validations without improvement before fitting stops."""
    half_precision: bool = False
    """Store the head in half precision, in half the space; it is scored as it is stored."""
    seed: int = 0
