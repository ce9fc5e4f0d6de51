"""Words that the tokenizer cuts into parts, and that have a dimension of their own all the same.

"tedious" is `ted ##ious` to BERT's tokenizer, and neither part says anything about it: not to a reader, and hardly to
the pretrained decoder, whose nearest words are names like "theodore". So such a word speaks for itself alone, where its
first token stands, through that token's row of the decoder. Words that a model was not given stay mute.

1. `frequent_cut_words` finds them in texts, before a model is made.
2. `CutWords.find` tells at which positions of a batch they stand, through a trie over their tokens.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from splade.vocab import Vocabulary

NOBODY = -1
"""Stands where a position has no (further) word to speak for."""
FEWEST_TEXTS = 2
"""A word that only one text holds teaches nothing about another."""
ROOT = 0


def split_words(token_ids: Sequence[int], vocabulary: Vocabulary) -> list[list[int]]:
    """The words of a text that stand in several tokens; each as its tokens, in their order.

    Example: [CLS] a maw ##kish film [SEP] -> [[maw, ##kish]]
    """
    goes_on, can_go_on = vocabulary.joins
    words: list[list[int]] = []
    is_within = False
    for before, token in zip(token_ids, token_ids[1:], strict=False):
        joined = can_go_on[before] and goes_on[token]
        if joined and is_within:
            words[-1].append(token)
        elif joined:
            words.append([before, token])
        is_within = joined
    return words


def frequent_cut_words(texts: Iterable[Sequence[int]], vocabulary: Vocabulary, most: int) -> tuple[str, ...]:
    """The words, in letters, that stand in several tokens in at least two of these texts: at most so many.

    The most frequent first, equals by the alphabet. Only what reads as a word, and is cut the same way by itself.
    """
    counts = Counter(spelling for ids in texts for spelling in {tuple(word) for word in split_words(ids, vocabulary)})
    by_name: Counter[str] = Counter()
    spellings: dict[str, set[tuple[int, ...]]] = {}
    for spelling, count in counts.items():
        name = str(vocabulary.tokenizer.decode(list(spelling))).strip()
        if name[:1].isalpha() and name.isalnum():
            by_name[name] += count
            spellings.setdefault(name, set()).add(spelling)
    named = sorted((name for name in by_name if by_name[name] >= FEWEST_TEXTS), key=lambda name: (-by_name[name], name))
    again = zip(named, spellings_of(named, vocabulary), strict=True)
    return tuple(name for name, found in again if spellings[name] & set(found))[:most]


def spellings_of(words: Sequence[str], vocabulary: Vocabulary) -> list[list[tuple[int, ...]]]:
    """How each word is cut, by itself and after a space; only where it stands in several tokens that join."""
    if not words:
        return []
    texts = [text for word in words for text in (word, " " + word)]
    cut = vocabulary.tokenizer(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    whole = [tuple(ids) if split_words(ids, vocabulary) == [list(ids)] else None for ids in cut]  # pyright: ignore[reportGeneralTypeIssues, reportArgumentType]
    return [
        [ids for ids in dict.fromkeys((after_space, alone)) if ids is not None]
        for alone, after_space in zip(whole[::2], whole[1::2], strict=True)
    ]


class CutWords(nn.Module):
    """A trie over the tokens of the words; node 0 is its root, and an edge has the key `node * V + token`."""

    keys: Int[Tensor, " E"]
    """Edges in ascending order."""
    leads_to: Int[Tensor, " E"]
    """The node that each edge leads to."""
    word_at: Int[Tensor, " M"]
    """The word that ends at each node, or nobody."""
    first_tokens: Int[Tensor, " K"]
    """The token whose decoder row a word is read by."""

    def __init__(self, words: Sequence[str], vocabulary: Vocabulary) -> None:
        super().__init__()
        self.vocabulary_size = vocabulary.size
        edges: dict[int, int] = {}
        word_at = [NOBODY]
        spellings = spellings_of(words, vocabulary)
        for index, found in enumerate(spellings):
            if not found:
                raise ValueError(
                    f"the tokenizer does not cut {words[index]!r} into parts of a word; take it out of "
                    "model.neighbourhood.cut_words"
                )
            for spelling in found:
                node = ROOT
                for token in spelling:
                    node = edges.setdefault(node * vocabulary.size + token, len(word_at))
                    word_at += [NOBODY] * (node == len(word_at))
                word_at[node] = index
        self._first_spellings = [found[0] for found in spellings]
        self.longest = max((len(spelling) for found in spellings for spelling in found), default=0)
        order = sorted(edges)
        # On the CPU even while a model is outlined on the meta device: they describe the tokenizer.
        as_buffers = {
            "keys": order,
            "leads_to": [edges[key] for key in order],
            "word_at": word_at,
            "first_tokens": [spelling[0] for spelling in self._first_spellings],
        }
        for name, values in as_buffers.items():
            self.register_buffer(name, torch.tensor(values, dtype=torch.long, device="cpu"), persistent=False)

    def __len__(self) -> int:
        return len(self.first_tokens)

    def embeddings(self, rows: Float[Tensor, "V D"]) -> Float[Tensor, "K D"]:
        """For each word the mean of its tokens' rows."""
        return torch.stack([rows[list(spelling)].mean(0) for spelling in self._first_spellings])

    def find(self, input_ids: Int[Tensor, "B L"], joined: Bool[Tensor, "B L-1"]) -> Int[Tensor, "B L"]:
        """The word that begins at each position, by its index, or nobody; `joined`: the word goes on with the next."""
        found = torch.full_like(input_ids, NOBODY)
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
            # Behind the last position no word goes on, so that none moves on from there.
            here = here + is_going
        found[rows, at] = torch.where(is_going | (node == NOBODY), NOBODY, self.word_at[node])
        return found

    def _child(self, node: Int[Tensor, " S"], token: Int[Tensor, " S"]) -> Int[Tensor, " S"]:
        """The node that a token leads to; nobody where there is no such edge, and from there on."""
        # From nobody (-1) a key is below zero, and no edge has one.
        key = node * self.vocabulary_size + token
        place = torch.searchsorted(self.keys, key).clamp(max=len(self.keys) - 1)
        return torch.where(self.keys[place] == key, self.leads_to[place], NOBODY)
