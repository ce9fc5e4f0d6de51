"""What to explain of each decision: for which label, against which, by which method, and with how much detail."""

from dataclasses import dataclass
from typing import TypedDict, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.inference.abstaining import Abstention
from lexical_sae.inference.labels import check_method, label_index, labels_of, names_of
from lexical_sae.inference.methods import METHODS
from lexical_sae.mechanistic.exact import contrast
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.outputs import CLASSES, OutputKind
from lexical_sae.utils.errors import SettingsError


class Asked(TypedDict, total=False):
    """What may be asked of an explanation beside its label and method; `explain` says what each is."""

    effects: bool
    places: bool
    all_tokens: bool
    abstain: float | None
    causes: bool
    merge_inflections: bool


@dataclass(frozen=True)
class Question:
    """A question about any text's decision."""

    target: int | None
    """The label to explain; None for the most probable one that is not the contrast."""
    contrast: int | None
    """The label to contrast it with; None for the mean of all."""
    method: str
    effects: bool
    """Whether to compute the effect of removing each word alone."""
    places: bool
    """Whether to give the place where each word won."""
    all_tokens: bool = False
    """Whether explanations name word pieces and symbols when they are shown."""
    abstention: Abstention | None = None
    """When the model is not to decide; None for never."""
    causes: bool = False
    """Whether to measure which word causes each shift by context."""
    merge_inflections: bool = False
    """Whether explanations show forms of one word as one when they are shown."""
    output: OutputKind = CLASSES
    """What the decisions are between."""

    @classmethod
    def of(
        cls,
        model: LexicalSAE,
        target: str | int | None,
        contrast: str | int | None,
        method: str,
        **asked: Unpack[Asked],
    ) -> "Question":
        """The question in the model's terms; what the model does not have is refused."""
        labels = names_of(model)
        check_method(method, METHODS)
        chosen = None if target is None else label_index(labels, target, "target")
        other = None if contrast is None else label_index(labels, contrast, "contrast")
        if other is not None:
            labels_of(model, "a contrast")
        if chosen is not None and chosen == other:
            raise SettingsError(f"target and contrast are both {labels[chosen]!r}; a label is not more than itself")
        return cls(
            chosen,
            other,
            method,
            asked.get("effects", True),
            asked.get("places", True),
            asked.get("all_tokens", False),
            Abstention.of(model, asked.get("abstain")),
            asked.get("causes", False),
            asked.get("merge_inflections", False),
            model.output,
        )

    def targets(self, logits: Float[Tensor, "B C"]) -> Int[Tensor, " B"]:
        """The label that each explanation is for."""
        if self.target is not None:
            return torch.full_like(logits[:, 0], self.target, dtype=torch.long)
        return self.output.default_target(logits, self.contrast)

    def direction(self, logits: Float[Tensor, "B C"], targets: Int[Tensor, " B"]) -> Float[Tensor, "B C"]:
        """What is explained, as weights on the logits."""
        if self.contrast is None:
            return self.output.direction(logits, targets)
        return contrast(logits, targets, torch.full_like(targets, self.contrast))
