"""Long context: does a decision, and its explanation, survive when a text is hidden in a long neutral document?

Each test text is a needle. It is read alone, and hidden at the start, in the middle and at the end of documents of
several lengths, beyond what the encoder reads at once (`whole_documents`). Compared are the label, the contributions of
the needle's own words to the label it gets alone, and its ten top-attributed words. Filler without a needle, compared
with the needle in the same way, shows what would be found by chance.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from pydantic import Field
from scipy.stats import rankdata
from torch import Tensor

from lexical_sae.data import TextSplit
from lexical_sae.data.encoding import encode
from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.names.lexical import contributions_per_class
from lexical_sae.evaluation.whole_documents import read_whole
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.studies.long_context.documents import FILLER_ALONE, PLACES, CountTokens, filler_alone, hide_needle
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.progress import OnStep, Step, silent

TOP_WORDS = 10
DOCUMENTS_AT_ONCE = 16


class LongContextPlan(PartConfig):
    """Settings of a long-context study."""

    lengths: tuple[int, ...] = (128, 256, 512, 1024, 2048)
    """Tokens of the documents, special tokens not counted."""
    needles: int = Field(default=50, ge=1)
    """Test texts to hide."""
    overlap: float = Field(default=0.25, ge=0, lt=1)
    """Share of a window's tokens that the next one repeats."""
    seed: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class LongContextPoint:
    """Needles at one place in documents of one length."""

    length: int
    place: str
    """start, middle or end; or no needle, the control."""
    accuracy: Interval
    same_label: Interval
    """Share with the label of the needle alone."""
    rank_correlation: Interval
    """Spearman's, of the contributions of the needle's words alone and in the document."""
    top_words: Interval
    """Share of the needle's ten top-attributed words among the document's ten."""
    needle_share: Interval
    """Share of the document's |contributions| on words that are active in the needle alone."""
    active_words: Interval


@dataclass(frozen=True)
class LongContextResult:
    """Results for every length and place."""

    needles: int
    max_length: int
    """Tokens per window."""
    alone_accuracy: Interval
    alone_active_words: Interval
    points: tuple[LongContextPoint, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Decision:
    """The decision on one document: contributions to every class, by word."""

    predicted: int
    words: dict[int, Float[Tensor, " C"]]


def measure_long_context(
    model: LexicalSAE, split: TextSplit, plan: LongContextPlan = LongContextPlan(), on_step: OnStep = silent
) -> LongContextResult:
    """The comparison of texts alone and hidden in documents."""
    chosen = split.take(range(min(plan.needles, len(split))))
    if not len(chosen):
        raise DataError("there is no text to hide; give at least one")
    # Once for all documents, so that a word has the same dimension alone and in each of them.
    model = model.opened_to([text.ids for text in encode(model.tokenizer, list(chosen.texts))])
    count = _token_counter(model)
    alone = _decisions(read_whole(model, chosen.texts, plan.overlap))
    points, total = [], len(plan.lengths) * (len(PLACES) + 1)
    for length in plan.lengths:
        for place in (*PLACES, FILLER_ALONE):
            documents = _documents(chosen.texts, length, place, count, plan.seed)
            points.append(_point(model, documents, alone, chosen.labels, length, place, plan))
            on_step(Step("hiding needles", len(points), total, {"tokens": length}))
    means = BootstrapMeans(seed=plan.seed)
    right = [float(one.predicted == label) for one, label in zip(alone, chosen.labels, strict=True)]
    active = [float(len(one.words)) for one in alone]
    means.update(range(len(chosen)), {"right": torch.tensor(right), "active": torch.tensor(active)})
    return LongContextResult(len(chosen), model.window, means.share("right"), means["active"], tuple(points))


def _documents(needles: Sequence[str], length: int, place: str, count: CountTokens, seed: int) -> dict[int, str]:
    """The document of each needle; needles longer than `length` have none."""
    made: dict[int, str | None] = {}
    for row, needle in enumerate(needles):
        # Every needle has its own filler, the same at every place.
        own = seed + 7919 * (row + 1)
        if place == FILLER_ALONE:
            # The control of the other places: of the same needles.
            made[row] = filler_alone(length, count, own) if count(needle) <= length else None
        else:
            made[row] = hide_needle(needle, length, place, count, own)
    return {row: text for row, text in made.items() if text is not None}


def _point(
    model: LexicalSAE,
    documents: dict[int, str],
    alone: Sequence[_Decision],
    labels: Sequence[int],
    length: int,
    place: str,
    plan: LongContextPlan,
) -> LongContextPoint:
    means = BootstrapMeans(seed=plan.seed)
    rows = list(documents)
    for start in range(0, len(rows), DOCUMENTS_AT_ONCE):
        some = rows[start : start + DOCUMENTS_AT_ONCE]
        told = _decisions(read_whole(model, [documents[row] for row in some], plan.overlap))
        figures = torch.stack([_compare(alone[row], one, labels[row]) for row, one in zip(some, told, strict=True)])
        means.update(some, dict(zip(FIGURES, figures.unbind(1), strict=True)))
    return LongContextPoint(length, place, *(means.share(name) if name in SHARES else means[name] for name in FIGURES))


FIGURES = ("accuracy", "same label", "rank correlation", "top words", "needle share", "active words")
"""In the order of `LongContextPoint`."""
SHARES = {"accuracy", "same label", "top words", "needle share"}


def _compare(alone: _Decision, document: _Decision, label: int) -> Float[Tensor, " M"]:
    """The figures of one document; NaN where there is nothing to compare."""
    own = alone.predicted
    before = {word: float(said[own]) for word, said in alone.words.items()}
    after = {word: float(said[own]) for word, said in document.words.items()}
    tops = _top(before) & _top(after)
    total = sum(map(abs, after.values()))
    on_needle = sum(abs(value) for word, value in after.items() if word in before)
    figures = (
        float(document.predicted == label),
        float(document.predicted == own),
        rank_correlation(list(before.values()), [after.get(word, 0.0) for word in before]),
        len(tops) / len(_top(before)) if before else torch.nan,
        on_needle / total if total else torch.nan,
        float(len(after)),
    )
    return torch.tensor(figures, dtype=torch.float64)


def _top(contributions: dict[int, float]) -> set[int]:
    return set(sorted(contributions, key=lambda word: (-abs(contributions[word]), word))[:TOP_WORDS])


def rank_correlation(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Spearman's correlation; NaN for fewer than three values, or if ours are all equal.

    Where theirs are all equal, nothing is left of the order: zero.

    Example: `[1, 2, 3]` and `[10, 20, 90]` -> 1.0
    """
    if len(ours) < 3:
        return torch.nan
    ranks = torch.tensor([rankdata(ours).tolist(), rankdata(theirs).tolist()], dtype=torch.float64)
    centered = ranks - ranks.mean(1, keepdim=True)
    lengths = centered.norm(dim=1)
    if lengths[0] == 0:
        return torch.nan
    return float(centered[0] @ centered[1] / lengths.prod()) if lengths[1] > 0 else 0.0


def _decisions(state: SparseCircuitState) -> list[_Decision]:
    code, said = state.code, contributions_per_class(state).cpu().double()
    ids, predicted = code.ids.tolist(), state.logits.argmax(-1).tolist()
    found = []
    for row in range(len(code)):
        here = code.text(row)
        found.append(_Decision(predicted[row], dict(zip(ids[here], said[here], strict=True))))
    return found


def _token_counter(model: LexicalSAE) -> CountTokens:
    def count(text: str) -> int:
        return len(encode(model.tokenizer, [text], add_special_tokens=False)[0])

    return count
