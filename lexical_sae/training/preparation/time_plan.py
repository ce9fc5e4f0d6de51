"""What fits in the minutes that somebody wishes for: passes, frozen layers and rows, from a rehearsal of seconds.

1. The rehearsal times the encoder on a few of the run's own texts: reading them, and reading them with gradients.
2. Every text is read once, for the table of words; each pass then goes through the layers that learn, with gradients,
   and once more through the whole encoder for the texts in which a word is masked.
3. What does not fit gives way in this order: passes down to one, lower layers down to a third that learns, rows.

It is arithmetic on two measured numbers. Whatever else the machine does meanwhile is not in it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from lexical_sae.data.batches import TokenizedTexts, length_buckets
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.kept_states import layers_of
from lexical_sae.utils.errors import SettingsError

REHEARSED_TEXTS, REHEARSED_AT_ONCE = 64, 16
BUDGET_SHARE = 0.85
"""Of the minutes; the rest is for the table of words and for validation."""
LEAST_LEARNING = 1 / 3
"""Share of the layers that learns at least."""
FEWEST_ROWS = 500
"""Fewer are not proposed: with those, take a smaller encoder."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Cost:
    """Seconds per text of the whole encoder."""

    reading: float
    learning: float
    """Reading with gradients, and sending them back through every layer."""

    def times(self, factor: float) -> "Cost":
        """So many texts for each."""
        return Cost(factor * self.reading, factor * self.learning)

    def seconds(self, rows: int, passes: int, frozen: float, masked: float) -> float:
        """Of a run in which this share of the layers is frozen and this share of the texts is read masked too."""
        changed = frozen * self.reading + (1 - frozen) * self.learning
        return rows * (self.reading + passes * ((1 - frozen) * self.learning + masked * changed))


@dataclass(frozen=True)
class Plan:
    """How a run is to be trained."""

    rows: int
    passes: int
    frozen_layers: int
    seconds: float


@dataclass(frozen=True)
class TimePlan:
    """What was chosen, beside what was asked for without a limit."""

    minutes: float
    layers: int
    chosen: Plan
    full: Plan

    def as_dict(self) -> dict[str, Any]:
        """The figures, as plain data."""
        return asdict(self)

    @classmethod
    def of(cls, saved: dict[str, Any]) -> "TimePlan":
        """What `as_dict` gave."""
        return cls(saved["minutes"], saved["layers"], Plan(**saved["chosen"]), Plan(**saved["full"]))

    def __str__(self) -> str:
        chosen, full = self.chosen, self.full
        if chosen == full:
            return f"training.minutes: {self.minutes:g} is enough for everything, about {_time(full.seconds)}"
        frozen = f"the lower {chosen.frozen_layers} of {self.layers} layers frozen"
        parts = [
            _of("row", chosen.rows, full.rows),
            _of("pass", chosen.passes, full.passes, "es"),
            frozen if chosen.frozen_layers else "all layers learning",
        ]
        return (
            f"training.minutes: {self.minutes:g} gives {', '.join(parts)}: about {_time(chosen.seconds)}; everything "
            f"would take about {_time(full.seconds)}"
        )


def fitting_plan(minutes: float, cost: Cost, full: tuple[int, int, int], layers: int, masked: float) -> TimePlan:
    """The largest plan that fits: of the full one, given as rows, passes and frozen layers, as much as can be kept."""
    rows, passes, frozen = full
    budget = 60 * minutes * BUDGET_SHARE

    def plan(rows: int, passes: int, frozen: int) -> Plan:
        return Plan(rows, passes, frozen, cost.seconds(rows, passes, frozen / layers, masked))

    most_frozen = max(frozen, int(layers * (1 - LEAST_LEARNING)))
    wanted = plan(*full)
    steps = [plan(rows, fewer, frozen) for fewer in range(passes, 0, -1)]
    steps += [plan(rows, 1, more) for more in range(frozen + 1, most_frozen + 1)]
    fits = next((step for step in steps if step.seconds <= budget), None)
    if fits is None:
        affordable = int(rows * budget / steps[-1].seconds)
        if affordable < min(rows, FEWEST_ROWS):
            raise SettingsError(
                f"training.minutes is {minutes:g}, which is enough for {affordable} rows with this encoder: a row "
                f"takes {steps[-1].seconds / rows:.2g} seconds; give more minutes, or choose a smaller model.name"
            )
        fits = plan(min(rows, affordable), 1, most_frozen)
    return TimePlan(minutes, layers, fits, wanted)


def encoder_cost(backbone: Backbone, texts: TokenizedTexts, seed: int = 0, clock: Clock = time.perf_counter) -> Cost:
    """Seconds per text, timed on a few of the texts at random, after as many that are not timed."""
    chosen = np.random.default_rng(seed).permutation(len(texts))[:REHEARSED_TEXTS].tolist()
    some = TokenizedTexts(tuple(texts.ids[i] for i in chosen), tuple(texts.tokens_cut[i] for i in chosen), texts.pad_id)
    batches = list(length_buckets(some, REHEARSED_AT_ONCE))
    embedding = backbone.encoder.get_input_embeddings().weight  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
    embedding.requires_grad_(False)

    def read(rows: Sequence[int]) -> torch.Tensor:
        batch = some.batch(rows).to(embedding.device)
        return backbone.encoder_states(batch.input_ids, batch.attention_mask).sum()

    def reading() -> None:
        with torch.no_grad():
            for rows in batches:
                read(rows).item()

    def learning() -> None:
        for rows in batches:
            read(rows).backward()
        backbone.zero_grad(set_to_none=True)

    def timed(work: Callable[[], None]) -> float:
        work()
        started = clock()
        work()
        return (clock() - started) / len(some)

    return Cost(timed(reading), timed(learning))


def number_of_layers(backbone: Backbone) -> int:
    """Layers of which the lower ones can be frozen; 1 where none can."""
    try:
        return len(layers_of(backbone.encoder))
    except SettingsError:
        return 1


def _of(thing: str, chosen: int, full: int, plural: str = "s") -> str:
    named = f"{thing}{plural if full != 1 else ''}"
    return f"{chosen:,} of {full:,} {named}" if chosen < full else f"{full:,} {named}"


def _time(seconds: float) -> str:
    """Example: 90 -> 1.5 minutes; 5,400 -> 1.5 hours"""
    return f"{seconds / 60:.2g} minutes" if seconds < 5400 else f"{seconds / 3600:.2g} hours"
