"""What a step of the optimiser does with a batch.

1. The batch in pieces that fit in memory; each is encoded and decided on, and its loss sent backward (`loss`).
2. Gradients centralised if wanted, clipped, one step of the optimiser.

The loop takes these steps for good; preparation takes some that leave no trace.
"""

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

from lexical_sae.circuits.losses import active_count
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.training.loss.criterion import NOTHING, Criterion, PieceLoss
from lexical_sae.training.optim import Optimizer, ParameterGroup, centralise_gradients
from lexical_sae.training.preparation.batch_size import MicroBatches
from lexical_sae.training.preparation.lr_range import Reading
from lexical_sae.training.processes import Processes
from lexical_sae.training.samples import Encoded
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.training.tasks import Task
from lexical_sae.utils.errors import DivergedError
from lexical_sae.utils.precision import encoder_precision


class Steps:
    """A model, what it learns from, and how a step is taken; how many were taken already."""

    def __init__(
        self,
        model: LexicalSAE,
        task: Task,
        settings: TrainingConfig,
        criterion: Criterion,
        processes: Processes,
        warmup: int,
    ) -> None:
        self.model, self.task, self.settings, self.criterion = model, task, settings, criterion
        self.processes, self.warmup = processes, warmup
        self.micro = MicroBatches(settings.batch_size or settings.effective_batch)
        self.done = 0
        self.auxiliary_rate = settings.head_rate
        """Learning rate of the auxiliary head, as a multiple of the encoder's; preparation may lower it."""

    @property
    def is_constrained(self) -> bool:
        """Whether the step to come asks for circuits."""
        return self.done >= self.warmup

    def take(self, optimizer: Optimizer, rows: list[int]) -> list[PieceLoss]:
        """One step of the optimiser by the losses of these rows, which are returned; it is not counted here."""
        optimizer.zero_grad()
        samples = self.task.samples(rows)
        parts = self.micro.run(rows, lambda piece, _: self.backward(piece, samples), optimizer.zero_grad)
        self.processes.sum_gradients(optimizer.params)
        if self.settings.gradient_centralization:
            head = {id(p) for p in self.model.heads.parameters()}
            centralise_gradients(p for p in self.model.parameters() if id(p) not in head)
        optimizer.step()
        return [piece for part in parts for piece in part]

    def read(self, rows: list[int]) -> Reading:
        """The task's loss of rows that are alike, and their active words; nothing is sent backward."""
        encoded = self._encode(rows)
        logits = self.model.decide(encoded.sparse_vector, encoded.head, encoded.words).logits
        active = active_count(encoded.sparse_vector != 0).item()
        return Reading(self.criterion.task_loss(self.model, logits, encoded), active)

    def backward(self, rows: list[int], samples: float) -> list[PieceLoss]:
        """Losses of one piece, that of each kind of sample by itself, sent backward."""
        return [self._backward_alike(alike, samples) for alike in self.task.alike(rows)]

    def parameter_groups(self, rate: float) -> list[ParameterGroup]:
        """Every parameter that learns, once: encoder, gate, auxiliary head, and the rest (expander, pool, heads)."""
        settings, model = self.settings, self.model
        encoder = {id(p) for p in encoder_parameters(model)}
        gate = {id(p) for p in model.gate.parameters()}
        learning = [p for p in (*model.parameters(), *self.criterion.parameters()) if p.requires_grad]
        auxiliary = (
            set() if self.criterion.auxiliary is None else {id(p) for p in self.criterion.auxiliary.parameters()}
        )
        rest = [p for p in learning if id(p) not in encoder | gate | auxiliary]
        groups = [
            ParameterGroup("encoder", [p for p in learning if id(p) in encoder], rate),
            ParameterGroup("head", rest, rate * settings.head_rate),
            ParameterGroup("auxiliary", [p for p in learning if id(p) in auxiliary], rate * self.auxiliary_rate),
            ParameterGroup("gate", [p for p in learning if id(p) in gate], rate * settings.gate_rate, decays=False),
        ]
        return [group for group in groups if group.params]

    def encoder_precision(self) -> contextlib.AbstractContextManager[object]:
        """Within, the encoder computes in the type of the settings."""
        return encoder_precision(self.settings.dtype, next(self.model.parameters()).device)

    def _encode(self, rows: list[int]) -> Encoded:
        """The samples of a training step, the encoder in the precision of the settings."""
        with self.encoder_precision():
            return self.task.encode(self.model, rows, live_only=True)

    def _backward_alike(self, rows: list[int], samples: float) -> PieceLoss:
        """Loss of samples of one kind, times their share of the batch's samples, sent backward."""
        share = self.task.samples(rows) / max(1, samples)
        if share == 0:
            return NOTHING
        encoded = self._encode(rows)
        loss, seen = self.criterion.loss(self.model, encoded, share=share, is_constrained=self.is_constrained)
        if not torch.isfinite(loss):
            raise DivergedError(
                f"the loss became {loss.item()} at step {self.done + 1} (cross-entropy {seen.ce}, terms {seen.terms}); "
                "lower training.learning_rate or the rates of head and gate"
            )
        self.processes.share_of(loss * share).backward()
        return seen


def encoder_parameters(model: LexicalSAE) -> Iterator[nn.Parameter]:
    """What makes the encoder's states: the backbone, and the vectors of orthographic features where it gets them."""
    yield from model.backbone.parameters()
    if model.shape_vectors is not None:
        yield model.shape_vectors
