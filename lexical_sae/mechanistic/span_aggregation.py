"""From contributions of dimensions to scores of the text: winning positions, then tokenizer offsets, then words.

1. Pooling took each active word's activation from one position (max) or from several (attention). `parts` holds how
   much each position gave; a single winner is the special case of one part.
2. A contribution, by whatever method it was made, is split among positions in proportion to the parts.
3. Positions add up to tokens and words of the text. What lies at special tokens, at loose blanks or at no position is
   one row, `(whole text)`.

Nothing is lost: words + whole text + bias = sum of all contributions + bias, which is the logit for direct logit
attribution (with its `b_eff`) and for path attribution (with the logit of the empty text as bias).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from lexical_sae.data.dimensions import DimensionTable
from lexical_sae.data.language import word_form
from lexical_sae.data.words import Span, TextLayout, lay_out
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.suggest import did_you_mean

WHOLE_TEXT = "(whole text)"


@dataclass(frozen=True)
class RoutedFeature:
    """The contribution of one active dimension from one place of the text."""

    word: str
    contribution: float
    is_expansion: bool
    """Whether the place is written without this word: the model read it into the text."""


@dataclass(frozen=True)
class SpanScore:
    """The contribution of a stretch of the text: the sum of its features' contributions."""

    text: str
    start: int
    end: int
    """One after the last character."""
    score: float
    features: tuple[RoutedFeature, ...]
    """The top-attributed first."""


@dataclass(frozen=True)
class TextScores:
    """A decision, shared out among the places of its text."""

    words: tuple[SpanScore, ...]
    """Every word that the model saw, in reading order; a word that occurs twice is here twice."""
    whole_text: SpanScore
    """What has no place among the words: special tokens, loose blanks, features without a position."""
    bias: float

    @property
    def total(self) -> float:
        """Words, whole text and bias together."""
        return math.fsum([*(word.score for word in self.words), self.whole_text.score, self.bias])


def score_texts(
    code: SparseCode,
    contributions: Float[Tensor, " K"],
    biases: Float[Tensor, " B"],
    layouts: Sequence[TextLayout],
    dimensions: DimensionTable,
    parts: Sequence[Tensor] | None = None,
) -> list[TextScores]:
    """The contributions of a batch, in the order of its code, shared out among the places of each text.

    `layout.joined(spans)` takes names or phrases as one word; the sum is the same.

    Args:
        parts: Per text, `parts[l, k]` is how much of entry k came from token l, in any unit: `alpha[l] * s[l, k]` for
            attention. An entry without any part belongs to the whole text. If None, the code's winning positions
            decide; they count from the first token of a text, so the batch was padded on the right.

    Example: `bad film` where `awful` (+2, an expansion) won at `bad` and `film` (-0.5) at [CLS] gives the words
    bad 2, film 0, and the whole text -0.5.
    """
    if len(layouts) != len(code):
        raise DataError(f"the code has {len(code)} texts but there are {len(layouts)} layouts; give one per text")
    ids, values, positions = code.ids.tolist(), contributions.tolist(), code.positions.tolist()
    named = _named(dimensions, chain(ids, *(layout.token_ids for layout in layouts)))
    bounds, found = code.offsets.tolist(), []
    for row, (layout, bias) in enumerate(zip(layouts, biases.tolist(), strict=True)):
        here = slice(bounds[row], bounds[row + 1])
        placed = _at_winners(layout, positions[here]) if parts is None else _by_parts(layout, parts[row])
        found.append(_text_scores(layout, ids[here], values[here], placed, bias, named))
    return found


def aggregate_subword_attributions(
    token_ids: list[int],
    attribution_scores: Float[Tensor, " V"] | Float[Tensor, "L V"],
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    method: str = "sum",
) -> list[tuple[str, float]]:
    """Each word of the text with the score of its subwords: their `sum`, or the one of largest size (`max_abs`).

    A subword's score is that of its own dimension, in the whole text ([V]) or at its position ([L, V]). `sum` is the
    total evidence, though +0.8 and -0.7 nearly cancel; `max_abs` is the strongest, with its sign. Special tokens are
    no words. Expansions are not counted, and with [V] a word that occurs twice has its score twice: for scores that sum
    to the logit, use `score_texts`.

    Example: `un` +0.8 and `##happy` -0.7 make `unhappy` 0.1 by sum and 0.8 by max_abs.
    """
    if method not in MERGES:
        raise DataError(f"method {method!r} is unknown{did_you_mean(method, MERGES)} Choose 'sum' or 'max_abs'")
    if attribution_scores.dim() == 2 and len(attribution_scores) != len(token_ids):
        raise DataError(
            f"attribution_scores has {len(attribution_scores)} positions but there are {len(token_ids)} tokens"
        )
    per_position = attribution_scores.expand(len(token_ids), attribution_scores.shape[-1])
    own = torch.tensor(token_ids, dtype=torch.long, device=per_position.device)[:, None]
    return merge_tokens(lay_out(tokenizer, text, token_ids), per_position.gather(1, own).flatten().tolist(), method)


