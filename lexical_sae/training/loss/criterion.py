"""All that pulls on a model in one step: the task, what is asked of circuits, the count of words, and the auxiliary
head.

warm-up: loss = CE + the terms that do not wait; constrained: loss = objective + lambda * CE; with a count constraint,
+ mu * surplus of words; with an auxiliary head, + what it teaches; with literal words, + what masking one changes at
the others. The multipliers move by what a whole optimiser step saw, never by one piece of it.
"""

from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lexical_sae.circuits.losses import active_count, active_surplus
from lexical_sae.circuits.objective import ObjectiveOutput
from lexical_sae.circuits.term import StepView
from lexical_sae.data.batches import length_buckets
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.word_views import without_context
from lexical_sae.outputs import Classes
from lexical_sae.training.samples import Encoded
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.training.tasks import Task
from lexical_sae.utils.errors import SettingsError


class PieceLoss(NamedTuple):
    """What one piece of a batch gave, as plain numbers, with its share of the batch."""

    share: float
    ce: float
    active: float
    """What is open, shapes included."""
    words: float
    """Words that are open: what the constraints count."""
    terms: dict[str, float]


NOTHING = PieceLoss(0.0, 0.0, 0.0, 0.0, {})


def _mean(pieces: list[PieceLoss], name: str) -> float:
    """One of the numbers over the whole step."""
    return sum(piece.share * getattr(piece, name) for piece in pieces)


