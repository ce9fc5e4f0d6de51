"""Context-free accuracy: every word activates what it activates by default, whatever stands around it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.context.model import ContextModel
from lexical_sae.evaluation.context.references import References
from lexical_sae.evaluation.context.words import ReadTexts
from lexical_sae.evaluation.intervals import Interval


@dataclass(frozen=True)
class AccuracyScores:
    """How much of the accuracy is left without context."""

    full: Interval
    context_free: Interval
    difference: Interval
    """Context-free minus full, paired by text."""
    bag_of_words: Interval
    """On the same training rows, as is the next."""
    tfidf: Interval


def measure_accuracy(
    model: ContextModel, texts: Sequence[str], read: ReadTexts, references: References, seed: int = 0
) -> AccuracyScores:
    """Accuracy of the model, of the model with every word at its default, and of two context-free classifiers."""
    decided = {
        "full": [reading.label for reading in read.readings],
        "context-free": model.decide(read.features(at_default=True)).argmax(1),
        "bag": references.bag_of_words(texts),
        "tfidf": references.tfidf(texts),
    }
    means = BootstrapMeans(seed=seed)
    means.update(range(len(read)), {name: torch.as_tensor(read.labels == labels) for name, labels in decided.items()})
    return AccuracyScores(
        full=means.share("full"),
        context_free=means.share("context-free"),
        difference=means.difference("context-free", "full", of_shares=True),
        bag_of_words=means.share("bag"),
        tfidf=means.share("tfidf"),
    )
