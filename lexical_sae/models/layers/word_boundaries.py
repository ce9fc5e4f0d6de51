"""Where the words of a tokenised text begin and end, and which dimension each of them is.

A word is one token, or several that go on with each other ("ted ##ious"); for models that know "n't", so is "isn't".
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from lexical_sae.data.language import APOSTROPHE, APOSTROPHE_TEE, NO_PART, STEM, TEE
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.models.layers.cut_words import NO_WORD, CutWords


class WordBoundaries(nn.Module):
    """Words of token sequences. The dimensions of multi-piece words follow those of the vocabulary."""

    goes_on: Bool[Tensor, " V"]
    """Tokens that go on with the word before them, if there is one."""
    can_go_on: Bool[Tensor, " V"]
    """Tokens after which a word can go on."""
    contraction_parts: Int[Tensor, " V"]
    """What each token can be in "isn't"."""

    def __init__(self, multi_piece_words: Sequence[str], vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        goes_on, can_go_on = vocabulary.joins_mask
        self.register_buffer("goes_on", goes_on.clone(), persistent=False)
        self.register_buffer("can_go_on", can_go_on.clone(), persistent=False)
        self.register_buffer("contraction_parts", vocabulary.contraction_parts.clone(), persistent=False)
        self.cut = CutWords(multi_piece_words, vocabulary)

    def own_words(self, input_ids: Int[Tensor, "B L"]) -> Int[Tensor, "B L"]:
        """The dimension of each word that is one token, and at its first token that of a multi-piece word; else
        NO_WORD."""
        joined = self.goes_on_after(input_ids)
        found = self.find(input_ids, joined)
        whole = input_ids.masked_fill(is_part(joined), NO_WORD)
        return torch.where(found == NO_WORD, whole, self._vocabulary.size + found)

    def find(self, input_ids: Int[Tensor, "B L"], joined: Bool[Tensor, "B L-1"]) -> Int[Tensor, "B L"]:
        """The multi-piece word that begins at each position, by its index, or NO_WORD."""
        return self.cut.find(input_ids, joined)

    def goes_on_after(self, input_ids: Int[Tensor, "*batch L"]) -> Bool[Tensor, "*batch L-1"]:
        """Positions whose word goes on with the next token."""
        joined = self.can_go_on[input_ids[..., :-1]] & self.goes_on[input_ids[..., 1:]]
        if not self.cut.has_contractions:
            return joined
        # "'n' twang": where a word goes on after the last letter, that letter begins it.
        parts = self.contraction_parts[input_ids].masked_fill(pad(joined, (0, 1)), NO_PART)
        stems = self.contraction_parts[input_ids][..., :-1] == STEM
        after, behind = parts[..., 1:], pad(parts[..., 2:], (0, 1), value=NO_PART)
        in_three = stems & (after == APOSTROPHE) & (behind == TEE)
        in_two = stems & (after == APOSTROPHE_TEE)
        return joined | in_two | in_three | pad(in_three, (1, 0))[..., :-1]

    def begins(self, input_ids: Int[Tensor, "*batch L"]) -> Bool[Tensor, "*batch L"]:
        """Positions at which a word begins."""
        return pad(~self.goes_on_after(input_ids), (1, 0), value=True)

    def oov_words(self, token_ids: Sequence[int]) -> list[list[int]]:
        """The words of a text that stand in several tokens and have no dimension; each as its tokens, in their order.

        Example: [CLS] a maw ##kish film [SEP] -> [[maw, ##kish]], unless "mawkish" is one of the words given
        """
        words = self._vocabulary.split_words(token_ids, contractions=self.cut.has_contractions)
        return [word for word in words if tuple(word) not in self.cut.known]


def is_part(joined: Bool[Tensor, "*batch J"]) -> Bool[Tensor, "*batch J+1"]:
    """Positions whose token is only a part of the word that stands there, given which words go on with the next."""
    return pad(joined, (0, 1)) | pad(joined, (1, 0))
