"""Multi-piece words: the tokenizer cuts them into parts, and they have a dimension of their own all the same.

"tedious" is `ted ##ious` to BERT's tokenizer, and neither part means anything: not to a reader, and hardly to
the pretrained decoder, whose nearest words are names like "theodore". So such a word activates its own dimension alone,
at its first token, through that token's row of the decoder. Words without a dimension are out-of-vocabulary.

1. `frequent_cut_words` finds them in texts, before a model is made.
2. `CutWords.find` gives their positions in a batch, through a trie over their tokens.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from lexical_sae.data.language import APOSTROPHES, SHORT_NOT, is_function_word, word_form
from lexical_sae.data.vocabulary import Spelling, Vocabulary
from lexical_sae.utils.errors import SettingsError

NO_WORD = -1
"""Marks a position without a (further) word."""
FEWEST_TEXTS = 2
"""A word that only one text holds teaches nothing about another."""
ROOT = 0
_APOSTROPHE = re.compile(rf" ?[{''.join(APOSTROPHES)}] ?")


def frequent_cut_words(
    texts: Iterable[Sequence[int]], vocabulary: Vocabulary, most: int, *, function_words: bool = False
) -> tuple[str, ...]:
    """The words, in letters, that are several tokens long and occur in at least two of these texts: at most `most`.

    The most frequent first, equals by the alphabet. Only what reads as a word and is always cut: some tokenizers spell
    a word in one token after a space and in several at the start of a text.
    """
    names: dict[Spelling, str] = {}
    by_name: Counter[str] = Counter()
    for ids in texts:
        split = set(map(tuple, vocabulary.split_words(ids)))
        names |= {way: word_name(str(vocabulary.tokenizer.decode(list(way)))) for way in split - names.keys()}
        # A text counts once, though it may hold several forms of one word.
        by_name.update({names[way] for way in split})
    frequent = [
        name
        for name, count in by_name.items()
        if count >= FEWEST_TEXTS
        and name[:1].isalpha()
        and (name.isalnum() or name == SHORT_NOT)
        and (function_words or not is_function_word(name))
    ]
    ways = zip(frequent, vocabulary.spellings(frequent), strict=True)
    always_cut = [
        name for name, spellings in ways if all(map(vocabulary.is_cut, spellings)) and set(spellings) & names.keys()
    ]
    return tuple(sorted(always_cut, key=lambda name: (-by_name[name], name))[:most])


def word_name(decoded: str) -> str:
    """How a word is called: as it is written, and "n't" if it ends in that. Example: `isn ’ t -> n't`"""
    name = decoded.strip()
    # Some decoders put blanks around an apostrophe.
    return SHORT_NOT if word_form(_APOSTROPHE.sub("'", name)) == SHORT_NOT else name


class CutWords(nn.Module):
    """A trie over the tokens of the words; node 0 is its root, and an edge has the key `node * V + token`."""

    keys: Int[Tensor, " E"]
    """Edges in ascending order."""
    leads_to: Int[Tensor, " E"]
    """The node that each edge leads to."""
    word_at: Int[Tensor, " M"]
    """The word that ends at each node, or NO_WORD."""
    first_tokens: Int[Tensor, " K"]
    """The token that each word begins with, after a space."""

    def __init__(
        self, words: Sequence[str], vocabulary: Vocabulary, spellings: Sequence[tuple[Spelling, ...]] | None = None
    ) -> None:
        """A trie of these words, in all ways that the tokenizer spells them or in the ways that are given."""
        super().__init__()
        self.vocabulary_size = vocabulary.size
        edges: dict[int, int] = {}
        word_at = [NO_WORD]
        spellings = vocabulary.spellings(words) if spellings is None else spellings
        for index, ways in enumerate(spellings):
            if not all(map(vocabulary.is_cut, ways)):
                raise SettingsError(
                    f"the tokenizer does not cut {words[index]!r} into parts of a word; take it out of "
                    "model.neighbourhood.cut_words"
                )
            for spelling in ways:
                node = ROOT
                for token in spelling:
                    node = edges.setdefault(node * vocabulary.size + token, len(word_at))
                    word_at += [NO_WORD] * (node == len(word_at))
                if word_at[node] != NO_WORD:
                    raise SettingsError(
                        f"{words[word_at[node]]!r} and {words[index]!r} are the same word to the tokenizer; leave one "
                        "of them in model.neighbourhood.cut_words"
                    )
                word_at[node] = index
        self._spellings = [ways[0] for ways in spellings]
        self.has_contractions = SHORT_NOT in words
        """Whether "isn't" is one word: not in models that never met any."""
        self.known = frozenset(spelling for ways in spellings for spelling in ways)
        self.longest = max((len(spelling) for ways in spellings for spelling in ways), default=0)
        order = sorted(edges)
        # On the CPU even while a model is outlined on the meta device: they describe the tokenizer.
        as_buffers = {
            "keys": order,
            "leads_to": [edges[key] for key in order],
            "word_at": word_at,
            "first_tokens": [spelling[0] for spelling in self._spellings],
        }
        for name, values in as_buffers.items():
            self.register_buffer(name, torch.tensor(values, dtype=torch.long, device="cpu"), persistent=False)

    def __len__(self) -> int:
        return len(self.first_tokens)

    def embeddings(self, rows: Float[Tensor, "V D"]) -> Float[Tensor, "K D"]:
        """For each word the mean of its tokens' rows."""
        return torch.stack([rows[list(spelling)].mean(0) for spelling in self._spellings])

    def find(self, input_ids: Int[Tensor, "B L"], joined: Bool[Tensor, "B L-1"]) -> Int[Tensor, "B L"]:
        """The word that begins at each position, by its index, or NO_WORD; `joined`: the word goes on with the next."""
        found = torch.full_like(input_ids, NO_WORD)
        if not len(self):
            return found
        goes_on = pad(joined, (0, 1))
        rows, at = (goes_on & ~pad(joined, (1, 0))).nonzero(as_tuple=True)
        node = torch.full_like(at, ROOT)
        is_going = torch.ones_like(at, dtype=torch.bool)
        here = at
        for _ in range(self.longest):
            node = torch.where(is_going, self._child(node, input_ids[rows, here]), node)
            is_going = is_going & goes_on[rows, here]
            if not bool(is_going.any()):
                # The longest word that is known is far longer than most.
                break
            # Behind the last position no word goes on, so that none moves on from there.
            here = here + is_going
        found[rows, at] = torch.where(is_going | (node == NO_WORD), NO_WORD, self.word_at[node])
        return found

    def _child(self, node: Int[Tensor, " S"], token: Int[Tensor, " S"]) -> Int[Tensor, " S"]:
        """The node that a token leads to; NO_WORD where there is no such edge, and from there on."""
        # From NO_WORD (-1) a key is below zero, and no edge has one.
        key = node * self.vocabulary_size + token
        place = torch.searchsorted(self.keys, key).clamp(max=len(self.keys) - 1)
        return torch.where(self.keys[place] == key, self.leads_to[place], NO_WORD)
