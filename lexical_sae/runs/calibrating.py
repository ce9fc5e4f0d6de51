"""From training and validation texts to a calibration: what is unusual, and how confident is confident enough.

1. The words of all training texts, and the mean encoder states of some, are what is usual.
2. Validation texts, which nothing was fitted on, are scored against it. Limits are such that about `false_alarms` of
   them get a warning, over all kinds together.
3. One temperature makes their probabilities most likely: logits are divided by it before they become confidences.
4. Their confidences and whether the model was right give accuracy by confidence, in steps that never fall.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from sklearn.covariance import LedoitWolf
from sklearn.isotonic import isotonic_regression
from torch import Tensor

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.data.sampling import sample_rows
from lexical_sae.inference.reading import ReadTexts, answers
from lexical_sae.inference.unusual import SCORES
from lexical_sae.models.calibration import (
    AccuracyStep,
    Calibration,
    CalibrationFigures,
    UsualStates,
    UsualTexts,
    word_hash,
    words_of,
)
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.outputs import OutputKind
from lexical_sae.training.temperature import fitted_temperature
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.progress import OnStep, Step, silent

FALSE_ALARMS = 0.01
TRAINING_TEXTS, VALIDATION_TEXTS = 1000, 4000
"""Texts that are read at most: it takes seconds, whatever the size of the data."""
STEP_TEXTS = 20
"""Validation texts that an accuracy is measured on, at least."""
BATCH = 64
ROUNDING = 1e-3
"""Added to limits, in standard deviations of the score."""
LEAST_VARIANCE = 1e-4
"""Added to every direction, as a share of the mean variance: few texts, or equal ones, leave some without any."""


def calibrate(
    model: LexicalSAE, dataset: TextDataset, false_alarms: float = FALSE_ALARMS, on_step: OnStep = silent
) -> Calibration:
    """The calibration of a trained model, from the texts that it was trained and validated on."""
    if not 0 < false_alarms < 1:
        raise SettingsError(f"false_alarms is {false_alarms}; it is a share of texts between 0 and 1, such as 0.01")
    validation = _some(dataset.validation, VALIDATION_TEXTS)
    known = frozenset(word_hash(word) for word in {word for text in dataset.train.texts for word in words_of(text)})
    states = _usual_states(model, _some(dataset.train, TRAINING_TEXTS).texts)
    usual = UsualTexts(known, _unknown_rate(known, validation.texts), states)
    on_step(Step("calibrating", 1, 2))

    def score(read: ReadTexts) -> list[list[float]]:
        columns = [scored(usual, read)[:, None] for scored in SCORES.values()]
        return torch.cat([*columns, read.state.logits.float().cpu()], dim=1).tolist()

    found = torch.tensor(list(answers(model, validation.texts, BATCH, score)))
    on_step(Step("calibrating", 2, 2))
    scores, logits = found[:, : len(SCORES)], found[:, len(SCORES) :]
    targets = model.output.targets(validation.labels)
    temperature = fitted_temperature(logits, targets, model.output)
    sure = model.output.confidences(logits / temperature, targets)
    limits = joint_limits(scores, false_alarms)
    figures = CalibrationFigures(
        texts=len(validation),
        false_alarms=false_alarms,
        unknown_rate=usual.unknown_rate,
        limits=dict(zip(SCORES, limits, strict=True)),
        steps=() if sure is None else accuracy_steps(*sure),
        temperature=temperature,
    )
    return Calibration(figures, usual)


@torch.no_grad()
def tuned_output(model: LexicalSAE, dataset: TextDataset) -> OutputKind:
    """The output kind with what is chosen on validation texts: the threshold of each label. Other kinds stay."""

    def logits() -> Tensor:
        read = answers(model, dataset.validation.texts, BATCH, lambda read: list(read.state.logits.float().cpu()))
        return torch.stack(list(read))

    return model.output.tuned(logits, dataset.validation.labels)


def joint_limits(scores: Float[Tensor, "T K"], false_alarms: float) -> list[float]:
    """A limit per score, each exceeded by equally many texts, so that at most this share exceeds any of them.

    Example: two scores that agree give each the whole share; two that never do, half of it
    """
    ordered, allowed = scores.sort(0, descending=True).values, int(false_alarms * len(scores))
    most = 0
    # One more text above each limit adds at least one to those above any, so this ends within `allowed` rounds.
    while most + 1 < len(scores) and int((scores > ordered[most + 1]).any(1).sum()) <= allowed:
        most += 1
    # A score that is a limit must not exceed it where the text is read in another batch, which rounds differently.
    return (ordered[most] + ROUNDING * scores.std(0)).tolist()


def accuracy_steps(
    confidence: Float[Tensor, " T"], is_right: Bool[Tensor, " T"], least: int = STEP_TEXTS
) -> tuple[AccuracyStep, ...]:
    """Accuracy by confidence: groups of at least so many texts, pooled until accuracy never falls."""
    order = confidence.argsort(stable=True)
    groups = np.array_split(np.arange(len(order)), max(1, len(order) // least))
    right = is_right[order].double().numpy()
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    fitted = isotonic_regression(np.array([right[group].mean() for group in groups]), sample_weight=sizes)
    steps = []
    for accuracy in np.unique(fitted):
        pooled = np.concatenate([group for group, own in zip(groups, fitted, strict=True) if own == accuracy])
        lowest = float(confidence[order[pooled[0]]])
        steps.append(AccuracyStep(confidence=lowest, accuracy=min(1.0, float(accuracy)), texts=len(pooled)))
    return tuple(steps)


def _some(split: TextSplit, most: int) -> TextSplit:
    return split.take(sample_rows(len(split), most, 0))


def _unknown_rate(known: frozenset[int], texts: Sequence[str]) -> float:
    """Share of words that are not known; never zero or one, since others may be."""
    is_unknown = [word_hash(word) not in known for text in texts for word in words_of(text)]
    return (sum(is_unknown) + 0.5) / (len(is_unknown) + 1)


def _usual_states(model: LexicalSAE, texts: Sequence[str]) -> UsualStates | None:
    """Centre and whitening of the mean encoder states of some texts; None without an encoder."""
    if not model.asks_encoder or len(texts) < 2:
        return None

    def mean_states(read: ReadTexts) -> list[Tensor]:
        assert read.mean_states is not None
        return list(read.mean_states.double().cpu())

    states = torch.stack(list(answers(model, texts, BATCH, mean_states))).numpy()
    fitted = LedoitWolf().fit(states)
    covariance = torch.from_numpy(fitted.covariance_)
    spread = LEAST_VARIANCE * covariance.diagonal().mean() + 1e-12
    lower = torch.linalg.cholesky(covariance + spread * torch.eye(len(covariance), dtype=covariance.dtype))
    whitening = torch.linalg.inv(lower).T
    return UsualStates(torch.from_numpy(fitted.location_).float(), whitening.float().contiguous())
