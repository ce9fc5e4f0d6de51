"""A `LexicalSAE` as a `NamedModel`: its texts are edited as characters and read as the model reads any text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor
from torch.nn.functional import normalize

from lexical_sae.data.batches import Batch, TokenizedTexts, batches, pad_id
from lexical_sae.data.encoding import encode
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.data.words import word_spans
from lexical_sae.evaluation.names.model import NamedWord, Probe, Reading, Response, Span
from lexical_sae.evaluation.names.text import span_around
from lexical_sae.mechanistic.attribution import attribute_code
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.pooling import AttentionPool
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, silent

HEAD_TEXTS = 256
"""Texts that the head reads at a time."""
NEIGHBOUR_ROWS = 512
"""Words at a time: their similarities to the whole vocabulary must fit in memory."""


@dataclass(frozen=True)
class _Encoded:
    tokens: TokenizedTexts
    offsets: list[list[Span | None]]
    """Per text and token, its characters; None for special tokens."""


class LexicalSAENames:
    """The words of a `LexicalSAE`, with the whole words of the text that their winning tokens lie in."""

    def __init__(self, model: LexicalSAE, batch_size: int = 16) -> None:
        if model.tokenizer.mask_token is None:
            raise DataError("the model's tokenizer has no mask token; names are tested by masking words")
        self.model = model.eval()
        self.batch_size = batch_size

    @property
    def blank(self) -> str:
        """The mask token."""
        return str(self.model.tokenizer.mask_token)

    def as_read(self, texts: Sequence[str]) -> list[str]:
        """Each text up to the last word that the model has room for; typed special tokens are broken up."""
        plain = [self._plain(text) for text in texts]
        return [self._cut(text, offsets) for text, offsets in zip(plain, self._encode(plain).offsets, strict=True)]

    def contributions(self, texts: Sequence[str], on_step: OnStep = silent) -> list[Reading]:
        """What the model shows for each text."""
        return self.read_edited(self.as_read(texts), on_step)

    def read_edited(self, texts: Sequence[str], on_step: OnStep = silent) -> list[Reading]:
        """The same for texts that are read as they are: a mask token in them is the mask."""
        plain = list(texts)
        encoded = self._encode(plain)
        readings: dict[int, Reading] = {}
        for rows, batch in self._batches(encoded.tokens, "reading texts", on_step):
            state = self._state(batch)
            values = contributions_per_class(state)
            own = self.model.own_words(batch.input_ids)
            labels, positions = state.logits.argmax(-1).tolist(), self._positions(state, batch)
            for i, row in enumerate(rows):
                here = state.code.text(i)
                written = frozenset(encoded.tokens.ids[row]) | frozenset(own[i].tolist()) - {NO_WORD}
                spans = self._spans(plain[row], [encoded.offsets[row][at] for at in positions[here].tolist()])
                words = self._words(state, here, values, labels[i], spans)
                readings[row] = Reading(plain[row], labels[i], words, written | self._slots(written))
        return [readings[row] for row in range(len(texts))]

    @torch.no_grad()
    def decide(self, texts: Sequence[Sequence[NamedWord]]) -> Float[ndarray, "T C"]:
        """Logits of the head from these activations; of several of one dimension the greatest counts."""
        pooled = [self._strongest(words) for words in texts]
        device, size = self.model.gate.closed.device, len(self.model.dimensions)
        found = []
        for start in range(0, len(pooled), HEAD_TEXTS):
            chunk = pooled[start : start + HEAD_TEXTS]
            rows = torch.tensor([row for row, text in enumerate(chunk) for _ in text], dtype=torch.long)
            ids = torch.tensor([i for text in chunk for i in text], dtype=torch.long)
            values = torch.tensor([value for text in chunk for value in text.values()], dtype=torch.float32)
            rows, ids, values = rows.to(device), ids.to(device), values.to(device)
            code = SparseCode.from_entries(rows, ids, values, torch.full_like(ids, -1), (len(chunk), size))
            found.append(self.model.read(code).logits.double().cpu().numpy())
        return np.concatenate(found) if found else np.zeros((0, len(self.model.labels[CLASSIFY])))

    def default_contributions(self, readings: Sequence[Reading]) -> list[list[tuple[float, ...]]] | None:
        """None: what a word activates by default is not a part of the model."""
        del readings
        return None

    def responses(self, probes: Sequence[Probe], on_step: OnStep = silent) -> list[Response]:
        """The answer to each probe; each text is read once, however many probes ask about it."""
        texts = {text: row for row, text in enumerate(dict.fromkeys(probe.text for probe in probes))}
        asked: dict[int, list[int]] = {}
        for number, probe in enumerate(probes):
            asked.setdefault(texts[probe.text], []).append(number)
        answers = [Response(0.0, 0.0)] * len(probes)
        tokens = self._encode(list(texts)).tokens
        for rows, batch in self._batches(tokens, "reading edited texts", on_step):
            state = self._state(batch)
            values = contributions_per_class(state)
            for i, row in enumerate(rows):
                here = state.code.text(i)
                places = {dimension: here.start + n for n, dimension in enumerate(state.code.ids[here].tolist())}
                for number in asked[row]:
                    at = places.get(probes[number].dimension)
                    if at is not None:
                        value = float(values[at, probes[number].label])
                        answers[number] = Response(value, float(state.code.values[at]))
        return answers

    def dimensions_of(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """Dimensions of words, at the start of a text or inside it, that may open: one token, or a cut word's own."""
        if not words:
            return []
        spellings = self.model.dimensions.vocabulary.spellings(words)
        self._open([way for ways in spellings for way in ways])
        may_open = (~self.model.gate.closed).tolist()
        spelled = self.model.dimensions.spelled
        found = [
            {way[0] for way in ways if len(way) == 1} | {spelled[way] for way in ways if way in spelled}
            for ways in spellings
        ]
        return [tuple(sorted(i for i in ids | self._slots(frozenset(ids)) if may_open[i])) for ids in found]

    @torch.no_grad()
    def neighbours(self, dimensions: Sequence[int], k: int) -> Mapping[int, frozenset[int]]:
        """The k words with the most similar row (cosine) of the decoder, which is the embedding where they are tied."""
        rows = normalize(self.model.backbone.decoder.weight.detach().float(), dim=-1)
        is_feature = self.model.dimensions.vocabulary.feature_mask.to(rows.device)
        found: dict[int, frozenset[int]] = {}
        words = torch.tensor([i for i in dimensions if i < len(rows)], dtype=torch.long, device=rows.device)
        for chosen in words.split(NEIGHBOUR_ROWS):
            similar = (rows[chosen] @ rows.T).masked_fill(~is_feature, -torch.inf)
            similar.scatter_(1, chosen[:, None], -torch.inf)
            nearest = similar.topk(min(k, len(rows) - 1)).indices.tolist()
            found |= {i: frozenset(near) for i, near in zip(chosen.tolist(), nearest, strict=True)}
        return found

    def _open(self, texts: Iterable[Sequence[int]]) -> None:
        """Give every literal word of tokenised texts a dimension; those that are there keep theirs."""
        self.model = self.model.opened_to(texts)

    def _plain(self, text: str) -> str:
        """A text in which only our own mask is a control token. Example: `a [SEP] b -> a [ SEP] b`."""
        text = repair_text(text)
        for token in self.model.tokenizer.all_special_tokens:
            text = text.replace(token, f"{token[:1]} {token[1:]}")
        return text

    def _cut(self, text: str, offsets: Sequence[Span | None]) -> str:
        """The text to the end of the word that the last token lies in, where there may be more of it."""
        last = next((at for at in reversed(offsets) if at is not None), None)
        if last is None or len(offsets) < self.model.max_length:
            return text
        word = span_around(list(word_spans(text)), *last)
        return text[: last[1] if word is None else word[1]]

    def _encode(self, texts: list[str]) -> _Encoded:
        tokenizer = self.model.tokenizer
        # Unlike `tokenize`, this lets a mask in the text be the mask token; `_plain` broke up the typed ones.
        encoded = encode(tokenizer, texts, self.model.max_length, reads_special_tokens=True)
        self._open([text.ids for text in encoded])
        places = [
            [None if is_special else at for at, is_special in zip(text.offsets, text.is_special, strict=True)]
            for text in encoded
        ]
        return _Encoded(TokenizedTexts.of(encoded, pad_id(tokenizer)), places)

    def _batches(self, tokens: TokenizedTexts, task: str, on_step: OnStep) -> Iterator[tuple[list[int], Batch]]:
        for batch in batches(tokens, self.batch_size, task, on_step, self.model.gate.closed.device):
            yield batch.rows.tolist(), batch

    @torch.no_grad()
    def _state(self, batch: Batch) -> SparseCircuitState:
        return self.model.read(self.model.encode_sparse(batch.input_ids, batch.attention_mask))

    @torch.no_grad()
    def _positions(self, state: SparseCircuitState, batch: Batch) -> Tensor:
        """The token that activated each active word most."""
        pool = self.model.pool
        if not isinstance(pool, AttentionPool):
            return state.code.positions
        sequence = self.model(batch.input_ids, batch.attention_mask)
        weights = pool.weights(sequence, batch.attention_mask)
        return (sequence[state.code.rows, :, state.code.ids] * weights[state.code.rows]).argmax(1)

    def _spans(self, text: str, offsets: Sequence[Span | None]) -> list[Span | None]:
        """The whole word that holds each token."""
        words = list(word_spans(text))
        return [None if at is None else span_around(words, *at) for at in offsets]

    def _words(
        self,
        state: SparseCircuitState,
        here: slice,
        values: Float[Tensor, "K C"],
        label: int,
        spans: Sequence[Span | None],
    ) -> tuple[NamedWord, ...]:
        ids, activations = state.code.ids[here].tolist(), state.code.values[here].tolist()
        rows = values[here].tolist()
        order = sorted(range(len(ids)), key=lambda i: (-abs(rows[i][label]), ids[i]))
        name = self.model.dimensions
        return tuple(
            NamedWord(ids[i], name[ids[i]].name, spans[i], activations[i], tuple(rows[i]), rows[i][label])
            for i in order
        )

    @staticmethod
    def _strongest(words: Sequence[NamedWord]) -> dict[int, float]:
        """The greatest activation of each dimension, in their order."""
        found: dict[int, float] = {}
        for word in words:
            found[word.dimension] = max(found.get(word.dimension, 0.0), word.activation)
        return dict(sorted(found.items()))

    def _slots(self, dimensions: frozenset[int]) -> frozenset[int]:
        """The sense slots of split words."""
        expander = self.model.expander
        if expander is None:
            return frozenset()
        slots = expander.slot_columns(self.model.dimensions.num_words).tolist()
        return frozenset(i for word, *senses in slots if word in dimensions for i in senses)


@torch.no_grad()
def contributions_per_class(state: SparseCircuitState) -> Float[Tensor, "K C"]:
    """Class-centred contribution of every active word to every class."""
    classes = torch.arange(state.logits.shape[-1], device=state.logits.device)
    rows = torch.ones(len(state.logits), dtype=torch.long, device=state.logits.device)
    return torch.stack([attribute_code(state, rows * c, centered=True) for c in classes], dim=-1)
