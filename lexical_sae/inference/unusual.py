"""Texts whose label should not be relied on: no words, no evidence, or unlike the texts that the model was trained on.

    no_words          emojis, punctuation, nothing at all
    no_weight         no word of the text has a weight: the bias decides
    unknown_words     more words than usual that the training texts do not have: another language, another subject
    unlike_training   the encoder's mean state is far (Mahalanobis) from those of training texts
    little_evidence   all contributions together are unusually small

The last three are scores with a limit from validation texts (`lexical_sae.models.calibration`); models without a
calibration give the first two only. No score looks at the label.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.explanation import InputWarning
from lexical_sae.mechanistic.exact import attribute_only, towards
from lexical_sae.models.calibration import Calibration, UsualTexts, word_hash, words_of
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.outputs import CLASSES, OutputKind
from lexical_sae.report.printable import with_short_words

REFERENCE = "Lee et al. 2018, arXiv:1807.03888"
NAMED_WORDS = 3

NO_WORDS = InputWarning("no_words", "There is no word in this text: the label is the model's bias alone.")
NO_WEIGHT = InputWarning("no_weight", "No word of this text has a weight: the label is the model's bias alone.")


@runtime_checkable
class Read(Protocol):
    """Some texts and what the model made of them."""

    @property
    def output(self) -> OutputKind: ...
    @property
    def texts(self) -> Sequence[str]: ...
    @property
    def state(self) -> SparseCircuitState: ...
    @property
    def mean_states(self) -> Float[Tensor, "B E"] | None: ...


Scores = Float[Tensor, " B"]


def unknown_words(usual: UsualTexts, read: Read) -> Scores:
    """By how many standard deviations the number of unknown words exceeds what is usual for that number of words."""
    return torch.tensor([_excess(usual, text) for text in read.texts])


def unlike_training(usual: UsualTexts, read: Read) -> Scores:
    """Distance from the training texts; zero for models that decide without the encoder."""
    if usual.states is None or read.mean_states is None:
        return torch.zeros(len(read.texts))
    return usual.states.distances(read.mean_states)


def little_evidence(usual: UsualTexts, read: Read) -> Scores:
    """Minus the sum of |contributions| to the predicted label."""
    del usual
    return -evidence(read.state, read.output)


SCORES: dict[str, Callable[[UsualTexts, Read], Scores]] = {
    "unknown_words": unknown_words,
    "unlike_training": unlike_training,
    "little_evidence": little_evidence,
}
"""By kind of warning; greater is more unusual."""


def evidence(state: SparseCircuitState, output: OutputKind = CLASSES) -> Scores:
    """Sum of |contributions| to the predicted label of each text, in logits; or to its number."""
    logits = state.logits
    direction = output.direction(logits, output.default_target(logits, None))
    contributions = attribute_only(towards(state, direction)).abs()
    return torch.zeros_like(logits[:, 0]).index_add_(0, state.code.rows, contributions.to(logits.dtype)).float().cpu()


def unusual(calibration: Calibration | None, read: Read) -> list[tuple[InputWarning, ...]]:
    """The warnings of each text; none for ordinary ones."""
    counts = read.state.code.counts.tolist()
    beyond = _beyond(calibration, read) if calibration else [()] * len(counts)
    found: list[tuple[InputWarning, ...]] = []
    for text, count, others in zip(read.texts, counts, beyond, strict=True):
        if next(words_of(text), None) is None:
            found.append((NO_WORDS,))
        elif not count:
            found.append((NO_WEIGHT, *(other for other in others if other.kind != "little_evidence")))
        else:
            found.append(others)
    return found


def _beyond(calibration: Calibration, read: Read) -> list[tuple[InputWarning, ...]]:
    """The scored warnings of each text."""
    usual, limits = calibration.usual, calibration.figures.limits
    scores = {kind: score(usual, read).tolist() for kind, score in SCORES.items() if kind in limits}
    # What `little_evidence` negates.
    weights = (
        [-score for score in scores["little_evidence"]] if "little_evidence" in scores else [0.0] * len(read.texts)
    )
    return [
        tuple(
            InputWarning(kind, _MESSAGES[kind](usual, text, weights[row]))
            for kind, found in scores.items()
            if found[row] > limits[kind]
        )
        for row, text in enumerate(read.texts)
    ]


def _excess(usual: UsualTexts, text: str) -> float:
    """A binomial z-score. Example: 4 of 4 words unknown where 4 % usually are -> 9.8"""
    is_unknown = [word_hash(word) not in usual.known_words for word in words_of(text)]
    if not is_unknown:
        return 0.0
    rate, count = usual.unknown_rate, len(is_unknown)
    return (sum(is_unknown) - rate * count) / (rate * (1 - rate) * count) ** 0.5


def _about_unknown(usual: UsualTexts, text: str, weight: float) -> str:
    del weight
    words = list(words_of(text))
    unknown = [word for word in words if word_hash(word) not in usual.known_words]
    distinct = list(dict.fromkeys(unknown))
    named = with_short_words(", ".join(islice(distinct, NAMED_WORDS))) + (", …" if len(distinct) > NAMED_WORDS else ".")
    occur = "occurs" if len(unknown) == 1 else "occur"
    return f"{len(unknown)} of {len(words)} words never {occur} in the training texts: {named}"


def _about_distance(usual: UsualTexts, text: str, weight: float) -> str:
    del usual, text, weight
    return "Unlike the training texts: possibly off topic."


def _about_evidence(usual: UsualTexts, text: str, weight: float) -> str:
    del usual, text
    return f"The words of this text weigh unusually little: {weight:.2f} logits in all."


_MESSAGES: dict[str, Callable[[UsualTexts, str, float], str]] = {
    "unknown_words": _about_unknown,
    "unlike_training": _about_distance,
    "little_evidence": _about_evidence,
}
