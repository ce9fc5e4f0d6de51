"""One training loop, for documents and for tagged positions.

An optimiser step:
1. the batch in pieces that fit in memory; each is encoded and decided on, and its loss sent backward (`criterion`);
2. gradients centralised if wanted, clipped, one step of the optimiser;
3. the controllers see the step's cross-entropy and active words.

After every epoch the averaged weights are scored on the validation texts, and kept if they are the best. A checkpoint
holds everything that changes, so that a run that was killed goes on bit for bit.
"""

import contextlib
import functools
import hashlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lexical_sae.circuits.geco import GECOController, ce_at_accuracy
from lexical_sae.circuits.losses import active_count
from lexical_sae.circuits.terms import FrequencyPenalty
from lexical_sae.data.batches import length_buckets
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.word_views import without_context
from lexical_sae.training.batch_size import MicroBatches, automatic_size
from lexical_sae.training.calibrate import open_about_each, proposed_words, require_offset
from lexical_sae.training.criterion import NOTHING, Criterion, PieceLoss
from lexical_sae.training.folds import FoldedDocuments
from lexical_sae.training.frozen_layers import freeze_lower, kept_lower_states
from lexical_sae.training.linear_start import start_at_regression
from lexical_sae.training.lr_range import FEWEST, REHEARSED_STEPS, Reading, as_found, lr_range_test, rate_with_words
from lexical_sae.training.optim import Optimizer, ParameterGroup, at_rate, centralise_gradients
from lexical_sae.training.processes import current
from lexical_sae.training.random_state import chance_as_found, random_state, restore_random_state
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.training.stopping import SILENT_STEPS, EpochScores, NoWordActive, Selection, Silence
from lexical_sae.training.tasks import Documents, Encoded, Task
from lexical_sae.training.word_table import fit_word_table
from lexical_sae.training.word_vectors import learn_together, write_out
from lexical_sae.utils.errors import DivergedError, SettingsError
from lexical_sae.utils.precision import encoder_precision, require_encoder_type
from lexical_sae.utils.progress import OnStep, Step, silent

logger = logging.getLogger(__name__)

CALIBRATION_TEXTS = 256
CALMING_TEXTS = 32
"""Some of them, which tell how sure an untrained head is."""
PROPOSING_TEXTS = 512
"""Texts whose words the lexical head proposes: a word in one of a hundred texts is nearly surely in one of these."""
RANGE_TEST_RATE = 1e-4
"""Rate that a range test falls back to when no rate makes the loss fall."""
CROWDED = 1000
"""Active words at the first step from which a run says so: nobody reads that many, and few recipes get down from it."""

Record = dict[str, Any]
OnRecord = Callable[[Record], None]
OnCheckpoint = Callable[[Mapping[str, Any]], object]


class Interrupted(Exception):
    """Somebody asked the run to stop; its state was saved."""


class StoppedBeforeSaving(Interrupted):
    """Somebody asked the run to stop before there was anything to save."""


