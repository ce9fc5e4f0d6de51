"""Labels, probabilities and accuracy."""

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, overload

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.explanation import ABSTAIN
from lexical_sae.inference.abstaining import Abstention
from lexical_sae.inference.labels import label_index, labels_of, names_of
from lexical_sae.inference.reading import ReadTexts, answers, is_one_text
from lexical_sae.inference.unusual import unusual
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.errors import SettingsError

_MISSING: Any = object()


@overload
def predict(  # pyright: ignore[reportOverlappingOverload]
    model: LexicalSAE, texts: str, batch_size: int = 32, *, abstain: float | None = None
) -> Any: ...
@overload
def predict(
    model: LexicalSAE, texts: Iterable[str], batch_size: int = 32, *, abstain: float | None = None
) -> list[Any]: ...
def predict(model: LexicalSAE, texts: Any, batch_size: int = 32, *, abstain: float | None = None) -> Any:
    """The most probable label of a text, or of each text of an iterable; of equal ones the first of the model's labels.

    Where texts have any number of labels, a tuple of those decided for; of a model that predicts numbers, a float.

    Args:
        model: The classifier.
        texts: A string, or an iterable of strings.
        batch_size: Texts per batch.
        abstain: An accuracy such as 0.95. The label is "abstain" for unusual texts, and where fewer of the validation
            texts were right at the same confidence.

    Returns:
        A decision for a string, a list of them for an iterable.

    Example: `predict(model, "a warm, funny film", abstain=0.9)` -> "positive"
    """
    names, abstention = names_of(model), Abstention.of(model, abstain)

    def decide(read: ReadTexts) -> list[Any]:
        labels = read.output.decided(read.state.logits, names)
        if abstention is None:
            return labels
        confidences = read.model.probabilities(read.state.logits).amax(-1)
        decided = zip(labels, confidences.tolist(), unusual(read.model.calibration, read), strict=True)
        return [ABSTAIN if abstention.reason(sure, warnings) else label for label, sure, warnings in decided]

    labels = list(answers(model, texts, batch_size, decide))
    return labels[0] if is_one_text(texts) else labels


def predict_proba(model: LexicalSAE, texts: Any, batch_size: int = 32) -> Float[Tensor, " C"] | Float[Tensor, "N C"]:
    """The probabilities of the labels, in the order of `model.labels["classify"]`.

    Args:
        model: The classifier.
        texts: A string, or an iterable of strings.
        batch_size: Texts per batch.

    Returns:
        One row for a string, a row per text for an iterable.
    """
    rows = list(answers(model, texts, batch_size, lambda read: read.model.probabilities(read.state.logits).cpu()))
    if is_one_text(texts):
        return rows[0]
    return torch.stack(rows) if rows else torch.empty(0, len(names_of(model)))


def score(model: LexicalSAE, texts: Any, labels: Iterable[Any], batch_size: int = 32) -> float:
    """Accuracy: the share of texts whose predicted label is the given one.

    Args:
        model: The classifier.
        texts: An iterable of strings.
        labels: One label per text, by name or index.
        batch_size: Texts per batch.

    Example: `score(model, ["a warm film", "a bore"], ["positive", "negative"])` -> 1.0
    """
    if is_one_text(texts):
        raise SettingsError("score compares several texts with their labels; put the text and its label in lists")
    predicted = answers(model, texts, batch_size, _decisions)
    known, right, row = labels_of(model, "score"), 0, -1
    for row, (found, label) in enumerate(zip_longest(predicted, labels, fillvalue=_MISSING)):
        if found is _MISSING or label is _MISSING:
            short, long = ("texts", "labels") if found is _MISSING else ("labels", "texts")
            raise SettingsError(f"there are only {row} {short} but more {long}; give one label per text")
        right += found == label_index(known, label, f"text {row}: label")
    if row < 0:
        raise SettingsError("there are no texts to score")
    return right / (row + 1)


def _decisions(read: ReadTexts) -> list[int]:
    return read.state.logits.argmax(-1).tolist()
