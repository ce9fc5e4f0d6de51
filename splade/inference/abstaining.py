"""When a model does not decide: the text is unusual, or at its confidence too few validation texts were right."""

from collections.abc import Sequence
from dataclasses import dataclass

from splade.explanation import ABSTAIN, InputWarning
from splade.inference.labels import labels_of
from splade.models.calibration import ADD_CALIBRATION
from splade.models.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class Abstention:
    """What is asked of a decision."""

    accuracy: float
    """Of validation texts at the same confidence."""
    least_confidence: float

    @classmethod
    def of(cls, model: LexicalSAE, accuracy: float | None) -> "Abstention | None":
        """From the accuracy that was asked for; None where the model is to decide always."""
        if accuracy is None:
            return None
        if not 0 < accuracy < 1:
            raise ValueError(f"abstain is {accuracy}; it is an accuracy between 0 and 1, such as 0.95")
        if ABSTAIN in labels_of(model):
            raise ValueError(f"this model has a label {ABSTAIN!r}, so an abstention could not be told from it")
        if model.calibration is None:
            raise ValueError(f"this model has no calibration, so it cannot tell when to abstain; {ADD_CALIBRATION}")
        return cls(accuracy, model.calibration.least_confidence(accuracy))

    def reason(self, confidence: float, warnings: Sequence[InputWarning]) -> str | None:
        """Why there is no decision, in a sentence; None where there is one."""
        if warnings:
            return warnings[0].message
        if confidence >= self.least_confidence:
            return None
        return (
            f"Confidence is {confidence:.1%}; only from {self.least_confidence:.1%} on were {self.accuracy:.0%} of the "
            "validation texts right."
        )
