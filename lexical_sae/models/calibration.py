"""What a model keeps of its training and validation texts, so that it knows when not to decide.

The words of the training texts (as hashes), the usual state of the encoder, the limits beyond which a text is unusual,
and how often the model was right at each confidence. Two files beside the weights hold it: figures as JSON, the rest as
safetensors. Models saved without them load, and lack the warnings that need them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import torch
from jaxtyping import Float, Int
from pydantic import Field, ValidationError
from safetensors.torch import load_file, save_file
from torch import Tensor

from lexical_sae.data.words import word_spans
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.part import PartConfig, first_complaint
from lexical_sae.utils.precision import full_precision

FIGURES, TENSORS = "calibration.json", "calibration.safetensors"
ADD_CALIBRATION = "add one from its run's data with `lexical-sae calibrate MODEL`"
Share = Field(ge=0, le=1)


def words_of(text: str) -> Iterator[str]:
    """The words of a text in lower case, an accent as one with its letter; symbols, punctuation and emojis are none.

    Example: "Isn't it? 👍" -> isn't, it
    """
    for start, end in word_spans(text):
        word = normalize("NFC", text[start:end].casefold()).replace("’", "'")
        if word.isalnum() or any(map(str.isalnum, word)):
            yield word


@lru_cache(maxsize=2**16)
def word_hash(word: str) -> int:
    """A word as a number, the same on every machine: a saved model does not spell out its training texts."""
    return int.from_bytes(blake2b(word.encode(errors="replace"), digest_size=8).digest(), signed=True)


@dataclass(frozen=True, eq=False)
class UsualStates:
    """Where the mean encoder state of a training text lies."""

    centre: Float[Tensor, " E"]
    whitening: Float[Tensor, "E E"]
    """`L` with `L L' = covariance^-1`."""

    @full_precision()
    def distances(self, states: Float[Tensor, "B E"]) -> Float[Tensor, " B"]:
        """Mahalanobis distance of each state from the centre."""
        return ((states.float().cpu() - self.centre) @ self.whitening).norm(dim=-1)


@dataclass(frozen=True, eq=False)
class UsualTexts:
    """The reference that unusual texts are compared with."""

    known_words: frozenset[int]
    """Hashes of the words of the training texts."""
    unknown_rate: float
    """Share of the words of validation texts that are not among them."""
    states: UsualStates | None
    """None for models that decide without the encoder."""


class AccuracyStep(PartConfig):
    """Validation texts of similar confidence, and how many of them the model got right."""

    confidence: float = Share
    """The least."""
    accuracy: float = Share
    """Never less than at a lower confidence: isotonic regression."""
    texts: int = Field(gt=0)


class CalibrationFigures(PartConfig):
    """The contents of `calibration.json`."""

    format_version: Literal[1] = 1
    texts: int = Field(gt=0)
    """Validation texts that limits and accuracies come from."""
    false_alarms: float = Share
    """Share of these that may get a warning."""
    unknown_rate: float = Field(gt=0, lt=1)
    limits: dict[str, float]
    """By kind of warning, the score above which a text gets it."""
    steps: tuple[AccuracyStep, ...]
    """By confidence; empty for output kinds that never abstain."""
    temperature: float = Field(default=1.0, gt=0)
    """What logits are divided by before they become probabilities; models saved before it was fitted have 1."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """The figures, and what scores are made from."""

    figures: CalibrationFigures
    usual: UsualTexts

    def least_confidence(self, accuracy: float) -> float:
        """The confidence from which on at least this share of validation texts was right; refused if none is."""
        steps = self.figures.steps
        if found := next((step for step in steps if step.accuracy >= accuracy), None):
            return found.confidence
        raise SavedFileError(
            f"abstain is {accuracy:.1%}, but on {self.figures.texts} validation texts this model was right in at most "
            f"{steps[-1].accuracy:.1%}, where its confidence was {steps[-1].confidence:.1%} or more; ask for less"
        )

    def save(self, folder: Path) -> None:
        """Write both files."""
        (folder / FIGURES).write_text(self.figures.model_dump_json(indent=2) + "\n", encoding="utf-8")
        tensors: dict[str, Tensor] = {"known_words": _as_tensor(self.usual.known_words)}
        if self.usual.states is not None:
            tensors |= {"centre": self.usual.states.centre, "whitening": self.usual.states.whitening}
        save_file(tensors, folder / TENSORS, metadata={"format": "pt"})
        # safetensors writes for the owner alone.
        (folder / TENSORS).chmod((folder / FIGURES).stat().st_mode)

    @classmethod
    def load(cls, folder: Path) -> "Calibration":
        """What `save` wrote; another version of the layout is refused."""
        try:
            figures = CalibrationFigures.model_validate_json((folder / FIGURES).read_text(encoding="utf-8"))
        except ValidationError as error:
            raise SavedFileError(f"{folder / FIGURES}: {first_complaint(error)}; {ADD_CALIBRATION}") from error
        tensors = load_file(folder / TENSORS)
        known = frozenset(tensors.pop("known_words").tolist())
        states = UsualStates(**tensors) if tensors else None
        return cls(figures, UsualTexts(known, figures.unknown_rate, states))


def _as_tensor(hashes: frozenset[int]) -> Int[Tensor, " W"]:
    return torch.tensor(sorted(hashes), dtype=torch.long)
