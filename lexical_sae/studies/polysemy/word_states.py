"""Codes and states of word mentions in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.data.batches import TokenizedTexts, batches, pad_id
from lexical_sae.data.encoding import encode
from lexical_sae.data.sources.senses import Mention
from lexical_sae.evaluation.text_sample import join_codes
from lexical_sae.evaluation.whole_documents import pool_entries
from lexical_sae.models.layers.virtual_expander import VirtualExpander
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, silent

HIDDEN = "hidden state"


@dataclass(frozen=True)
class WordStates:
    """Mentions of words; those beyond the length limit are left out."""

    rows: tuple[int, ...]
    """Index of each among the mentions given."""
    at_word: SparseCode
    """Active words at the mention's first token."""
    in_sentence: SparseCode
    """Active words of the whole sentence."""
    hidden: Float[Tensor, "N D"]
    """The decoder's input at the token."""
    slots: Int[Tensor, "N K"] | None
    """The sense slot of each split word there; None without an expander."""

    def take(self, chosen: Sequence[int]) -> "WordStates":
        """Some of the mentions, by their place in `rows`."""
        return WordStates(
            tuple(self.rows[i] for i in chosen),
            take_texts(self.at_word, chosen),
            take_texts(self.in_sentence, chosen),
            self.hidden[list(chosen)],
            None if self.slots is None else self.slots[list(chosen)],
        )


def take_texts(code: SparseCode, chosen: Sequence[int]) -> SparseCode:
    """Some texts of a code, at least one, in the order given."""
    parts = [(code.ids[here], code.values[here]) for here in map(code.text, chosen)]
    return join_codes(parts, code.size)


@torch.no_grad()
def read_mentions(
    model: LexicalSAE, mentions: Sequence[Mention], batch_size: int = 32, on_step: OnStep = silent
) -> WordStates:
    """Codes and states of every mention in its sentence."""
    model.eval()
    tokens, places = _tokenized(model, mentions)
    found: dict[int, tuple[Any, ...]] = {}
    device = model.gate.closed.device
    for batch in batches(tokens, batch_size, "reading words in context", on_step):
        rows = batch.rows.tolist()
        ids, mask = batch.input_ids.to(device), batch.attention_mask.to(device)
        at = torch.tensor([places[row] if places[row] is not None else 0 for row in rows], device=device)
        chosen = torch.zeros_like(mask).scatter_(1, at[:, None], True)
        encoded = model.encoder_states(ids, mask)
        words = model.encode_positions(ids, mask, chosen, states=encoded)
        sentence = model.encode_sparse(ids, mask, encoded)
        states = model.backbone.transform(encoded)[chosen]
        slots = None if model.expander is None else picked_slots(model.expander, states).cpu()
        for i, row in enumerate(rows):
            if places[row] is not None:
                parts = (_entries(words, i), _entries(sentence, i), states[i].cpu())
                found[row] = (*parts, None if slots is None else slots[i])
    if not found:
        raise DataError("the model saw none of the words: every sentence is cut before its word (model.max_length)")
    kept = sorted(found)
    size = len(model.dimensions)
    return WordStates(
        tuple(kept),
        join_codes([found[row][0] for row in kept], size),
        join_codes([found[row][1] for row in kept], size),
        torch.stack([found[row][2] for row in kept]),
        None if model.expander is None else torch.stack([found[row][3] for row in kept]),
    )


def picked_slots(expander: VirtualExpander, hidden: Float[Tensor, "*batch D"]) -> Int[Tensor, "*batch K"]:
    """Which sense slot each split word has at a state."""
    return expander.scores(hidden).unflatten(-1, (-1, expander.num_senses)).argmax(-1)


def with_senses_merged(code: SparseCode, expander: VirtualExpander, num_words: int) -> SparseCode:
    """The code without sense slots: a word has the activation of its most active sense."""
    own, *senses = expander.slot_columns(num_words).cpu().T
    word_of = torch.arange(code.size)
    for column in senses:
        word_of[column] = own
    return pool_entries(code.rows, word_of[code.ids], code.values, (len(code), code.size))


def codes_of(model: LexicalSAE, states: WordStates) -> dict[str, SparseCode]:
    """Every kind of code by the name that tables show, the hidden state last."""
    codes = {"words at the token": states.at_word, "words of the sentence": states.in_sentence}
    if model.expander is not None:
        size = model.dimensions.num_words
        codes |= {f"{name}, senses merged": with_senses_merged(c, model.expander, size) for name, c in codes.items()}
    return codes | {HIDDEN: SparseCode.from_dense(states.hidden)}


def _entries(code: SparseCode, row: int) -> tuple[Tensor, Tensor]:
    here = code.text(row)
    return code.ids[here].cpu(), code.values[here].cpu()


def _tokenized(model: LexicalSAE, mentions: Sequence[Mention]) -> tuple[TokenizedTexts, list[int | None]]:
    """Tokens of the sentences, and the first token of each word; None beyond the length limit."""
    encoded = encode(model.tokenizer, [mention.sentence for mention in mentions], model.max_length)
    places = [_first_token(text.offsets, mention.span) for text, mention in zip(encoded, mentions, strict=True)]
    return TokenizedTexts.of(encoded, pad_id(model.tokenizer)), places


def _first_token(offsets: Sequence[tuple[int, int]], span: tuple[int, int]) -> int | None:
    return next((i for i, (start, end) in enumerate(offsets) if start < span[1] and span[0] < end), None)
