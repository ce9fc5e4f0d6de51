"""The terms of the circuit objective: a pure loss of `losses.py`, joined with what it must remember.

A term sees one `StepView` and returns one number, unweighted. In training mode it updates its trackers, once per call
(so once per micro-batch); in evaluation mode it only reads them. "Per sample" terms are means over samples, so
gradient accumulation changes nothing; "batch" terms read the batch as a whole.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator
from torch import nn
from torch.nn.functional import softplus

from lexical_sae.circuits import losses
from lexical_sae.circuits.losses import Scalar
from lexical_sae.circuits.term import (
    ACTIVE_WORDS,
    CIRCUIT_FRACTION,
    AttributionConfig,
    CommonConfig,
    CompletenessConfig,
    StepView,
    Term,
)
from lexical_sae.circuits.trackers import (
    AttributionCentroidTracker,
    DocumentFrequencyTracker,
    FeatureFrequencyTracker,
)
from lexical_sae.utils.errors import SettingsError


class CompletenessCE(Term):
    """The circuit alone gives the gold label. Per sample."""

    class Config(CompletenessConfig):
        kind: Literal["completeness_ce"] = "completeness_ce"

        def build(self, size: int, num_labels: int) -> "CompletenessCE":
            del size, num_labels
            return CompletenessCE(self)

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, view: StepView) -> Scalar:
        return losses.completeness_ce(self.config.masked_logits(view, is_training=self.training), view.labels)


class CompletenessKL(Term):
    """The circuit alone decides as the whole model does. Per sample."""

    REFERENCE: ClassVar = "Chen et al. 2025, arXiv:2505.10039"

    class Config(CompletenessConfig):
        kind: Literal["completeness_kl"] = "completeness_kl"

        def build(self, size: int, num_labels: int) -> "CompletenessKL":
            del size, num_labels
            return CompletenessKL(self)

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, view: StepView) -> Scalar:
        return losses.completeness_kl(view.state.logits, self.config.masked_logits(view, is_training=self.training))


class SeparationCosine(Term):
    """Classes have different circuits: mean cosine between their centroids. Batch."""

    class Config(AttributionConfig):
        kind: Literal["separation_cosine"] = "separation_cosine"

        def build(self, size: int, num_labels: int) -> "SeparationCosine":
            return SeparationCosine(self, size, num_labels)

    def __init__(self, config: Config, size: int, num_labels: int) -> None:
        super().__init__()
        self.config = config
        self.tracker = AttributionCentroidTracker(size, num_labels)

    def forward(self, view: StepView) -> Scalar:
        attr = view.attributions(centered=self.config.centered)
        centroids, seen = self.tracker.blend(attr, view.labels, view.words)
        if self.training:
            self.tracker.keep(centroids, seen)
        return losses.separation_cosine(centroids, seen)


class SeparationContrastive(Term):
    """A text's circuit is nearer to its own class's than to any other, by a margin. Per sample, given the centroids.

    The margin is learned, and bounded below: left free, it would only shrink. In evaluation it is the initial one, so
    that epochs can be compared.
    """

    class Config(AttributionConfig):
        kind: Literal["separation_contrastive"] = "separation_contrastive"
        margin: PositiveFloat = 0.3
        """Margin at the start, as a difference of cosines."""
        least_margin: NonNegativeFloat = 0.1
        """The margin never falls below this."""

        @model_validator(mode="after")
        def _in_order(self) -> "SeparationContrastive.Config":
            if self.margin <= self.least_margin:
                raise SettingsError(f"margin {self.margin} must be above least_margin {self.least_margin}; raise it")
            return self

        def build(self, size: int, num_labels: int) -> "SeparationContrastive":
            return SeparationContrastive(self, size, num_labels)

    def __init__(self, config: Config, size: int, num_labels: int) -> None:
        super().__init__()
        self.config = config
        self.tracker = AttributionCentroidTracker(size, num_labels)
        # The inverse of softplus, so that the margin starts at its setting.
        self.raw_margin = nn.Parameter(torch.tensor(config.margin - config.least_margin).expm1().log())

    def margin(self) -> Scalar:
        """The learned margin."""
        return self.config.least_margin + softplus(self.raw_margin)

    def forward(self, view: StepView) -> Scalar:
        attr = view.attributions(centered=self.config.centered)
        if self.training:
            self.tracker.update(attr, view.labels, view.words)
        margin = self.margin() if self.training else self.config.margin
        centroids, seen = self.tracker.centroids, self.tracker.seen
        return losses.separation_contrastive(attr, view.labels, centroids, seen, margin, view.words)


class Hoyer(Term):
    """Few words carry a decision: Hoyer's measure of attribution magnitudes. Per sample."""

    REFERENCE: ClassVar = "Hoyer 2004, JMLR 5:1457-1469"

    class Config(AttributionConfig):
        kind: Literal["hoyer"] = "hoyer"

        def build(self, size: int, num_labels: int) -> "Hoyer":
            del size, num_labels
            return Hoyer(self)

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, view: StepView) -> Scalar:
        return losses.hoyer(view.over_all_words(view.attributions(centered=self.config.centered)))