class Criterion(nn.Module):
    """The parts of the loss that learn, and the controllers that weigh them. It is handed the model it judges."""

    def __init__(self, model: LexicalSAE, head: str, settings: TrainingConfig, steps: tuple[int, int, int]) -> None:
        """`head` is one of those that will decide, which all have the same labels.

        `steps`: per epoch, of the constrained phase, and in all.
        """
        super().__init__()
        self.settings = settings
        num_labels = len(model.labels[head])
        if settings.objective.terms and not isinstance(model.output_of(head), Classes):
            raise SettingsError(
                f"training.objective asks circuits of classes, and here texts have {model.output.title}; leave it out"
            )
        self.objective = settings.asked_of_circuits().build(len(model.dimensions), num_labels)
        self.auxiliary = settings.auxiliary and settings.auxiliary.build(model.backbone.encoder_width, num_labels)
        self.independence = settings.independence and settings.independence.build()
        per_epoch, constrained, planned = steps
        target = settings.active_target
        self.geco = settings.controller.build(steps_per_epoch=per_epoch, total_steps=constrained, active_target=target)
        self.count = settings.count and settings.count.build(total_steps=planned, active_target=target)

    @parametrize.cached()  # word vectors of all words, where they are computed, are computed once
    def loss(
        self, model: LexicalSAE, encoded: Encoded, *, share: float, is_constrained: bool
    ) -> tuple[Tensor, PieceLoss]:
        """Loss of the samples of one piece, and its account; `share` is the piece's part of the step."""
        logits = model.decide(encoded.sparse_vector, encoded.head, encoded.words).logits
        ce = self.task_loss(model, logits, encoded)
        loss, terms = ce, {}
        if self.objective.terms if is_constrained else self.objective.in_warmup:
            asked_of = encoded.sample(max(1, round(share * self.settings.positions_per_step)))
            asked = self.ask(model, asked_of, is_constrained=is_constrained)
            loss = asked.total + (self.geco.multiplier if is_constrained else 1.0) * ce
            terms = {name: value.item() for name, value in asked.values.items()}
        if self.count is not None:
            # Nothing is asked of a batch that is below the target: the multiplier lags, and would push on.
            gate = encoded.gate
            surplus = active_surplus(gate.gate_mask > 0.5, gate.open_prob, self.settings.active_target)
            loss = loss + self.count.multiplier * surplus
        if self.auxiliary is not None:
            smoothing, weights = self.settings.label_smoothing, encoded.weights
            output = model.output_of(encoded.head)
            loss = loss + self.auxiliary(encoded.states, logits, encoded.labels, smoothing, weights, output)
        if self.independence is not None:
            assert encoded.tokens is not None, "literal words are read in documents"
            assert encoded.is_made is not None, "documents say which of them were made by rule"
            loss = loss + self.independence(model, encoded.tokens, encoded.is_made)
        active, words = active_count(encoded.sparse_vector != 0), active_count(encoded.gate.gate_mask > 0.5)
        return loss, PieceLoss(share, ce.item(), active.item(), words.item(), terms)

    def task_loss(self, model: LexicalSAE, logits: Tensor, encoded: Encoded) -> Tensor:
        """That of the output kind (of classes, cross-entropy), with the smoothing of the settings and the weights."""
        output = model.output_of(encoded.head)
        return output.loss(logits, encoded.labels, encoded.weights, self.settings.label_smoothing)

    def ask(self, model: LexicalSAE, encoded: Encoded, *, is_constrained: bool = True) -> ObjectiveOutput:
        """The circuit objective of samples, or its part in the warm-up, decided on without random masking."""
        gate, words = model.gate, encoded.words
        head = partial(model.head(encoded.head), words=words)
        openings = gate.openings()
        view = StepView(
            head(encoded.sparse_vector),
            encoded.gate,
            encoded.labels,
            head,
            gate.thresholds(),
            excess=encoded.logits - (openings if words is None else openings[words]),
            own=encoded.own,
            candidates=encoded.in_reach,
            words=words,
        )
        return (self.objective if is_constrained else self.objective.warm_up)(view)

    def end_of_step(self, pieces: list[PieceLoss], *, is_constrained: bool) -> PieceLoss:
        """Move the multipliers by what the whole step saw, which is returned."""
        pieces = [piece for piece in pieces if piece.share]
        if not pieces:
            # Sentences without a labelled word: a loss of 0 would pull the multipliers down.
            return NOTHING
        ce, active, words = (_mean(pieces, name) for name in ("ce", "active", "words"))
        if is_constrained and self.objective.terms:
            self.geco.step(ce, words)
        else:
            self.geco.record_warmup(ce)
        if self.count is not None:
            self.count.step(words)
        asked = [piece for piece in pieces if piece.terms]
        names = asked[0].terms if asked else {}
        terms = {name: sum(piece.share * piece.terms[name] for piece in asked) for name in names}
        return PieceLoss(1.0, ce, active, words, terms)

    @torch.no_grad()
    @parametrize.cached()
    def validate(self, model: LexicalSAE, task: Task) -> dict[str, float]:
        """Means over a task's samples: `ce`, `accuracy`, `active_words`, `guessing_ce`, and each term by its kind.

        `accuracy` is the mean `quality` of the output kind: of classes, the share of right decisions. With context,
        `gain` too: the accuracy beyond that of the table alone, and `gain_error`, its standard error.
        """
        model.eval()
        self.eval()
        model = model.opened_to(task.texts.ids)
        sums: dict[str, float] = {}
        samples = 0.0
        statistics: dict[str, Tensor] = {}
        for rows in (alike for batch in length_buckets(task.texts, 64) for alike in task.alike(batch)):
            count = task.samples(rows)
            if count == 0:
                continue
            encoded = task.encode(model, rows, live_only=True)
            logits = model.decide(encoded.sparse_vector, encoded.head, encoded.words).logits
            asked = self.ask(model, encoded).values if self.objective.terms else {}
            found = {name: value.item() for name, value in asked.items()}
            found["ce"] = self.task_loss(model, logits, encoded).item()
            output = model.output_of(encoded.head)
            quality = output.quality(logits, encoded.labels).float()
            counts = 1.0 if encoded.weights is None else encoded.weights
            found["accuracy"] = (counts * quality).mean().item()
            if model.context is not None:
                gains = counts * (quality - _quality_of_table(model, encoded).float())
                found |= {"gain": gains.mean().item(), "gain_error": gains.square().mean().item()}
            found["active_words"] = active_count(encoded.sparse_vector != 0).item()
            for name, value in found.items():
                sums[name] = sums.get(name, 0.0) + count * value
            samples += count
            weights = None if encoded.weights is None else encoded.weights.cpu()
            seen = output.statistics(encoded.labels.cpu(), weights, len(model.labels[encoded.head]))
            so_far = statistics.get(encoded.head, torch.zeros(1, dtype=torch.float64))
            statistics[encoded.head] = so_far + count * seen / len(encoded.labels)
        sums["guessing_ce"] = sum(
            model.output_of(head).guessing_loss(of_head, self.settings.label_smoothing)
            for head, of_head in statistics.items()
        )
        means = {name: value / max(1, samples) for name, value in sums.items()}
        if "gain" in means:
            # So far the mean square. One more text won and one more lost: of eight texts a single one is no gain.
            spread = means["gain_error"] + 2 / samples - means["gain"] ** 2
            means["gain_error"] = (max(0.0, spread) / samples) ** 0.5
        return means


def _quality_of_table(model: LexicalSAE, encoded: Encoded) -> Shaped[Tensor, " N"]:
    """How well the table alone decides on some documents; no encoder is asked."""
    assert encoded.tokens is not None, "literal words are read in documents"
    table = without_context(model)
    read = table.encode_document(encoded.tokens.input_ids, encoded.tokens.mask, encoded.tokens.states, live_only=True)
    logits = table.decide(read.sparse_vector, encoded.head, read.words).logits
    return model.output_of(encoded.head).quality(logits, encoded.labels)