@dataclass
class Callbacks:
    """Who is told what while a run goes on."""

    on_step: OnStep = silent
    """Progress, for a person."""
    on_record: OnRecord = lambda _: None
    """A line of the history, per step and per epoch."""
    on_checkpoint: OnCheckpoint | None = None
    """The state from which the run can go on; None makes no checkpoints."""
    is_interrupted: Callable[[], bool] = lambda: False
    """Asked after every step: whether to save and stop."""
    is_out_of_time: Callable[[], bool] = lambda: False
    """Asked after every step: whether to end training there, with the best weights so far."""


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
            train = _in_folds(model, train, seed, settings.windows_per_text)
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
        self.micro = MicroBatches(settings.batch_size or settings.effective_batch)
        self.selection, self.silence = Selection(settings.patience), Silence()
        self.best_weights: dict[str, Tensor] = {}
        self.warmup_validations: list[tuple[float, float]] = []
        self.step = 0
        self._saved_at = time.monotonic()
        if settings.freeze_embeddings:
            _freeze_embeddings(model)
        if settings.encoder_dropout is not None:
            _set_dropout(model.backbone.encoder, settings.encoder_dropout)
        freeze_lower(model, settings.frozen_layers)
        if settings.shared_word_vectors:
            for head in model.distinct_heads(train.heads):
                learn_together(head, model.dimension_embeddings())
        self._optimizer: Optimizer | None = None
        self._state_spread = 1.0

    @property
    def optimizer(self) -> Optimizer:
        """The optimiser; there after `prepare` or `load_state_dict`."""
        assert self._optimizer is not None, "prepare() comes first"
        return self._optimizer

    @property
    def geco(self) -> GECOController:
        """What holds the cross-entropy while circuits are asked for."""
        return self.criterion.geco

    @property
    def epoch(self) -> int:
        """Epochs that are finished."""
        return self.step // self.steps_per_epoch

    @property
    def is_constrained(self) -> bool:
        """Whether circuits are asked for already."""
        return self.step >= self.warmup_steps

    def run(self) -> EpochScores:
        """Train to the end, and leave the model with the best weights, in evaluation mode."""
        # Processes that share the encoder give it texts to read, no states.
        kept = self.settings.frozen_layers if self.processes.count == 1 else 0
        every = (*self.train.texts.ids, *self.validation.texts.ids) if kept else ()
        texts = list(self.model.read_at_once(every))
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
            self.model.drop_heads(self.train.heads)
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
        settings = self.settings
        if isinstance(self.train, FoldedDocuments):
            folds = self.train.heads if self.model.asks_encoder else ()
            with self._encoder_precision():
                vectors = fit_word_table(self.model, self.train, self.train.folds, folds, self.callbacks.on_step)
            self._state_spread = vectors.spread
            if folds and self.criterion.auxiliary is not None:
                self._start_auxiliary(self.train, vectors.text_states)
        for term in self.criterion.objective.terms.values():
            if isinstance(term, FrequencyPenalty) and term.config.proposals:
                samples = self._logits_of(self._some_texts(PROPOSING_TEXTS))
                term.tracker.propose(proposed_words(self.model, samples, term.config.proposals))
        if settings.calibrated_start is not None:
            self._calibrate(max(1, round(settings.calibrated_start * settings.active_target)))
        if settings.batch_size is None:
            self.micro = MicroBatches(self._fitting_size())
        rate = settings.learning_rate or self._found_rate()
        self._optimizer = settings.optimizer.build(self._groups(rate), self.planned_steps)

    def _start_auxiliary(self, train: FoldedDocuments, states: Tensor) -> None:
        """Begin the auxiliary head at what the frozen encoder knows, from the states of the texts not made by rule."""
        assert self.criterion.auxiliary is not None
        given = train.given()
        output, folds = self.model.output_of(train.head), train.folds[: len(given.texts)]
        start_at_regression(self.criterion.auxiliary, states, given.labels, folds, output, given.weights)

    def _calibrate(self, words: int) -> None:
        """Open about so many words of each sample, of the kind that has most of them, and calm the heads."""
        model, train = self.model, self.train
        chosen = self._some_texts(CALIBRATION_TEXTS)
        offset = require_offset(model)
        offsets = []
        for alike in train.alike(chosen):
            open_about_each(model, self._logits_of(alike), words)
            offsets.append(offset.detach().clone())
        with torch.no_grad():
            # A text has the words of all its positions: what is right for positions alone would crowd it.
            offset.copy_(torch.stack(offsets).amin(0))
            encoded = [train.encode(model, rows) for rows in train.alike(chosen[:CALMING_TEXTS])]
        for some in encoded:
            model.head(some.head).calm(some.sparse_vector)

    def _some_texts(self, most: int) -> list[int]:
        """Rows of training texts, sampled at random, but the same for the same seed."""
        return np.random.default_rng(self.seed).permutation(len(self.train.texts))[:most].tolist()

    def _logits_of(self, rows: list[int]) -> Iterator[Tensor]:
        """Word logits of the samples in these rows, some at a time."""
        groups = (some for alike in self.train.alike(rows) for some in MicroBatches(32).split(alike))
        return (self.train.encode(self.model, some).logits for some in groups)

    def _groups(self, rate: float) -> list[ParameterGroup]:
        """Every parameter that learns, once: encoder, gate, and the rest (expander, pool, heads, criterion)."""
        settings, model = self.settings, self.model
        encoder = {id(p) for p in model.encoder_parameters()}
        gate = {id(p) for p in model.gate.parameters()}
        learning = [p for p in (*model.parameters(), *self.criterion.parameters()) if p.requires_grad]
        auxiliary = (
            set() if self.criterion.auxiliary is None else {id(p) for p in self.criterion.auxiliary.parameters()}
        )
        context = set() if model.context is None else {id(p) for p in model.context.parameters()}
        rest = [p for p in learning if id(p) not in encoder | gate | auxiliary | context]
        helping = settings.auxiliary.rate or settings.head_rate if settings.auxiliary else settings.head_rate
        groups = [
            ParameterGroup("encoder", [p for p in learning if id(p) in encoder], rate),
            ParameterGroup("head", rest, rate * settings.head_rate),
            # In units of the states, which some encoders have small: a step moves the shifts as far with any of them.
            ParameterGroup(
                "context", [p for p in learning if id(p) in context], rate * settings.head_rate / self._state_spread
            ),
            ParameterGroup("auxiliary", [p for p in learning if id(p) in auxiliary], rate * helping),
            ParameterGroup("gate", [p for p in learning if id(p) in gate], rate * settings.gate_rate, decays=False),
        ]
        return [group for group in groups if group.params]

    def _fitting_size(self) -> int:
        """As many of the longest texts as fit in memory at once."""
        longest = next(iter(length_buckets(self.train.texts, self.settings.effective_batch)))

        def step(count: int) -> None:
            self._backward(longest[:count], self.train.samples(longest[:count]))
            self.model.zero_grad(set_to_none=True)

        self.model.train()
        with as_found([self.model, self.criterion]), chance_as_found():
            size = automatic_size(self.settings.effective_batch, step, next(self.model.parameters()).device)
        return self.processes.least(size)

    def _found_rate(self) -> float:
        batches = self._order(epoch=0)
        self.model.train()

        def read(i: int) -> Reading:
            self._require_not_interrupted()
            self.callbacks.on_step(Step("finding a learning rate", i + 1, 100))
            groups = self.train.alike(batches[i % len(batches)])
            parts = [self._read(rows[: self.micro.size]) for rows in groups]
            loss = torch.stack([part.loss for part in parts]).mean()
            return Reading(loss, float(np.mean([part.active for part in parts])))

        found = lr_range_test(read, at_rate(self._groups(1.0), RANGE_TEST_RATE), [self.model, self.criterion])
        rate = rate_with_words(found.lr, lambda rate: self._rehearse(rate, found.active))
        self.callbacks.on_record({"event": "learning rate found", "lr": rate})
        return rate

    def _read(self, rows: list[int]) -> Reading:
        encoded = self._encode(rows)
        logits = self.model.decide(encoded.sparse_vector, encoded.head, encoded.words).logits
        active = active_count(encoded.sparse_vector != 0).item()
        return Reading(self.criterion.task_loss(self.model, logits, encoded), active)

    def _rehearse(self, rate: float, active_before: Sequence[float]) -> float:
        """Least share of words that the run's own first steps leave active at this rate; they leave no trace.

        Of the words wanted, or of those that the batch had before the first step if they are fewer. Batches, schedule
        and chance are those of the run's warm-up to come: near such a rate it is chance whether words die out.
        """
        batches, left = self._order(epoch=0), math.inf
        with as_found([self.model, self.criterion]), chance_as_found():
            optimizer = self.settings.optimizer.build(self._groups(rate), self.planned_steps)
            for i, before in enumerate(active_before[:REHEARSED_STEPS]):
                self._require_not_interrupted()
                self.callbacks.on_step(Step("trying the learning rate", i + 1, REHEARSED_STEPS))
                pieces = self._move(optimizer, batches[i % len(batches)])
                active = sum(piece.share * piece.active for piece in pieces)
                left = min(left, active / min(self.settings.active_target, before) if before else 1.0)
                if left < FEWEST:
                    break
        return left

    def _require_not_interrupted(self) -> None:
        if self._is_interrupted():
            raise StoppedBeforeSaving("stopped before the first step")

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
        pieces = self._move(self.optimizer, rows)
        seen = self.criterion.end_of_step(pieces, is_constrained=self.is_constrained)
        self.step += 1
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

    def _move(self, optimizer: Optimizer, rows: list[int]) -> list[PieceLoss]:
        """One step of the optimiser by the losses of these rows, which are returned."""
        optimizer.zero_grad()
        samples = self.train.samples(rows)
        parts = self.micro.run(rows, lambda piece, _: self._backward(piece, samples), optimizer.zero_grad)
        self.processes.sum_gradients(optimizer.params)
        if self.settings.gradient_centralization:
            head = {id(p) for p in self.model.heads.parameters()}
            centralise_gradients(p for p in self.model.parameters() if id(p) not in head)
        optimizer.step()
        return [piece for part in parts for piece in part]

    def _encode(self, rows: list[int]) -> Encoded:
        """The samples of a training step, the encoder in the precision of the settings."""
        with self._encoder_precision():
            return self.train.encode(self.model, rows, live_only=True)

    def _encoder_precision(self) -> contextlib.AbstractContextManager[object]:
        return encoder_precision(self.settings.dtype, next(self.model.parameters()).device)

    def _backward(self, rows: list[int], samples: float) -> list[PieceLoss]:
        """Losses of one piece, that of each kind of sample by itself, sent backward."""
        return [self._backward_alike(alike, samples) for alike in self.train.alike(rows)]

    def _backward_alike(self, rows: list[int], samples: float) -> PieceLoss:
        """Loss of samples of one kind, times their share of the batch's samples, sent backward."""
        share = self.train.samples(rows) / max(1, samples)
        if share == 0:
            return NOTHING
        encoded = self._encode(rows)
        loss, seen = self.criterion.loss(self.model, encoded, share=share, is_constrained=self.is_constrained)
        if not torch.isfinite(loss):
            raise DivergedError(
                f"the loss became {loss.item()} at step {self.step + 1} (cross-entropy {seen.ce}, terms {seen.terms}); "
                "lower training.learning_rate or the rates of head and gate"
            )
        self.processes.share_of(loss * share).backward()
        return seen

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
        # Not `is_constrained`, which is of the step to come: these weights may be the warm-up's last.
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
        figures: Record = {"ce": seen.ce, "active_words": seen.active, "lambda": self.geco.multiplier, **seen.terms}
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
        found = hashlib.sha256()
        for task in (self.train, self.validation):
            for part in task.content():
                found.update(part)
        return found.hexdigest()

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes over a run."""
        count = self.criterion.count
        return {
            "step": self.step,
            "model": self.model.state_dict(),
            "criterion": self.criterion.state_dict(),
            "geco": self.geco.state_dict(),
            "count": count.state_dict() if count is not None else None,
            "optimizer": self.optimizer.state_dict(),
            "selection": self.selection.state_dict(),
            "silent_steps": self.silence.steps,
            "best_weights": self.best_weights,
            "warmup_validations": [list(pair) for pair in self.warmup_validations],
            "micro_batch": self.micro.size,
            "random": random_state(),
            "data": self.data_digest,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of a run with the same settings and data; other data is refused."""
        if state["data"] != self.data_digest:
            raise SettingsError(
                "the data is not what the run began with, so rows it learned from may be tested on; restore the data, "
                "or start a new run in another folder (--out)"
            )
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        self.criterion.load_state_dict(state["criterion"])
        # The rate is in the state: a range test is not run twice.
        self._optimizer = self.settings.optimizer.build(self._groups(1.0), self.planned_steps)
        self._optimizer.load_state_dict(state["optimizer"])
        self.geco.load_state_dict(state["geco"])
        if self.criterion.count is not None:
            self.criterion.count.load_state_dict(state["count"])
        self.selection.load_state_dict(state["selection"])
        # Older checkpoints lack it.
        self.silence.steps = state.get("silent_steps", 0)
        self.best_weights = dict(state["best_weights"])
        self.warmup_validations = [(accuracy, ce) for accuracy, ce in state["warmup_validations"]]
        self.micro.size = state["micro_batch"]
        restore_random_state(state["random"])


