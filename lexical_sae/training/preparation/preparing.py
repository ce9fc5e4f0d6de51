"""What comes before the first step, in this order; none of it counts as a step.

1. The table of literal words is fitted; where texts are few, the auxiliary head may begin at a regression.
2. Words that may be revived are proposed, and the gate opens about as many words as are wanted.
3. The batch is fitted to memory, and a learning rate is found: by a range test, then by a rehearsal of the first steps.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lexical_sae.circuits.terms import FrequencyPenalty
from lexical_sae.data.batches import length_buckets
from lexical_sae.training.callbacks import Callbacks
from lexical_sae.training.folds import FoldedDocuments
from lexical_sae.training.optim import Optimizer, at_rate
from lexical_sae.training.preparation.batch_size import MicroBatches, automatic_size
from lexical_sae.training.preparation.calibrated_start import open_about_each, proposed_words, require_offset
from lexical_sae.training.preparation.linear_start import regression_on_states
from lexical_sae.training.preparation.lr_range import (
    FEWEST,
    REHEARSED_STEPS,
    Reading,
    as_found,
    lr_range_test,
    rate_with_words,
)
from lexical_sae.training.resuming.random_state import chance_as_found
from lexical_sae.training.steps import Steps
from lexical_sae.training.stopping import StoppedBeforeSaving
from lexical_sae.training.table_choice import FEW_TEXTS
from lexical_sae.training.word_table import fit_word_table
from lexical_sae.utils.progress import Step

logger = logging.getLogger(__name__)

CALIBRATION_TEXTS = 256
CALMING_TEXTS = 32
"""Some of them, which tell how sure an untrained head is."""
PROPOSING_TEXTS = 512
"""Texts whose words the lexical head proposes: a word in one of a hundred texts is nearly surely in one of these."""
RANGE_TEST_RATE = 1e-4
"""Rate that a range test falls back to when no rate makes the loss fall."""


@dataclass(frozen=True)
class Preparation:
    """A run that is about to begin."""

    steps: Steps
    batches: list[list[int]]
    """Those of its first epoch."""
    planned_steps: int
    seed: int
    callbacks: Callbacks

    def run(self) -> Optimizer:
        """Prepare the model; the optimiser for its steps, with a rate."""
        steps, settings = self.steps, self.steps.settings
        if isinstance(steps.task, FoldedDocuments):
            folds = steps.task.heads if steps.model.asks_encoder else ()
            with steps.encoder_precision():
                vectors, choice = fit_word_table(
                    steps.model, steps.task, steps.task.folds, folds, self.callbacks.on_step
                )
            if folds and len(steps.task.given().texts) < FEW_TEXTS:
                self._start_auxiliary(steps.task, vectors.text_states, choice.accuracy)
        for term in steps.criterion.objective.terms.values():
            if isinstance(term, FrequencyPenalty) and term.config.proposals:
                samples = self._logits_of(self._some_texts(PROPOSING_TEXTS))
                term.tracker.propose(proposed_words(steps.model, samples, term.config.proposals))
        if settings.calibrated_start is not None:
            self._open_words(max(1, round(settings.calibrated_start * settings.active_target)))
        if settings.batch_size is None:
            steps.micro = MicroBatches(self._fitting_size())
        rate = settings.learning_rate or self.found_rate()
        return settings.optimizer.build(steps.parameter_groups(rate), self.planned_steps)

    def found_rate(self) -> float:
        """The rate of a range test, lowered until the run's first steps leave words active."""
        steps = self.steps
        steps.model.train()

        def read(i: int) -> Reading:
            self._require_not_interrupted()
            self.callbacks.on_step(Step("finding a learning rate", i + 1, 100))
            groups = steps.task.alike(self.batches[i % len(self.batches)])
            parts = [steps.read(rows[: steps.micro.size]) for rows in groups]
            loss = torch.stack([part.loss for part in parts]).mean()
            return Reading(loss, float(np.mean([part.active for part in parts])))

        groups = at_rate(steps.parameter_groups(1.0), RANGE_TEST_RATE)
        found = lr_range_test(read, groups, [steps.model, steps.criterion])
        rate = rate_with_words(found.lr, lambda rate: self._rehearse(rate, found.active))
        self.callbacks.on_record({"event": "learning rate found", "lr": rate})
        return rate

    def _start_auxiliary(self, task: FoldedDocuments, states: Tensor, of_table: float) -> None:
        """Begin the auxiliary head at what the frozen encoder knows, if on texts left out that is more than the table.

        `states` are those of the texts that were not made by rule.
        """
        steps, given = self.steps, task.given()
        auxiliary = steps.criterion.auxiliary
        if auxiliary is None:
            return
        output, folds = steps.model.output_of(task.head), task.folds[: len(given.texts)]
        outputs = auxiliary.layer.out_features
        found = regression_on_states(states, given.labels, folds, output, outputs, given.weights)
        logger.info("frozen encoder on texts left out: %.4f, table of words: %.4f", found.quality, of_table)
        if found.quality > of_table:
            found.start(auxiliary)
            steps.auxiliary_rate = auxiliary.config.started_rate

    def _open_words(self, words: int) -> None:
        """Open about so many words of each sample, of the kind that has most of them, and calm the heads."""
        model, task = self.steps.model, self.steps.task
        chosen = self._some_texts(CALIBRATION_TEXTS)
        offset = require_offset(model)
        offsets = []
        for alike in task.alike(chosen):
            open_about_each(model, self._logits_of(alike), words)
            offsets.append(offset.detach().clone())
        with torch.no_grad():
            # A text has the words of all its positions: what is right for positions alone would crowd it.
            offset.copy_(torch.stack(offsets).amin(0))
            encoded = [task.encode(model, rows) for rows in task.alike(chosen[:CALMING_TEXTS])]
        for some in encoded:
            model.head(some.head).calm(some.sparse_vector)

    def _some_texts(self, most: int) -> list[int]:
        """Rows of training texts, sampled at random, but the same for the same seed."""
        return np.random.default_rng(self.seed).permutation(len(self.steps.task.texts))[:most].tolist()

    def _logits_of(self, rows: list[int]) -> Iterator[Tensor]:
        """Word logits of the samples in these rows, some at a time."""
        task = self.steps.task
        groups = (some for alike in task.alike(rows) for some in MicroBatches(32).split(alike))
        return (task.encode(self.steps.model, some).logits for some in groups)

    def _fitting_size(self) -> int:
        """As many of the longest texts as fit in memory at once."""
        steps, wanted = self.steps, self.steps.settings.effective_batch
        longest = next(iter(length_buckets(steps.task.texts, wanted)))

        def step(count: int) -> None:
            steps.backward(longest[:count], steps.task.samples(longest[:count]))
            steps.model.zero_grad(set_to_none=True)

        steps.model.train()
        with as_found([steps.model, steps.criterion]), chance_as_found():
            size = automatic_size(wanted, step, next(steps.model.parameters()).device)
        return steps.processes.least(size)

    def _rehearse(self, rate: float, active_before: Sequence[float]) -> float:
        """Least share of words that the run's own first steps leave active at this rate; they leave no trace.

        Of the words wanted, or of those that the batch had before the first step if they are fewer. Batches, schedule
        and chance are those of the run's warm-up to come: near such a rate it is chance whether words die out.
        """
        steps, left = self.steps, math.inf
        with as_found([steps.model, steps.criterion]), chance_as_found():
            optimizer = steps.settings.optimizer.build(steps.parameter_groups(rate), self.planned_steps)
            for i, before in enumerate(active_before[:REHEARSED_STEPS]):
                self._require_not_interrupted()
                self.callbacks.on_step(Step("trying the learning rate", i + 1, REHEARSED_STEPS))
                pieces = steps.take(optimizer, self.batches[i % len(self.batches)])
                active = sum(piece.share * piece.active for piece in pieces)
                left = min(left, active / min(steps.settings.active_target, before) if before else 1.0)
                if left < FEWEST:
                    break
        return left

    def _require_not_interrupted(self) -> None:
        if self.steps.processes.any(self.callbacks.is_interrupted()):
            raise StoppedBeforeSaving("stopped before the first step")
