"""All context measures of one model."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lexical_sae.data.polarity import positive_class
from lexical_sae.data.sampling import sample_rows
from lexical_sae.evaluation.context.accuracy import AccuracyScores, measure_accuracy
from lexical_sae.evaluation.context.defaults import read_texts, texts_with_rare_words
from lexical_sae.evaluation.context.independence import IndependenceScores, measure_independence
from lexical_sae.evaluation.context.leakage import LeakageScores, measure_leakage
from lexical_sae.evaluation.context.model import ContextModel
from lexical_sae.evaluation.context.references import References, fit_references
from lexical_sae.evaluation.context.sentiment import (
    AntonymScores,
    NegationScores,
    PairScores,
    Predict,
    measure_antonyms,
    measure_minimal_pairs,
    measure_negation,
)
from lexical_sae.evaluation.context.shifts import ShiftScores, measure_shifts
from lexical_sae.evaluation.names.literal import names_of
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, silent

READ_AT_MOST, READ_TIMES = 2000, 20
"""Held-out texts for accuracy, leakage and shifts: an upper limit, and a multiple of those that are edited."""
DEFAULT_TEXTS, DEFAULT_TIMES = 300, 3
"""Training texts that are read to estimate defaults, likewise. With 1,000, the quick start gains 0.4 points."""


@dataclass(frozen=True)
class ContextScores:
    """How much of a model's decisions is in its words, and how much in what context makes of them."""

    texts: int
    """Behind accuracy, leakage and shifts."""
    edited_texts: int
    """Behind independence."""
    accuracy: AccuracyScores
    leakage: LeakageScores | None
    """None where no word is neutral, or all labels are the same."""
    shifts: ShiftScores
    independence: IndependenceScores
    minimal_pairs: PairScores | None
    antonyms: AntonymScores | None
    negation: NegationScores | None
    skipped: str | None
    """Why the last three are None, where they are."""
    lexicon: str | None
    """The sentiment lexicon whose words do not count as neutral; None without."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for `names.json`."""
        return asdict(self)


def measure_context(
    model: LexicalSAE | ContextModel,
    texts: Sequence[str],
    labels: Sequence[int],
    train_texts: Sequence[str],
    train_labels: Sequence[int],
    label_names: Sequence[str],
    seed: int = 0,
    limit: int = 200,
    on_step: OnStep = silent,
    *,
    references: References | None = None,
    predict: Predict | None = None,
) -> ContextScores:
    """Every context measure on held-out texts; words are edited in at most `limit` of them (0 for all).

    The training rows tell which words are neutral, and what the context-free references score; `references` spares
    fitting them again. Some are read where defaults must be estimated. `predict` is the dense baseline, if any.
    """
    if not texts or len(texts) != len(labels):
        raise DataError(f"{len(texts)} texts with {len(labels)} labels; give at least one text, and a label for each")
    model = names_of(model) if isinstance(model, LexicalSAE) else model
    references = fit_references(train_texts, train_labels) if references is None else references
    rows = sample_rows(len(texts), min(READ_AT_MOST, READ_TIMES * limit or READ_AT_MOST), seed)
    chosen = [texts[row] for row in rows]
    most = min(DEFAULT_TEXTS, DEFAULT_TIMES * limit or DEFAULT_TEXTS)
    others = texts_with_rare_words(chosen, train_texts, most, seed)
    num_classes = len(label_names)
    read = read_texts(model, chosen, [labels[row] for row in rows], others, num_classes, on_step)
    edited = [read.readings[row] for row in sample_rows(len(read), limit, seed)]
    positive = positive_class(label_names)
    return ContextScores(
        texts=len(read),
        edited_texts=len(edited),
        accuracy=measure_accuracy(model, chosen, read, references, seed),
        leakage=measure_leakage(model, read, references.neutral, seed),
        shifts=measure_shifts(read, seed),
        independence=measure_independence(model, edited, num_classes, seed, on_step),
        minimal_pairs=None if positive is None else measure_minimal_pairs(model, positive, seed, on_step),
        antonyms=None if positive is None else measure_antonyms(model, positive, seed, on_step),
        negation=None if positive is None else measure_negation(model, positive, predict, seed, on_step),
        skipped=_not_sentiment(label_names) if positive is None else None,
        lexicon=references.lexicon,
    )


def _not_sentiment(label_names: Sequence[str]) -> str:
    some = ", ".join(label_names[:3]) + (", …" if len(label_names) > 3 else "")
    return f"minimal pairs, antonyms and negation need labels named negative and positive, not {some}"