def _in_folds(model: LexicalSAE, train: Task, seed: int, most_windows: int | None) -> "FoldedDocuments":
    """The documents in folds, with a head for each in the model until training ends."""
    if not isinstance(train, Documents):
        raise SettingsError("literal words are trained on documents with a label each; tag with recipe: neighbours")
    folded = train if isinstance(train, FoldedDocuments) else FoldedDocuments.of(train, seed)
    folded = replace(folded, most_windows=most_windows)
    model.add_heads(folded.heads, like=train.head)
    return folded


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


def _freeze_embeddings(model: LexicalSAE) -> None:
    """Input embedding and decoder, one tensor in most models, stay as they are."""
    embedding: nn.Module = model.backbone.encoder.get_input_embeddings()  # pyright: ignore[reportCallIssue, reportAssignmentType]
    for weight in (embedding.weight, model.backbone.decoder.weight):
        weight.requires_grad_(False)  # pyright: ignore[reportCallIssue]


def _set_dropout(encoder: nn.Module, share: float) -> None:
    # Where there is none, as on attention weights, it stays off: it would cost the fast kernels.
    used = [part for part in encoder.modules() if isinstance(part, nn.Dropout) and part.p > 0]
    if share and not used:
        raise SettingsError(
            f"training.encoder_dropout is {share}, but this encoder was made without dropout; leave the setting out"
        )
    for part in used:
        part.p = share
