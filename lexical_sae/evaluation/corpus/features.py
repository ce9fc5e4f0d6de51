"""The page of a word: the texts in which it fires most strongly, what sets it off, and what it pushes."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch

from lexical_sae.data.dimensions import Dimension
from lexical_sae.data.language import SHORT_NOT, word_form
from lexical_sae.data.words import Span, TextLayout, lay_out
from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.moments import Moments
from lexical_sae.inference.labels import labels_of
from lexical_sae.mechanistic.span_aggregation import WHOLE_TEXT
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.report.explanation.removal import pieces_name


@dataclass(frozen=True)
class FiringText:
    """A text in which the word is active."""

    text: str
    row: int
    """Place in the corpus."""
    activation: float
    span: Span | None
    """The word of the text that set it off; None where that is a special token, or where no token alone did."""
    trigger: str
    """These characters, or "(whole text)"."""
    predicted: str
    contributions: dict[str, float]
    """Class-centred, per label."""
    is_written: bool
    """Whether the word itself is in the text."""


@dataclass(frozen=True)
class Push:
    """What the word says for a class where it is active."""

    mean: float
    low: float | None
    high: float | None
    """Ends of the mean's 95 % confidence interval (Student's, over texts)."""


@dataclass(frozen=True)
class Trigger:
    """A token that sets the word off, or all word pieces and symbols together."""

    token: str
    count: int
    """Texts in which this token activated the word."""
    share: float
    """Of the texts in which the word is active."""


@dataclass(frozen=True)
class FeaturePage:
    """All that a corpus tells about one dimension."""

    name: str
    kind: str
    texts: int
    active_in: int
    activation: float | None
    """Mean where it is active; None where it never is."""
    written_in: int
    """Texts that the word itself is in, in any case."""
    active_where_written: int
    """Of these, texts in which it is active."""
    pushes: dict[str, Push]
    triggers: tuple[Trigger, ...]
    """The most frequent first; after them word pieces and symbols, where they are not listed."""
    top_texts: tuple[FiringText, ...]
    """The strongest first."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Firing:
    text: str
    token_ids: list[int]
    position: int
    predicted: int
    contributions: list[float]
    is_written: bool


class FeatureCollector:
    """Keeps what one dimension does: counts, and the `top` texts in which it is strongest."""

    def __init__(self, model: LexicalSAE, dimension: int, top: int = 10) -> None:
        self.model, self.dimension, self.top = model, dimension, top
        self.labels = labels_of(model)
        self.letters = model.dimensions[dimension].letters
        names = model.dimensions.vocabulary.names
        self.own_tokens = {i for i, name in enumerate(names) if Dimension(name, "word").letters == self.letters}
        self.has_place = model.dimensions.feature_mask.clone()
        """Tokens that stand for some of the text: not the special ones."""
        unknown: Any = model.tokenizer.unk_token_id
        if unknown is not None:
            self.has_place[unknown] = True
        self.texts = self.written_in = self.active_where_written = 0
        self.activations, self.contributions = Moments(1), Moments(len(self.labels))
        self.triggers: Counter[int | None] = Counter()
        """By the dimension of the word that stands there; None for the whole text."""
        self._strongest: list[tuple[float, int, _Firing]] = []

    def update(self, batch: ReadBatch) -> None:
        """Add the texts of a batch."""
        code = batch.state.code
        is_written = [self._has_word(text, ids) for text, ids in zip(batch.texts, batch.token_ids, strict=True)]
        self.texts += len(batch.rows)
        self.written_in += sum(is_written)
        here = (code.ids == self.dimension).nonzero().flatten()
        self.activations.update(torch.zeros_like(here), code.values[here])
        for index in range(len(self.labels)):
            self.contributions.update(torch.full_like(here, index), batch.contributions[here, index])
        for entry in here.tolist():
            i, position = int(code.rows[entry]), int(code.positions[entry])
            self.active_where_written += is_written[i]
            self.triggers[self._trigger(batch.token_ids[i], position)] += 1
            pushed = batch.contributions[entry].tolist()
            firing = _Firing(
                batch.texts[i], batch.token_ids[i], position, int(batch.predicted[i]), pushed, is_written[i]
            )
            # Of equally strong texts the first of the corpus stays.
            heapq.heappush(self._strongest, (float(code.values[entry]), -batch.rows[i], firing))
            if len(self._strongest) > self.top:
                heapq.heappop(self._strongest)

    def page(self, triggers: int = 10, *, all_tokens: bool = False) -> FeaturePage:
        """What was found, with that many of the most frequent triggers; pieces of words are summed, or
        with `all_tokens` listed."""
        active_in = int(self.activations.count[0])
        means = self.contributions.means()
        dimension = self.model.dimensions[self.dimension]
        return FeaturePage(
            name=dimension.name,
            kind=dimension.kind,
            texts=self.texts,
            active_in=active_in,
            activation=float(self.activations.mean[0]) if active_in else None,
            written_in=self.written_in,
            active_where_written=self.active_where_written,
            pushes={
                label: Push(float(means.mean[i]), *means.ends(i)) for i, label in enumerate(self.labels) if active_in
            },
            triggers=tuple(
                Trigger(name, count, count / active_in)
                for name, count in self._ranked_triggers(triggers, all_tokens=all_tokens)
            ),
            top_texts=tuple(self._top_texts()),
        )

    def _ranked_triggers(self, most: int, *, all_tokens: bool) -> list[tuple[str, int]]:
        """The most frequent triggers by name with their counts."""
        listed = self.model.dimensions.listed_mask(all_tokens=all_tokens)
        named = {token: count for token, count in self.triggers.items() if token is None or listed[token]}
        unnamed = [count for token, count in self.triggers.items() if token not in named]
        ranked = sorted(named.items(), key=lambda item: (-item[1], -1 if item[0] is None else item[0]))
        pieces = [(pieces_name(len(unnamed)), sum(unnamed))] if unnamed else []
        return [*((self._token_name(token), count) for token, count in ranked[:most]), *pieces]

    def _top_texts(self) -> Iterator[FiringText]:
        for activation, negative_row, firing in sorted(self._strongest, key=lambda item: item[:2], reverse=True):
            layout = lay_out(self.model.tokenizer, firing.text, firing.token_ids)
            span = _span_at(layout, firing.position)
            yield FiringText(
                text=firing.text,
                row=-negative_row,
                activation=activation,
                span=span,
                trigger=WHOLE_TEXT if span is None else layout.written(span),
                predicted=self.labels[firing.predicted],
                contributions=dict(zip(self.labels, firing.contributions, strict=True)),
                is_written=firing.is_written,
            )

    def _has_word(self, text: str, token_ids: list[int]) -> bool:
        if not self.own_tokens.isdisjoint(token_ids):
            return True
        # Cut into pieces it is still written; most texts do not even hold the letters.
        if self.letters not in text.casefold() and self.letters != SHORT_NOT:
            return False
        layout = lay_out(self.model.tokenizer, text, token_ids)
        return any(word_form(layout.written(span)) == self.letters for span in layout.word_spans)

    def _trigger(self, token_ids: list[int], position: int) -> int | None:
        if position < 0:
            return None
        ids = torch.tensor([token_ids], device=self.model.gate.closed.device)
        own = int(self.model.own_words(ids)[0, position])
        return own if own != NO_WORD and self.has_place[own] else None

    def _token_name(self, token: int | None) -> str:
        return WHOLE_TEXT if token is None else self.model.dimensions[token].name


def _span_at(layout: TextLayout, position: int) -> Span | None:
    word = layout.token_words[position] if position >= 0 else None
    return None if word is None else layout.word_spans[word]
