"""One training loop, for documents and for tagged positions.

Before the first step the model is prepared (`preparation`). A step learns from one batch (`steps`); then the
controllers see its cross-entropy and active words. After every epoch the averaged weights are scored on the validation
texts, and kept if they are the best. A checkpoint holds everything that changes, so that a run that was killed goes on
bit for bit.
"""

import functools
import logging
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn

from lexical_sae.circuits.geco import GECOController, ce_at_accuracy
from lexical_sae.models.assembly import dimension_embeddings, drop_heads
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.long_texts import read_at_once
from lexical_sae.models.word_views import without_context
from lexical_sae.training.callbacks import Callbacks
from lexical_sae.training.folds import FoldedDocuments, in_folds
from lexical_sae.training.frozen_layers import freeze_embeddings, freeze_lower, kept_lower_states
from lexical_sae.training.loss.criterion import Criterion, PieceLoss
from lexical_sae.training.optim import Optimizer
from lexical_sae.training.preparation.preparing import Preparation
from lexical_sae.training.processes import current
from lexical_sae.training.resuming.run_state import digest_of, require_same_data, restore, state_of
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.training.steps import Steps
from lexical_sae.training.stopping import SILENT_STEPS, EpochScores, Interrupted, NoWordActive, Selection, Silence
from lexical_sae.training.tasks import Task
from lexical_sae.training.word_vectors import learn_together, write_out
from lexical_sae.utils.errors import DivergedError, SettingsError
from lexical_sae.utils.precision import require_encoder_type
from lexical_sae.utils.progress import Step

logger = logging.getLogger(__name__)

CROWDED = 1000
"""Active words at the first step from which a run says so: nobody reads that many, and few recipes get down from it."""


