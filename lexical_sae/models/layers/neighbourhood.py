"""Which words a token may activate: itself, and the words nearest to it in the decoder.

An encoder that is fine-tuned can write its decision into any dimension that is open, and then "and" means "positive".
With a neighbourhood, a word can open at a position only if the token that stands there is that word or is near to it:
take the token away and the word is gone with it. The names hold by construction, not by persuasion, and only N logits
per position are computed instead of V.

Words that the tokenizer cuts up have no row of their own in the decoder; those that the model is given speak for
themselves alone (`cut_words`).

1. `choose(weight)` fills the table once, from the pretrained decoder, before training.
2. `near_logits` computes the logits of each token's own candidates, [.., N] of [.., V].
3. `pool_near` takes the maximum of each word over the positions where it is a candidate, -inf where there is none.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, field_validator
from torch import Tensor
from torch.nn.functional import normalize

from lexical_sae.data.dimensions import Dimension
from lexical_sae.data.encoding import encode
from lexical_sae.data.language import FUNCTION_WORDS, NEGATIONS, SHORT_NOT, word_form
from lexical_sae.data.vocabulary import CONTINUATION, Vocabulary
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.word_boundaries import WordBoundaries, is_part
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig

GATHERED_FLOATS = 2**22
"""Decoder rows gathered at once, in numbers: 16 MB in single precision."""


class Neighbourhood(WordBoundaries):
    """A table of N words per token; special tokens, numbers, function words and parts of words activate nothing.

    "cr" of "crass" is no hint of the word that it begins, so a token counts only where it is the whole word. A
    piece that is also how a word is written at the start of a text counts there as that word. The first token of one of
    the `cut_words` activates that word, whose dimension follows those of the vocabulary.
    """

    table: Int[Tensor, "V N"]
    decoder_rows: Int[Tensor, " W"]
    """The row of the decoder that each word is read by: its own, or that of its first token."""
    cut_dimensions: Int[Tensor, " K"]
    """The dimension that each cut word opens: its own, after the vocabulary."""

    class Config(PartConfig):
        words_per_token: int = Field(default=8, ge=1)
        """How many words a token may open: the nearest in the decoder, itself first."""
        function_words: bool = False
        """Whether function words ("of", "and", "the") may be features too; negations ("not") always may."""
        most_cut_words: int = Field(default=0, ge=0)
        """How many of the words that the tokenizer cuts into parts get a dimension of their own in training: the most
        frequent of its texts, each in at least two. 0 gives none: such words are out-of-vocabulary."""
        cut_words: tuple[str, ...] = ()
        """These words. Training finds them itself; a list of your own is taken as it is."""

        @field_validator("cut_words")
        @classmethod
        def _once_each(cls, words: tuple[str, ...]) -> tuple[str, ...]:
            if twice := sorted(word for word, count in Counter(words).items() if count > 1):
                raise SettingsError(f"model.neighbourhood.cut_words names a word twice: {', '.join(twice)}")
            if short := [word for word in words if word != SHORT_NOT and word_form(word) == SHORT_NOT]:
                raise SettingsError(
                    f"model.neighbourhood.cut_words has {short[0]!r}; write {SHORT_NOT!r}, which stands for all that "
                    "end in it"
                )
            return words

        def dimensions(self) -> list[Dimension]:
            """The appended words."""
            return [Dimension(word, "word") for word in self.cut_words]

        def build(self, vocabulary: Vocabulary) -> "Neighbourhood":
            return Neighbourhood(self, vocabulary)

        def nameable(self, vocabulary: Vocabulary) -> Bool[Tensor, " V"]:
            """Words that may be features: whole words, no single letters and, by default, no function words."""
            letters = torch.tensor([len(name) == 1 and name.isascii() for name in vocabulary.names], device="cpu")
            whole = vocabulary.clean_mask & ~letters
            return whole if self.function_words else whole & ~function_word_mask(vocabulary)

    def __init__(self, config: Config, vocabulary: Vocabulary) -> None:
        super().__init__(config.cut_words, vocabulary)
        self.config = config
        self.register_buffer("table", torch.full((vocabulary.size, config.words_per_token), NO_WORD))
        rows = torch.cat([torch.arange(vocabulary.size, device="cpu"), self.cut.first_tokens])
        self.register_buffer("decoder_rows", rows, persistent=False)
        appended = torch.arange(vocabulary.size, len(rows), device="cpu")
        self.register_buffer("cut_dimensions", appended, persistent=False)
        self._is_chosen = False

    @torch.no_grad()
    def choose(self, weight: Float[Tensor, "V D"]) -> None:
        """Fill the table: for each token the words whose decoder rows have the greatest cosine with its own."""
        nameable = self.config.nameable(self._vocabulary).to(weight.device)
        # Centred: decoder rows share a common part, which carries no information on which words are near each other.
        rows = normalize(weight - weight[nameable].mean(0), dim=-1)
        words = nameable.nonzero().flatten()
        if not len(words):
            raise SettingsError(
                "no token of this vocabulary is a word that may be a feature: it needs no neighbourhood"
            )
        count = min(self.table.shape[1], len(words))
        self.table.fill_(NO_WORD)
        for some in words.split(1024):
            near = rows[some] @ rows[words].T
            near[some[:, None] == words] = torch.inf
            self.table[some, :count] = words[near.topk(count, dim=1).indices]
        for at_start, word in _words_at_the_start(words.tolist(), self._vocabulary):
            self.table[at_start] = self.table[word]

    def words(self, input_ids: Int[Tensor, "B L"], real: Bool[Tensor, "B L"]) -> Int[Tensor, "B L N"]:
        """The words that the token at each position may open, its own first; NO_WORD at padding, nor in parts of a
        word.

        A word of several tokens counts at the first of them, if it has a dimension.
        """
        if not self._is_chosen:
            # Looked up in the table, which is saved with the model, until it is true: later calls cost nothing.
            self._is_chosen = bool((self.table != NO_WORD).any())
            if not self._is_chosen:
                raise SettingsError("no token has a neighbourhood yet: call model.start_from_backbone() first")
        joined = self.goes_on_after(input_ids)
        words = self.table[input_ids].masked_fill((~real | is_part(joined))[..., None], NO_WORD)
        if len(self.cut):
            found = self.cut.find(input_ids, joined)
            has_word = (found != NO_WORD) & real
            words[..., 0] = torch.where(has_word, self.cut_dimensions[found], words[..., 0])
        return words

    def allows(self, input_ids: Int[Tensor, "B L"], real: Bool[Tensor, "B L"]) -> Bool[Tensor, "B L W"]:
        """The same as a mask over all words: the slow form."""
        words, size = self.words(input_ids, real), len(self.decoder_rows)
        # One spare column takes the NO_WORD entries.
        mask = torch.zeros(*input_ids.shape, size + 1, dtype=torch.bool, device=words.device)
        return mask.scatter_(-1, words.where(words != NO_WORD, size), True)[..., :size]


def _words_at_the_start(words: list[int], vocabulary: Vocabulary) -> Iterator[tuple[int, int]]:
    """Tokens that stand for a word where no space precedes it, with the word's own token.

    Byte-level BPE spells the first word of a text, or one after a quote, by the token that also continues a word:
    `Film` is not `ĠFilm`. Other tokenizers have one token for both, and nothing comes of this.
    """
    names = [vocabulary.names[word] for word in words]
    cut = [text.ids for text in encode(vocabulary.tokenizer, names, add_special_tokens=False)]
    for word, name, ids in zip(words, names, cut, strict=True):
        # The name itself, letter by letter: a tokenizer that drops accents may turn a word into a function word.
        if len(ids) == 1 and vocabulary.names[ids[0]] == CONTINUATION + name:
            yield ids[0], word


def near_logits(
    hidden: Float[Tensor, "*batch D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"],
    words: Int[Tensor, "*batch N"],
) -> Float[Tensor, "*batch N"]:
    """`hidden @ weight[words].T + bias[words]` position by position; -inf for NO_WORD. Never [.., N, D] as a whole."""
    rows, places = hidden.to(weight.dtype).flatten(0, -2), words.flatten(0, -2)
    # In the weight's precision, under autocast too, as `max_logits` is.
    with torch.autocast(hidden.device.type, enabled=False):
        products = _NearProducts.apply(rows, weight, places).unflatten(0, words.shape[:-1])  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
    return (products + bias[words.clamp(min=0)]).masked_fill(words == NO_WORD, -torch.inf)


def pool_near(logits: Float[Tensor, "B L N"], words: Int[Tensor, "B L N"], size: int) -> Float[Tensor, "B V"]:
    """Greatest logit of each word over the positions that may open it; -inf for a word that none may."""
    pooled = logits.new_full((len(logits), size), -torch.inf)
    return pooled.scatter_reduce(1, words.clamp(min=0).flatten(1), logits.flatten(1), "amax")


class _NearProducts(torch.autograd.Function):
    """Products of each row of `hidden` with its own rows of `weight`, some rows at a time in both directions."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, words: Tensor) -> Tensor:
        ctx.save_for_backward(hidden, weight, words)
        rows = words.clamp(min=0)
        parts = zip(hidden.split(_step(words, weight)), rows.split(_step(words, weight)), strict=True)
        return torch.cat([(weight[some] @ states[..., None]).squeeze(-1) for states, some in parts])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (grad,) = grads
        hidden, weight, words = ctx.saved_tensors
        wants_hidden, wants_weight, _ = ctx.needs_input_grad
        # For NO_WORD, `near_logits` fills in -inf, so the gradient is zero there.
        grad_hidden = torch.zeros_like(hidden) if wants_hidden else None
        grad_weight = torch.zeros_like(weight) if wants_weight else None
        # Most positions won nothing that counts: only the others are computed.
        for some in grad.any(1).nonzero().flatten().split(_step(words, weight)):
            rows = words[some].clamp(min=0)
            if grad_hidden is not None:
                # A loss may be differentiated inside autocast as well as after it.
                with torch.autocast(hidden.device.type, enabled=False):
                    grad_hidden[some] = (grad[some, None] @ weight[rows]).squeeze(1)
            if grad_weight is not None:
                pulls = grad[some, :, None] * hidden[some, None]
                grad_weight.index_add_(0, rows.flatten(), pulls.flatten(0, 1))
        return grad_hidden, grad_weight, None


def _step(words: Tensor, weight: Tensor) -> int:
    """Positions at a time."""
    return max(1, GATHERED_FLOATS // (words.shape[1] * weight.shape[1]))


def function_word_mask(vocabulary: Vocabulary, *, negations: bool = False) -> Bool[Tensor, " V"]:
    """Dimensions that are function words, as whole words and in any case; on request negations too."""
    words = FUNCTION_WORDS | NEGATIONS if negations else FUNCTION_WORDS
    found = torch.tensor([name.casefold() in words for name in vocabulary.names], dtype=torch.bool, device="cpu")
    return found & vocabulary.feature_mask
