"""Settings of a concept removal: the `surgery` section of an experiment file.

Separate from the study, so that reading an experiment file does not import what the study needs.
"""

from typing import Annotated

from pydantic import Field

from lexical_sae.utils.part import PartConfig

Share = Annotated[float, Field(ge=0, le=1)]


class SurgeryPlan(PartConfig):
    """The concept that `lexical-sae surgery` removes, its bounds, and the effort to spend. Options of the command
    override it."""

    concept: str = Field(min_length=1)
    """Identity or concept whose leakage is measured: the name of an identity column, or a key of `group_words`."""
    positive: tuple[str, ...] = Field(min_length=1)
    """Labels that count as positive: those that a group may get by mistake, such as "toxic"."""
    words: tuple[str, ...] = ()
    """Words to remove; if empty, they are chosen on validation so that the gap between groups closes."""
    group_words: dict[str, tuple[str, ...]] = {}
    """Further groups, each with the words that put a text into it."""
    swaps: dict[str, str] = {}
    """Words to swap in the texts, each with its replacement: `{muslim: christian}`."""
    epsilon: Share = 0.05
    """Tolerated gap of false positive rates: within it, no word is chosen."""
    delta: Share = 0.01
    """Maximum loss of accuracy on validation when words are chosen."""
    most_words: int = Field(default=20, ge=1)
    """Maximum number of words to choose."""
    candidates: int = Field(default=30, ge=1)
    """Suspect words to choose among; all pairs of them are tried."""
    neighbours: int = Field(default=5, ge=0)
    """Nearest words in the decoder to add to the expanded word set, for each word."""
    correlated: int = Field(default=10, ge=0)
    """Maximum number of words to add because they correlate with the concept on train."""
    probe_texts: int = Field(default=2000, ge=40)
    """Maximum number of texts per split for the probes."""
    train_texts: int = Field(default=10_000, ge=40)
    """Maximum number of train texts, sampled at random."""
    random_sets: int = Field(default=10, ge=1)
    """Random sets of words to compare the chosen set with."""
    seed: int = Field(default=0, ge=0)
    """For rows sampled at random, probes and random words."""
