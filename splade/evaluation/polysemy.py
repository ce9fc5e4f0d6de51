"""Polysemy: what words do when a word has several meanings.

1. *Slots.* Of a model with sense slots: whether the slots of a word split its senses (`sense_slots`).
2. *Senses.* A linear probe reads the sense of a word from the active words at its token, or of its sentence; fitted on
   train mentions, asked about test mentions.
3. *Word in context.* Does a word mean the same in two sentences? Said where the cosine of its two codes is above a
   threshold that was chosen on train pairs (`word_in_context`).

Codes with sense slots stand beside the same codes with the slots merged, and beside the hidden state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from splade.data.lots import rows_by_lot
from splade.data.senses import ContextPair, SensesOfWord
from splade.evaluation.bootstrap import BootstrapMeans
from splade.evaluation.code_probe import fit_probe
from splade.evaluation.intervals import Interval
from splade.evaluation.sense_slots import SlotSplit, measure_slots
from splade.evaluation.word_in_context import ContextReading, tell_in_context
from splade.evaluation.word_states import WordStates, codes_of, read_mentions
from splade.models.lexical_sae import LexicalSAE
from splade.part import PartConfig
from splade.progress import OnStep, silent


class PolysemyPlan(PartConfig):
    """How much is read."""

    mentions_per_word: int = Field(default=200, ge=10)
    """Mentions of each word per split, at most."""
    pairs: int = Field(default=1000, ge=10)
    """Pairs of sentences per split, at most."""
    seed: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class SenseReading:
    """Accuracy of reading senses from one kind of code, over the test mentions of all words."""

    code: str
    accuracy: Interval


@dataclass(frozen=True)
class PolysemyResult:
    """Everything measured."""

    words: tuple[str, ...]
    slots: tuple[SlotSplit, ...]
    """Of the words that the model splits; none without an expander."""
    senses: tuple[SenseReading, ...]
    majority: Interval | None
    """Accuracy of always naming a word's commonest train sense."""
    in_context: tuple[ContextReading, ...]
    pairs: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def measure_polysemy(
    model: LexicalSAE,
    words: Sequence[SensesOfWord],
    pairs: Mapping[str, Sequence[ContextPair]],
    plan: PolysemyPlan = PolysemyPlan(),
    on_step: OnStep = silent,
) -> PolysemyResult:
    """Slots, senses and word-in-context pairs; either kind of data may be empty."""
    if model.literal is not None:
        raise ValueError(
            "polysemy reads what a word activates in one sentence and another, and a literal word activates itself "
            "alone; use a model of recipe: neighbours"
        )
    means, slots = BootstrapMeans(seed=plan.seed), []
    codes: dict[str, None] = {}
    row = 0
    for number, word in enumerate(words):
        train, test = (
            _few(examples, plan.mentions_per_word, [plan.seed, number]) for examples in (word.train, word.test)
        )
        read = [read_mentions(model, [one.mention for one in some], on_step=on_step) for some in (train, test)]
        senses = [[some[i].sense for i in states.rows] for some, states in zip((train, test), read, strict=True)]
        slots += _slots(model, word.word, read[1], senses[1], plan.seed)
        figures = _read_senses(model, read, senses)
        codes |= dict.fromkeys(figures)
        means.update(range(row, row + len(senses[1])), figures)
        row += len(senses[1])
    # Seeded by the data alone: how many mentions a model saw must not change which pairs it is asked.
    chosen = {split: _few(some, plan.pairs, [plan.seed, len(words)]) for split, some in pairs.items()}
    return PolysemyResult(
        words=tuple(word.word for word in words),
        slots=tuple(slots),
        senses=tuple(SenseReading(name, means.share(name)) for name in codes if name != "majority"),
        majority=means.share("majority") if words else None,
        in_context=tell_in_context(model, chosen["train"], chosen["dev"], plan.seed, on_step) if chosen else (),
        pairs=len(chosen["dev"]) if chosen else 0,
    )


def _slots(model: LexicalSAE, word: str, states: WordStates, senses: list[str], seed: int) -> list[SlotSplit]:
    """The split of one word; nothing for a word that the model does not split."""
    if model.expander is None or states.slots is None:
        return []
    names = [model.dimensions[i].name for i in model.expander.token_ids.tolist()]
    if word not in names:
        return []
    picked = states.slots[:, names.index(word)].numpy()
    return [measure_slots(word, picked, senses, states.hidden.numpy(), model.expander.num_senses, seed)]


def _read_senses(
    model: LexicalSAE, read: Sequence[WordStates], senses: Sequence[Sequence[str]]
) -> dict[str, Float[Tensor, " N"]]:
    """Whether the sense of each test mention is read right, by code and by the commonest sense.

    NaN for all of them where train has one sense alone, so that they are means over the same mentions.
    """
    known = sorted({sense for some in senses for sense in some})
    train, test = (torch.tensor([known.index(sense) for sense in some]) for some in senses)
    commonest = int(train.bincount().argmax())
    figures = {"majority": (test == commonest).double()}
    fit, held = (codes_of(model, states) for states in read)
    if len(train.unique()) < 2:
        return {name: torch.full_like(figures["majority"], torch.nan) for name in ("majority", *fit)}
    for name in fit:
        probe = fit_probe(fit[name], train, len(known))
        figures[name] = (probe.logits(held[name]).argmax(-1) == test).double()
    return figures


def _few(examples: Sequence[Any], most: int, seed: list[int]) -> list[Any]:
    """At most so many, drawn by lot, in their order."""
    return [examples[row] for row in rows_by_lot(len(examples), most, seed)]