class DFFlops(Term):
    """Words that are open in many texts are used little. Batch."""

    class Config(CommonConfig):
        kind: Literal["df_flops"] = "df_flops"

        def build(self, size: int, num_labels: int) -> "DFFlops":
            del num_labels
            return DFFlops(size)

    def __init__(self, size: int) -> None:
        super().__init__()
        self.tracker = DocumentFrequencyTracker(size)

    def forward(self, view: StepView) -> Scalar:
        if self.training:
            self.tracker.update(view.over_all_words(view.is_open))
        return losses.df_flops(view.over_all_words(view.state.sparse_vector), self.tracker.frequencies())

    def end_of_epoch(self) -> None:
        self.tracker.end_of_epoch()


class L1L0(Term):
    """Strengths are small and few. Per sample."""

    class Config(CommonConfig):
        kind: Literal["l1_l0"] = "l1_l0"
        gain: PositiveFloat = 10.0
        """Makes up for a mean over the whole vocabulary, nearly all of it closed."""

        def build(self, size: int, num_labels: int) -> "L1L0":
            del size, num_labels
            return L1L0(self)

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, view: StepView) -> Scalar:
        return self.config.gain * losses.l1_l0(view.over_all_words(view.state.sparse_vector))


class GateL0(Term):
    """Few gates are open. Per sample."""

    REFERENCE: ClassVar = "Rajamanoharan et al. 2024, arXiv:2407.14435"

    class Config(CommonConfig):
        kind: Literal["gate_l0"] = "gate_l0"
        gain: PositiveFloat = 10.0
        """Makes up for a mean over the whole vocabulary, nearly all of it closed."""

        def build(self, size: int, num_labels: int) -> "GateL0":
            del size, num_labels
            return GateL0(self)

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, view: StepView) -> Scalar:
        return self.config.gain * losses.gate_l0(view.over_all_words(view.gate.open_prob))


class FrequencyPenalty(Term):
    """Words that hardly ever open, though they might, get lower thresholds. Batch, through the tracker.

    A word that never opens gets no gradient from any other term. Its chance to come back is `tracker.propose`: before
    training, words that the lexical head ranks high in some text are made candidates.

    Silent in its first steps and jumping with every word that becomes rare, its value is no measure of an epoch.
    """

    compares_epochs = False
    reopens_words = True

    class Config(CommonConfig):
        kind: Literal["frequency"] = "frequency"
        least_frequency: float | None = Field(default=None, gt=0, lt=1)
        """Share of texts below which a word is under-active; null takes a tenth of `training.sparsity_target`."""
        lowest_threshold: PositiveFloat = 0.01
        """Thresholds are not pulled below this."""
        quiet_steps: int = Field(default=50, ge=0)
        """Steps before the first word is called under-active."""
        proposals: int = Field(default=50, ge=0)
        """How many words the lexical head, as it is before training, proposes for each of up to 512 training texts (or
        for each tagged position): those of the highest logits, which may get lower thresholds even if they never open.
        With 0, only words that opened in this epoch or the one before (or are within reach of a token) may."""

        def build(self, size: int, num_labels: int) -> "FrequencyPenalty":
            del num_labels
            return FrequencyPenalty(self, size)

    def __init__(self, config: Config, size: int) -> None:
        super().__init__()
        self.config = config
        self.tracker = FeatureFrequencyTracker(size, quiet_steps=config.quiet_steps)

    def forward(self, view: StepView) -> Scalar:
        if self.training:
            self.tracker.update(view.over_all_words(view.is_open), view.candidates)
        least = 0.1 * CIRCUIT_FRACTION if self.config.least_frequency is None else self.config.least_frequency
        rare = self.tracker.under_active(least)
        return losses.frequency_penalty(view.thresholds, rare, self.config.lowest_threshold)

    def end_of_epoch(self) -> None:
        self.tracker.end_of_epoch()


class ActiveCount(Term):
    """No more words are open than wanted. Batch, because what is bounded is the mean count."""

    class Config(CommonConfig):
        kind: Literal["active_count"] = "active_count"
        target: PositiveFloat | None = None
        """Open words per text or position; null takes `training.active_target`."""

        def build(self, size: int, num_labels: int) -> "ActiveCount":
            del size, num_labels
            return ActiveCount(self)

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, view: StepView) -> Scalar:
        target = ACTIVE_WORDS if self.config.target is None else self.config.target
        return losses.active_surplus(view.is_open, view.gate.open_prob, target)


class OwnWords(Term):
    """A text's own words are open under their own names: swap a word, and its dimension follows. Per sample.

    Without it, a count constraint closes whatever does not help the decision, and a word that is swapped in may stay
    silent.
    """

    reopens_words = True

    class Config(CommonConfig):
        kind: Literal["own_words"] = "own_words"
        margin: NonNegativeFloat = 1.0
        """How far above its opening the logit of a word of the text should be."""

        def build(self, size: int, num_labels: int) -> "OwnWords":
            del size, num_labels
            return OwnWords(self)

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, view: StepView) -> Scalar:
        if view.excess is None or view.own is None:
            raise SettingsError("the term 'own_words' needs StepView.excess and StepView.own; give both")
        return losses.own_words(view.excess, view.own, self.config.margin)
