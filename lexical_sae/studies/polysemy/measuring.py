"""Polysemy: do active words and sense slots distinguish the senses of a word?

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

from lexical_sae.data.sampling import sample_rows
from lexical_sae.data.sources.senses import ContextPair, SensesOfWord
from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.code_probe import fit_probe
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.studies.polysemy.sense_slots import SlotSplit, measure_slots
from lexical_sae.studies.polysemy.word_in_context import ContextReading, read_in_context
from lexical_sae.studies.polysemy.word_states import WordStates, codes_of, read_mentions
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.progress import OnStep, silent


class PolysemyPlan(PartConfig):
    """Settings of a polysemy study."""

    mentions_per_word: int = Field(default=200, ge=10)
    """Maximum number of mentions of each word per split."""
    pairs: int = Field(default=1000, ge=10)
    """Maximum number of sentence pairs per split."""
    seed: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class SenseReading:
    """Accuracy of a sense probe on one kind of code, over the test mentions of all words."""

    code: str
    accuracy: Interval


@dataclass(frozen=True)
class PolysemyResult:
    """All figures."""

    words: tuple[str, ...]
    slots: tuple[SlotSplit, ...]
    """Of the words with sense slots; empty without an expander."""
    senses: tuple[SenseReading, ...]
    majority: Interval | None
    """Accuracy of each word's majority sense on train."""
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
    """Figures for slots, senses and word-in-context pairs; either kind of data may be empty."""
    if model.literal is not None:
        raise DataError(
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
    # Seeded by the data alone, so that every model gets the same pairs.
    chosen = {split: _few(some, plan.pairs, [plan.seed, len(words)]) for split, some in pairs.items()}
    return PolysemyResult(
        words=tuple(word.word for word in words),
        slots=tuple(slots),
        senses=tuple(SenseReading(name, means.share(name)) for name in codes if name != "majority"),
        majority=means.share("majority") if words else None,
        in_context=read_in_context(model, chosen["train"], chosen["dev"], plan.seed, on_step) if chosen else (),
        pairs=len(chosen["dev"]) if chosen else 0,
    )


def _slots(model: LexicalSAE, word: str, states: WordStates, senses: list[str], seed: int) -> list[SlotSplit]:
    """How one word's slots fall on its senses; empty for a word without slots."""
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
    """Whether each test mention's sense is predicted correctly, by code and by the majority sense.

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
    """At most `most` examples, sampled at random, in their order."""
    return [examples[row] for row in sample_rows(len(examples), most, seed)]
