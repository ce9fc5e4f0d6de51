"""When a model does not decide: the text is unusual, or at its confidence too few validation texts were right."""

from collections.abc import Sequence
from dataclasses import dataclass

from lexical_sae.explanation import ABSTAIN, InputWarning
from lexical_sae.inference.labels import labels_of
from lexical_sae.models.calibration import ADD_CALIBRATION
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.errors import SettingsError


@dataclass(frozen=True)
class Abstention:
    """The conditions under which a model decides."""

    accuracy: float
    """Of validation texts at the same confidence."""
    least_confidence: float

    @classmethod
    def of(cls, model: LexicalSAE, accuracy: float | None) -> "Abstention | None":
        """From the wanted accuracy; None where the model is to decide always."""
        if accuracy is None:
            return None
        if not 0 < accuracy < 1:
            raise SettingsError(f"abstain is {accuracy}; it is an accuracy between 0 and 1, such as 0.95")
        if ABSTAIN in labels_of(model, "abstaining"):
            raise SettingsError(f"this model has a label {ABSTAIN!r}, so an abstention would look the same")
        if model.calibration is None:
            raise SettingsError(f"this model has no calibration, so it cannot abstain; {ADD_CALIBRATION}")
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
