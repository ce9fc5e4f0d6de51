"""Words that do not depend on one another: masking a word with weight should leave the other words as they are.

Context may reverse a word because of "not", which carries little weight itself. It may not weaken *great* because
*boring* stands elsewhere in the text: that would count *boring* twice, under another word's name. So the word of a
text that carries most is masked, and whatever materially changes at the other words is a loss. Not in sentences that
were made to teach context, and no lesser word is masked: either would ask that "not" change nothing.
"""

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, PositiveFloat
from torch import Tensor

from lexical_sae.circuits.losses import Scalar
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.literal_reading import WordsRead, read_words
from lexical_sae.training.samples import ReadTokens
from lexical_sae.utils.part import PartConfig


class Independence:
    """How much the contributions of the other words change, in logits per text, when one word is masked."""

    class Config(PartConfig):
        weight: PositiveFloat = 1.5
        """How much a change of one logit counts."""
        share: float = Field(default=0.125, gt=0, le=1)
        """Share of the texts of a step in which a word is masked; each costs one more pass of the encoder."""

        def build(self) -> "Independence":
            return Independence(self)

    def __init__(self, config: Config) -> None:
        self.config = config

    def __call__(self, model: LexicalSAE, tokens: ReadTokens, is_made: Bool[Tensor, " B"]) -> Scalar:
        """What is added to the loss of a step; texts are sampled at random from those that were not made by rule."""
        given = (~is_made).nonzero().flatten()
        count = min(len(given), max(1, round(self.config.share * len(is_made))))
        if not count:
            return tokens.states.new_zeros(())
        some = given[torch.randperm(len(given))[:count].to(given.device)]
        return self.config.weight * change_of_others(model, tokens.take(some))


def change_of_others(model: LexicalSAE, tokens: ReadTokens) -> Scalar:
    """Mask one word of each text wherever it stands; sum of |change| in the others' contributions, mean over texts."""
    assert model.context is not None
    input_ids, mask, is_read = tokens.input_ids, tokens.mask, tokens.is_read
    before = read_words(model, input_ids, mask, tokens.states, is_read=is_read)
    sizes = model.context.size[before.words]
    weights = before.activations.detach().abs() * sizes
    if is_read is not None:
        # A word outside of what is read would change nothing.
        weights = weights * is_read[before.rows, before.positions]
    masked_word = _top_words(before, weights, len(input_ids))
    mask_token = int(model.tokenizer.mask_token_id)  # pyright: ignore[reportArgumentType]
    hidden = input_ids.masked_fill(_tokens_of(model, input_ids, masked_word), mask_token)
    # The words are those of the text as it is; only the states come from the masked one.
    states = model.encoder_states(hidden, mask, windows=tokens.windows)
    after = read_words(model, input_ids, mask, states, is_read=is_read)
    is_other = before.words != masked_word[before.rows]
    changes = (after.activations - before.activations).abs() * sizes * is_other
    return changes.sum() / len(input_ids)


def _top_words(read: WordsRead, weights: Float[Tensor, " N"], texts: int) -> Int[Tensor, " B"]:
    """The word of each text with the greatest weight; NO_WORD where none has any."""
    best = weights.new_zeros(texts).scatter_reduce(0, read.rows, weights, "amax")
    is_best = (weights == best[read.rows]) & (weights > 0)
    chosen = torch.full((texts,), NO_WORD, device=weights.device)
    return chosen.index_put((read.rows[is_best],), read.words[is_best])


def _tokens_of(model: LexicalSAE, input_ids: Int[Tensor, "B L"], words: Int[Tensor, " B"]) -> Bool[Tensor, "B L"]:
    """Every token of the given word of each text."""
    assert model.literal is not None
    begins = model.literal.begins(input_ids)
    own = model.own_words(input_ids)
    # Each token takes the word that stands at the last beginning before it.
    at = torch.where(begins, torch.arange(input_ids.shape[1], device=input_ids.device), 0).cummax(1).values
    return (own.gather(1, at) == words[:, None]) & (words[:, None] != NO_WORD)