def merge_tokens(layout: TextLayout, scores: Sequence[float], method: str) -> list[tuple[str, float]]:
    """Each word of the text with the scores of its tokens made one, by a method of `MERGES`."""
    of_word: list[list[float]] = [[] for _ in layout.word_spans]
    for word, score in zip(layout.token_words, scores, strict=True):
        if word is not None:
            of_word[word].append(score)
    merge = MERGES[method]
    return [(layout.written(span), merge(values)) for span, values in zip(layout.word_spans, of_word, strict=True)]


def _largest(values: Sequence[float]) -> float:
    return max(values, key=abs)


MERGES: dict[str, Callable[[Sequence[float]], float]] = {"sum": math.fsum, "max_abs": _largest}
"""How the scores of a word's subwords become one."""


def _shares(parts: Shaped[Tensor, "L K"], length: int) -> Float[Tensor, "L1 K"]:
    """Parts scaled to sum to one for each entry; a last row takes the entries that have no part at all."""
    if len(parts) != length:
        raise DataError(f"parts has {len(parts)} positions but the text has {length} tokens; leave out the padding")
    # On the CPU and in double precision: sharing out adds no rounding of its own.
    given = parts.detach().to("cpu", torch.float64)
    if not bool(((given >= 0) & given.isfinite()).all()):
        raise DataError("parts holds a negative or infinite number or NaN; no position gives less than nothing")
    total = given.sum(0)
    has_place = total > 0
    return torch.cat([given / total.where(has_place, 1.0), ~has_place[None]])


class _Share(NamedTuple):
    """How much of an entry of the code belongs to a row of the result."""

    row: int
    entry: int
    size: float


def _by_parts(layout: TextLayout, parts: Shaped[Tensor, "L K"]) -> list[_Share]:
    """Where entries that several tokens gave belong."""
    shares = _shares(parts, len(layout))
    index = torch.tensor([*_row_of_token(layout), len(layout.word_spans)])
    of_row = shares.new_zeros(len(layout.word_spans) + 1, shares.shape[1]).index_add_(0, index, shares)
    rows, entries = of_row.nonzero(as_tuple=True)
    return [_Share(*each) for each in zip(rows.tolist(), entries.tolist(), of_row[rows, entries].tolist(), strict=True)]


def _at_winners(layout: TextLayout, positions: Sequence[int]) -> list[_Share]:
    """Where entries that one token won belong."""
    _check_winners(positions, len(layout))
    # A position of -1 finds the row of the whole text.
    rows = [*_row_of_token(layout), len(layout.word_spans)]
    return [_Share(rows[position], entry, 1.0) for entry, position in enumerate(positions)]


def _check_winners(positions: Sequence[int], length: int) -> None:
    last = max(positions, default=-1)
    if last >= length:
        raise DataError(
            f"a word was won by token {last}, but the text has {length} tokens; "
            "give the layout of the very text that was encoded"
        )


def _row_of_token(layout: TextLayout) -> list[int]:
    whole = len(layout.word_spans)
    return [whole if word is None else word for word in layout.token_words]


class _Named(NamedTuple):
    name: str
    letters: str


def _named(dimensions: DimensionTable, ids: Iterable[int]) -> dict[int, _Named]:
    """Each of these dimensions, spelled once."""
    return {i: _Named(dimension.name, dimension.letters) for i in set(ids) for dimension in (dimensions[i],)}


def _text_scores(
    layout: TextLayout,
    ids: Sequence[int],
    contributions: Sequence[float],
    placed: Iterable[_Share],
    bias: float,
    named: Mapping[int, _Named],
) -> TextScores:
    """A row for each word of the layout, and at the end the row of the whole text."""
    texts = [layout.written(span) for span in layout.word_spans]
    pieces: list[list[str]] = [[] for _ in (*texts, WHOLE_TEXT)]
    for row, token in zip(_row_of_token(layout), layout.token_ids, strict=True):
        pieces[row].append(named[token].letters)
    # Together, pieces are the word as the tokenizer spells it, which may know no accents.
    written = [{*own, "".join(own)} for own in pieces]
    for own, text in zip(written, texts, strict=False):
        own.add(word_form(text))
    # What stands anywhere in the text is no expansion of the whole text.
    written[-1] = set[str]().union(*written)
    features: list[list[RoutedFeature]] = [[] for _ in written]
    for row, entry, size in placed:
        name, letters = named[ids[entry]]
        features[row].append(RoutedFeature(name, size * contributions[entry], letters not in written[row]))
    spans = [*layout.word_spans, (0, len(layout.text))]
    *words, whole_text = (_span_score(*row) for row in zip([*texts, WHOLE_TEXT], spans, features, strict=True))
    return TextScores(tuple(words), whole_text, bias)


def _span_score(text: str, span: Span, features: Sequence[RoutedFeature]) -> SpanScore:
    ordered = tuple(sorted(features, key=lambda feature: -abs(feature.contribution)))
    return SpanScore(text, *span, math.fsum(feature.contribution for feature in features), ordered)
