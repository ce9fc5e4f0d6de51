"""How a model is trained: every key of the `training` section of an experiment."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PositiveFloat, model_validator

from lexical_sae.circuits.geco import ControllerConfig, CountConstraint, GECOController
from lexical_sae.circuits.objective import Objective
from lexical_sae.training.callbacks import known_tracker
from lexical_sae.training.loss.auxiliary_head import AuxiliaryHead
from lexical_sae.training.loss.independence import Independence
from lexical_sae.training.optim import AdamWEMA, OptimizerConfig
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig, Shorthand
from lexical_sae.utils.precision import EncoderType


class TrainingConfig(PartConfig):
    """Steps, rates, what is asked of circuits, and when to stop."""

    max_epochs: int | None = Field(default=None, ge=1)
    """Passes over the training texts that are planned; early stopping may end a run before. null plans as many as give
    `planned_steps`, at least 1 and at most `most_epochs`: more where texts are few."""
    batch_size: int | None = Field(default=32, ge=1)
    """Texts computed at once; halved, with more accumulation, when memory runs out. null means 32, in as large pieces
    as memory allows."""
    planned_steps: int = Field(default=300, ge=1)
    """Optimiser steps for which `max_epochs: null` plans passes."""
    most_epochs: int = Field(default=20, ge=1)
    """Passes that `max_epochs: null` plans at most."""
    minutes: PositiveFloat | None = None
    """How long training may take, about, with the recipe `anchored`. Seconds are rehearsed, and passes, layers that
    learn, and at last rows are chosen to fit (`plan.json`); evaluation comes on top. null takes what is set."""
    short_first: float = Field(default=0.0, ge=0, le=1)
    """How much short texts come before long ones within an epoch: 0 leaves the order to the lot, 1 sorts. For training
    texts that are parts of the texts in use, as phrases are of sentences. Not where length tells of the label."""
    gradient_accumulation_steps: int = Field(default=1, ge=1)
    """Batches per optimiser step. What is a mean over samples is the same as with a batch so much larger; the terms
    `separation_cosine`, `df_flops`, `frequency` and `active_count`, the class means of `separation_contrastive`, the
    balance `running_mean`, the count constraint and the spread of the logits see one batch at a time."""
    dtype: EncoderType = "float32"
    """What the encoder computes training steps in: `float32`, or `bfloat16` (autocast, for GPUs that have it; on a CPU
    refused unless a trial multiplication works, and seldom faster). Weights, gates, heads, losses and all that is
    measured stay in single precision, and so does the trained model in use."""
    learning_rate: PositiveFloat | None = 5e-5
    """Highest learning rate of the encoder; null finds one by a range test."""
    head_rate: PositiveFloat = 20.0
    """Learning rate of head, pool and expander, as a multiple of the encoder's."""
    gate_rate: PositiveFloat = 100.0
    """Learning rate of thresholds and offsets, as a multiple of the encoder's."""
    optimizer: Annotated[OptimizerConfig, Field(discriminator="kind"), Shorthand] = AdamWEMA.Config()
    """`adamw` (with schedule and averaged weights) or `schedule_free`."""
    encoder_dropout: float | None = Field(default=None, ge=0, lt=1)
    """Share of the encoder's states that is dropped at random in training; null keeps what the encoder was made with.
    A greatest value over noisy positions is not the one without noise: with dropout other words open than in use."""
    freeze_embeddings: bool = True
    """Whether input embedding and decoder stay as they were pretrained; words keep their meaning with them."""
    frozen_layers: int = Field(default=0, ge=0)
    """How many of the encoder's layers, the lowest, stay as they were pretrained, with the input embedding. What they
    compute is kept per text and read again in later passes, so that larger encoders train on a CPU."""
    windows_per_text: int | None = Field(default=1, ge=1)
    """Of a text that is longer than `model.max_length` and read whole: how many of its windows the encoder reads in a
    step, drawn anew each time; words elsewhere keep their default. null reads all. Validation always does."""
    gradient_centralization: bool = False
    """Whether gradients of matrices, except the head's, lose their mean before each step."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of each label that is spread over all classes."""
    shared_word_vectors: bool = False
    """Whether the head learns a projection of the words' embeddings, common to all words, beside a vector of each
    word's own: rare words learn from frequent ones near to them. In the trained model they are one vector per word."""
    calibrated_start: float | None = Field(default=None, gt=0)
    """Before training, shift the gate so that this many times `active_target` words are open; null does not."""
    active_target: PositiveFloat = 100.0
    """Active words per text (per position when tagging) that the count constraint allows at most, and beyond which a
    sparsity-aware tau is relaxed."""
    count: CountConstraint.Config | None = None
    """Keep the mean number of active words at most at `active_target`; null does not."""
    class_weight: Literal["balanced"] | dict[str, PositiveFloat] | None = None
    """How much texts of each class count, in the loss, the fit of the table and validation, for classifiers:
    `balanced` makes all classes count the same, a mapping gives the weight of each class it names and 1 to the others;
    null counts every text once."""
    negations: float = Field(default=0.0, ge=0, le=1)
    """Rule-made sentences about negation ("it isn't gripping"), as a share of the training texts and at most 5,880, for
    models with literal words whose two labels are negative and positive. They teach context; the table never sees
    them."""
    auxiliary: AuxiliaryHead.Config | None = None
    """A plain classifier on the encoder's states that helps it learn, and is thrown away; null has none."""
    independence: Independence.Config | None = None
    """Mask one word of some texts and ask that the others keep their contributions, for models with literal words and
    context; null does not."""
    warmup_fraction: float = Field(default=0.2, ge=0, le=1)
    """Share of the planned steps that learn the task alone, before circuits are asked for."""
    controller: ControllerConfig = GECOController.Config()
    """How cross-entropy is held while circuits are asked for: `geco` or `relative_geco`."""
    objective: Objective.Config = Objective.Config()
    """What is asked of circuits, and how it adds up."""
    sparsity_target: float = Field(default=0.1, gt=0, le=1)
    """Share of a text's active words that is its circuit, for every term that does not say otherwise."""
    target_accuracy: float | None = Field(default=None, gt=0, lt=1)
    """Validation accuracy whose cross-entropy is to be kept; null keeps that of the warm-up."""
    patience: int = Field(default=10, ge=1)
    """Epochs without improvement, after the warm-up, that end a run."""
    positions_per_step: int = Field(default=512, ge=1)
    """Samples of a step, drawn at random, that circuits are asked for at most: positions when tagging; texts, where a
    step has more than so many."""
    checkpoint_minutes: PositiveFloat = 5.0
    """Minutes between checkpoints, from which an interrupted run goes on."""
    report_to: tuple[Annotated[str, AfterValidator(known_tracker)], ...] = ()
    """Trackers that get every record of a run beside `history.jsonl`: `tensorboard`, where that is installed."""

    @model_validator(mode="after")
    def _has_room_for_a_tau(self) -> "TrainingConfig":
        if self.warmup_fraction == 0 and self.controller.tau_ce is None and self.objective.terms:
            raise SettingsError("warmup_fraction 0 leaves no step to take tau from; raise it, or set controller.tau_ce")
        return self

    def asked_of_circuits(self) -> Objective.Config:
        """The objective with `sparsity_target` and `active_target` written where terms leave it to them."""
        aims = {
            "target": self.active_target,
            "fraction": self.sparsity_target,
            "least_frequency": 0.1 * self.sparsity_target,
        }
        terms = [
            term.model_copy(update={name: aim for name, aim in aims.items() if getattr(term, name, aim) is None})
            for term in self.objective.terms
        ]
        return self.objective.model_copy(update={"terms": tuple(terms)})

    def planned_epochs(self, texts: int) -> int:
        """Passes over so many texts. Example: 7,251 texts, batch 32, `max_epochs: null` -> 1"""
        steps_per_epoch = -(-texts // self.effective_batch)
        return self.max_epochs or min(self.most_epochs, max(1, round(self.planned_steps / steps_per_epoch)))

    @property
    def effective_batch(self) -> int:
        """Texts per optimiser step."""
        return (self.batch_size or 32) * self.gradient_accumulation_steps
