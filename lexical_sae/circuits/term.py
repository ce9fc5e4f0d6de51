"""What a term of the circuit objective is: its settings, what it may see of a step, and what it gives."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor, nn

from lexical_sae.circuits import losses
from lexical_sae.circuits.losses import Scalar
from lexical_sae.circuits.trackers import spread
from lexical_sae.mechanistic.attribution import attribute, attribute_centered
from lexical_sae.models.circuit_state import CircuitState
from lexical_sae.utils.part import PartConfig


@runtime_checkable
class GateReading(Protocol):
    """A gate's output for each word: a `GateOutput`, by its fields alone, since this room does not import it."""

    @property
    def gate_mask(self) -> Tensor: ...
    @property
    def open_prob(self) -> Tensor: ...


@dataclass(frozen=True)
class StepView:
    """All that a circuit term may see of a training step: N documents, or N labelled positions."""

    state: CircuitState
    """The decisions, made from the activations that the loss acts on."""
    gate: GateReading
    """The gate on pooled logits (documents) or at the labelled positions; padding is not in it."""
    labels: Int[Tensor, " N"]
    head: Callable[[Tensor], CircuitState]
    """From activations to decisions; must not mask words at random, or it would judge another circuit."""
    thresholds: Float[Tensor, " V"]
    """Threshold of each word, with its gradient."""
    excess: Float[Tensor, "N K"] | None = None
    """How far each logit lies above what opens its word, with its gradient; only `own_words` needs it."""
    own: Bool[Tensor, "N K"] | None = None
    """Words that stand in the text, or at the position; only `own_words` needs them."""
    candidates: Bool[Tensor, " V"] | None = None
    """Words that may open in some text of the batch, with a column or without; sharpens `frequency`."""
    words: Int[Tensor, " K"] | None = None
    """The dimension of each column, where words that are zero in the whole batch have none; None where all have."""
    _attributions: dict[tuple[bool, bool], Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def is_open(self) -> Bool[Tensor, "N K"]:
        """Words that the gate opened, including those masked at random afterwards."""
        return self.gate.gate_mask > 0.5

    def over_all_words(self, values: Tensor) -> Tensor:
        """Values by column with a place for every dimension."""
        return spread(values, self.words, len(self.thresholds))

    def attributions(self, *, centered: bool, of_prediction: bool = False) -> Float[Tensor, "N K"]:
        """Attributions of the labels, or of the predicted classes; computed once for all terms that ask."""
        key = (centered, of_prediction)
        if key not in self._attributions:
            classes = self.state.logits.argmax(-1) if of_prediction else self.labels
            self._attributions[key] = (attribute_centered if centered else attribute)(self.state, classes)
        return self._attributions[key]


CIRCUIT_FRACTION, ACTIVE_WORDS = 0.1, 100.0
"""What terms aim at when neither they nor the training settings set it."""


class CommonConfig(PartConfig):
    """What every term has."""

    weight: NonNegativeFloat = 1.0
    """Factor of this term; the balance `sum` takes no other than 1."""
    in_warmup: bool = False
    """Whether it is active from the first step, by its weight alone, and not only after the warm-up."""


class AttributionConfig(CommonConfig):
    """What every term on attributions has."""

    centered: bool = True
    """Whether attributions are class-centred, which no common shift of all classes can fool; the recipes of the
    papers use raw ones."""


class CompletenessConfig(AttributionConfig):
    """What both kinds of completeness have."""

    fraction: float | None = Field(default=None, gt=0, le=1)
    """Share of a text's active words that is its circuit; null takes `training.sparsity_target`."""
    temperature: PositiveFloat = 10.0
    """How hard the edge of the circuit is, in units of the mean attribution."""
    of_prediction: bool = False
    """Whether the circuit is that of the predicted class in training too, as it always is in evaluation."""

    def masked_logits(self, view: StepView, *, is_training: bool) -> Float[Tensor, "N C"]:
        """Logits when only the circuit is left."""
        attr = view.attributions(centered=self.centered, of_prediction=self.of_prediction or not is_training)
        fraction = CIRCUIT_FRACTION if self.fraction is None else self.fraction
        return view.head(losses.keep_circuit(view.state, attr, fraction, self.temperature)).logits


class Term(nn.Module, ABC):
    """One term of the circuit objective."""

    @abstractmethod
    def forward(self, view: StepView) -> Scalar:
        """The loss, unweighted."""

    compares_epochs: ClassVar[bool] = True
    """Whether a lower value means a better epoch."""
    reopens_words: ClassVar[bool] = False
    """Whether it pulls on words that are closed in every text, so that they may come back."""

    def end_of_epoch(self) -> None:
        """What is to be done after every epoch: nothing, for most."""
