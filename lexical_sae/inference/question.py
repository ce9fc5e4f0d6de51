"""What to explain of each decision: for which label, against which, by which method, and with how much detail."""

from dataclasses import dataclass

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
    words_only: bool = False
    """Whether only words are wanted: no spans of the text, and no sentences about what is left out."""

    @classmethod
    def of(
        cls,
        model: LexicalSAE,
        target: str | int | None,
        contrast: str | int | None,
        method: str,
        *,
        effects: bool,
        places: bool,
        all_tokens: bool = False,
        abstain: float | None = None,
        causes: bool = False,
        merge_inflections: bool = False,
        words_only: bool = False,
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
        abstention = Abstention.of(model, abstain)
        return cls(
            chosen,
            other,
            method,
            effects,
            places,
            all_tokens,
            abstention,
            causes,
            merge_inflections,
            model.output,
            words_only,
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
