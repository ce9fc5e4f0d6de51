"""What is asked of each decision: for which label, against which, by which method, and how much is to be told."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from splade.inference.abstaining import Abstention
from splade.inference.labels import check_method, label_index, labels_of
from splade.inference.methods import METHODS
from splade.mechanistic.exact import class_centred, contrast
from splade.models.lexical_sae import LexicalSAE


@dataclass(frozen=True)
class Question:
    """A question that can be asked of any text."""

    target: int | None
    """The label to speak for; None for the most probable one that is not the contrast."""
    contrast: int | None
    """The label to speak against; None for the mean of all."""
    method: str
    effects: bool
    """Whether to tell what removing each word alone does."""
    places: bool
    """Whether to tell where in the text each word won."""
    all_tokens: bool = False
    """Whether explanations name word pieces and symbols when they are shown."""
    abstention: Abstention | None = None
    """When the model is not to decide; None for never."""
    causes: bool = False
    """Whether to measure which word causes each shift by context."""
    merge_inflections: bool = False
    """Whether explanations show forms of one word as one when they are shown."""

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
    ) -> "Question":
        """The question in the model's terms; what the model does not have is refused."""
        labels = labels_of(model)
        check_method(method, METHODS)
        chosen = None if target is None else label_index(labels, target, "target")
        other = None if contrast is None else label_index(labels, contrast, "contrast")
        if chosen is not None and chosen == other:
            raise ValueError(f"target and contrast are both {labels[chosen]!r}; a label is not more than itself")
        abstention = Abstention.of(model, abstain)
        return cls(chosen, other, method, effects, places, all_tokens, abstention, causes, merge_inflections)

    def targets(self, logits: Float[Tensor, "B C"]) -> Int[Tensor, " B"]:
        """The label that each explanation speaks for."""
        if self.target is not None:
            return torch.full_like(logits[:, 0], self.target, dtype=torch.long)
        if self.contrast is None:
            return logits.argmax(-1)
        without = logits.clone()
        without[:, self.contrast] = -torch.inf
        return without.argmax(-1)

    def direction(self, logits: Float[Tensor, "B C"], targets: Int[Tensor, " B"]) -> Float[Tensor, "B C"]:
        """What is explained, as weights on the logits."""
        if self.contrast is None:
            return class_centred(logits, targets)
        return contrast(logits, targets, torch.full_like(targets, self.contrast))