class Trainer:
    """A model, what it learns from, and all that changes while it learns."""

    def __init__(
        self,
        model: LexicalSAE,
        train: Task,
        validation: Task,
        settings: TrainingConfig,
        seed: int = 0,
        callbacks: Callbacks | None = None,
    ) -> None:
        labelled = [task.samples(range(len(task.texts))) for task in (train, validation)]
        if not all(labelled):
            raise SettingsError(
                f"training needs labelled texts or words, got {labelled[0]} to learn from and {labelled[1]} to "
                "validate on"
            )
        if model.literal is not None:
            train = in_folds(model, train, seed, settings.windows_per_text)
        _require_equal_labels(model, train)
        self.model, self.train, self.validation = model, train, validation
        self.settings, self.seed, self.callbacks = settings, seed, callbacks or Callbacks()
        self.processes = current()
        require_encoder_type(settings.dtype, next(model.parameters()).device)
        self.steps_per_epoch = len(self._order(epoch=0))
        self.max_epochs = settings.planned_epochs(len(train.texts))
        self.planned_steps = self.steps_per_epoch * self.max_epochs
        self.warmup_steps = round(settings.warmup_fraction * self.planned_steps)
        steps = (self.steps_per_epoch, max(1, self.planned_steps - self.warmup_steps), self.planned_steps)
        self.criterion = Criterion(model, train.heads[0], settings, steps).to(next(model.parameters()))
        self.steps = Steps(model, train, settings, self.criterion, self.processes, self.warmup_steps)
        self.selection, self.silence = Selection(settings.patience), Silence()
        self.best_weights: dict[str, Tensor] = {}
        self.warmup_validations: list[tuple[float, float]] = []
        self._saved_at = time.monotonic()
        if settings.freeze_embeddings:
            freeze_embeddings(model)
        if settings.encoder_dropout is not None:
            _set_dropout(model.backbone.encoder, settings.encoder_dropout)
        freeze_lower(model, settings.frozen_layers)
        if settings.shared_word_vectors:
            for head in model.distinct_heads(train.heads):
                learn_together(head, dimension_embeddings(model))
        self._optimizer: Optimizer | None = None

    @property
    def optimizer(self) -> Optimizer:
        """The optimiser; there after `prepare` or `load_state_dict`."""
        assert self._optimizer is not None, "prepare() comes first"
        return self._optimizer

    @property
    def step(self) -> int:
        """Steps that were taken."""
        return self.steps.done

    @property
    def geco(self) -> GECOController:
        """What holds the cross-entropy while circuits are asked for."""
        return self.criterion.geco

    @property
    def epoch(self) -> int:
        """Epochs that are finished."""
        return self.step // self.steps_per_epoch

    def run(self) -> EpochScores:
        """Train to the end, and leave the model with the best weights, in evaluation mode."""
        # Processes that share the encoder give it texts to read, no states.
        kept = self.settings.frozen_layers if self.processes.count == 1 else 0
        every = (*self.train.texts.ids, *self.validation.texts.ids) if kept else ()
        texts = list(read_at_once(self.model, every))
        with self.processes.sharing(self.model.backbone.encoder), kept_lower_states(self.model, kept, texts):
            return self._run()

    def _run(self) -> EpochScores:
        if self._optimizer is None:
            self.prepare()
            if isinstance(self.train, FoldedDocuments):
                # The table alone is a model too: where texts are few, context may only do harm.
                self._validate()
        while self.model.asks_encoder and self.epoch < self.max_epochs and not self._is_over:
            self._finish_epoch()
            self._validate()
            self._save_if_asked()
        self.model.load_state_dict(self.best_weights)
        for head in self.model.distinct_heads(self.train.heads):
            write_out(head)
        if isinstance(self.train, FoldedDocuments):
            drop_heads(self.model, self.train.heads)
        self.model.eval()
        assert self.selection.best is not None
        if self.has_dropped_context:
            # As fast as a table: no encoder is asked for what it may not change.
            self.model.adopt(without_context(self.model))
        return self.selection.best

    @property
    def _is_over(self) -> bool:
        """Whether patience or time has run out; never before some weights were validated."""
        return self.selection.best is not None and (self.selection.is_over or self._is_out_of_time())

    def _is_out_of_time(self) -> bool:
        return self.processes.any(self.callbacks.is_out_of_time())

    def _is_interrupted(self) -> bool:
        return self.processes.any(self.callbacks.is_interrupted())

    @property
    def has_dropped_context(self) -> bool:
        """Whether the table alone was kept, because no epoch with context was better beyond noise."""
        best = self.selection.best
        return best is not None and best.gain is not None and best.epoch == 0

    def prepare(self) -> None:
        """What comes before the first step: words that may be revived, a calibrated gate, and a learning rate."""
        self._optimizer = self._preparation().run()

    def _preparation(self) -> Preparation:
        return Preparation(self.steps, self._order(epoch=0), self.planned_steps, self.seed, self.callbacks)

    def _order(self, epoch: int) -> list[list[int]]:
        """The batches of an epoch: a function of seed and epoch alone, so that a resumed run sees the same."""
        generator = np.random.default_rng([self.seed, epoch])
        settings = self.settings
        return self.train.batches(settings.effective_batch, generator, settings.short_first)

    def _finish_epoch(self) -> None:
        """The steps that are left of this epoch."""
        self.model.train()
        self.criterion.train()
        epoch = self.epoch
        for rows in self._order(epoch)[self.step % self.steps_per_epoch :]:
            if self.step == self.warmup_steps and self.geco.tau is None:
                self._end_warmup()
            self._take_step(rows)
            # After the last step the epoch is not over: it is still to be validated.
            if self.epoch == epoch:
                self._save_if_asked()
            if self._is_out_of_time():
                break
        self.criterion.objective.end_of_epoch()

    def _end_warmup(self) -> None:
        # A tau that was given needs no validation to be read from.
        wanted = self.settings.target_accuracy if self.settings.controller.tau_ce is None else None
        if wanted is not None:
            with self.optimizer.averaged_weights():
                self._score(self.epoch)
            self.model.train()
            self.criterion.train()
        if self.criterion.objective.terms:
            self.geco.finish_warmup(ce_at_accuracy(wanted, self.warmup_validations) if wanted else None)

    def _take_step(self, rows: list[int]) -> None:
        pieces = self.steps.take(self.optimizer, rows)
        seen = self.criterion.end_of_step(pieces, is_constrained=self.steps.is_constrained)
        self.steps.done += 1
        if self.step == 1 and seen.active > CROWDED:
            logger.warning(
                "%.0f words are active at the first step, too many to read; training.calibrated_start: 2.0 with "
                "model.gate.offset: true starts with about twice training.active_target",
                seen.active,
            )
        self._tell(seen)
        if seen.share and self.silence.take(seen.active) and not self.criterion.objective.reopens_words:
            raise NoWordActive(
                f"no word has been active for {SILENT_STEPS} steps (now step {self.step} of {self.planned_steps}): "
                "every text gets the same answer, and nothing can be learned any more; lower training.learning_rate "
                f"(it is {self.optimizer.peak_rates[0]:.1e}), or start with more words (training.calibrated_start)"
            )

    def _validate(self) -> None:
        """Score the averaged weights of the epoch that just ended, and keep them if they are the best."""
        self._keep_in_step()
        with self.optimizer.averaged_weights():
            scores = self._score(self.epoch)
            if self.selection.take(scores):
                self.best_weights = _copy_of(self.model.state_dict())
        self.callbacks.on_record(
            {
                "event": "validation",
                "epoch": scores.epoch,
                "ce": scores.ce,
                "accuracy": scores.accuracy,
                "active_words": scores.active_words,
                "circuit_score": scores.circuit_score,
                "feasible": scores.is_feasible,
                **({} if scores.gain is None else {"gain": scores.gain, "gain_error": scores.gain_error}),
                "best": scores is self.selection.best,
            }
        )

    def _keep_in_step(self) -> None:
        """Processes that drifted apart by rounding, as other makes of machine may, go on from the first one's state."""
        if drifted := self.processes.differing(self.state_dict()):
            self.load_state_dict(self.processes.from_first(self.state_dict()) or {})
            logger.warning(
                "%d parts of the state had drifted apart between the processes, and are now those of the first; "
                "on machines of one make they stay bitwise equal",
                len(drifted),
            )

    def _score(self, epoch: int) -> EpochScores:
        """Validation of the weights that the model holds; in the warm-up, noted for `target_accuracy`."""
        means = self.criterion.validate(self.model, self.validation)
        ce, accuracy, active, guessing = (means.pop(name) for name in ("ce", "accuracy", "active_words", "guessing_ce"))
        gain, gain_error = (means.pop(name, None) for name in ("gain", "gain_error"))
        if not math.isfinite(ce):
            raise DivergedError(f"the validation loss is {ce} after epoch {epoch}; lower training.learning_rate")
        # Not `steps.is_constrained`, which is of the step to come: these weights may be the warm-up's last.
        # Where context is learned on folds nothing is asked of circuits, and the table alone is compared with the rest.
        was_asked = self.step > self.warmup_steps or isinstance(self.train, FoldedDocuments)
        if not was_asked:
            self.warmup_validations.append((accuracy, ce))
        is_feasible = self.geco.tau is None or self.geco.is_feasible(ce, guessing)
        objective = self.criterion.objective
        score = objective.score(means) if objective.terms else ce
        return EpochScores(epoch, ce, accuracy, active, score, was_asked, is_feasible, guessing, gain, gain_error)

    def _tell(self, seen: PieceLoss) -> None:
        criterion = self.criterion
        figures: dict[str, Any] = {
            "ce": seen.ce,
            "active_words": seen.active,
            "lambda": self.geco.multiplier,
            **seen.terms,
        }
        if self.geco.violation is not None:
            figures |= {"violation": self.geco.violation, "tau": self.geco.current_tau(seen.words)}
        if criterion.count is not None:
            figures["mu"] = criterion.count.multiplier
        self.callbacks.on_record({"step": self.step, **figures, "rates": self.optimizer.learning_rates()})
        phase = "circuits" if self.step > self.warmup_steps and criterion.objective.terms else "warm-up"
        shown = {"loss": seen.ce, "active words": seen.active, **seen.terms}
        if phase == "circuits":
            shown["λ"] = self.geco.multiplier
        self.callbacks.on_step(Step(f"training ({phase})", self.step, self.planned_steps, shown))

    def _save_if_asked(self) -> None:
        """A checkpoint when it is time for one, or when somebody wants the run to stop."""
        is_interrupted = self._is_interrupted()
        is_due = time.monotonic() - self._saved_at >= 60 * self.settings.checkpoint_minutes
        if self.callbacks.on_checkpoint is not None and (is_due or is_interrupted):
            self.callbacks.on_checkpoint(self.state_dict())
            self._saved_at = time.monotonic()
        if is_interrupted:
            raise Interrupted(f"stopped after step {self.step} of {self.planned_steps}")

    @functools.cached_property
    def data_digest(self) -> str:
        """A hash of what is learned from and validated on, in order: tokens, labels or tags, and shapes."""
        return digest_of(self.train, self.validation)

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes over a run."""
        return state_of(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of a run with the same settings and data; other data is refused."""
        require_same_data(self, state)
        # The rate is in the state: a range test is not run twice.
        self._optimizer = self.settings.optimizer.build(self.steps.parameter_groups(1.0), self.planned_steps)
        restore(self, state)


def _copy_of(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as they are now; what is shared (a tied decoder) stays shared."""
    copies = {tensor.data_ptr(): tensor.detach().clone() for tensor in state.values()}
    return {name: copies[tensor.data_ptr()] for name, tensor in state.items()}


def _require_equal_labels(model: LexicalSAE, task: Task) -> None:
    """What is asked of circuits is kept by label: tasks that are learned together have the same ones."""
    first, *others = task.heads
    for name in others:
        if model.labels[name] != model.labels[first]:
            raise SettingsError(
                f"heads {first!r} and {name!r} are trained together, but have different labels "
                f"({', '.join(model.labels[first])}; {', '.join(model.labels[name])}); make the two lists equal"
            )


def _set_dropout(encoder: nn.Module, share: float) -> None:
    # Where there is none, as on attention weights, it stays off: it would cost the fast kernels.
    used = [part for part in encoder.modules() if isinstance(part, nn.Dropout) and part.p > 0]
    if share and not used:
        raise SettingsError(
            f"training.encoder_dropout is {share}, but this encoder was made without dropout; leave the setting out"
        )
    for part in used:
        part.p = share
