"""What a study of a removal is asked to do: the `surgery` section of an experiment file.

It stands here and not with the study, so that reading a file does not wait for what a study imports.
"""

from typing import Annotated

from pydantic import Field

from splade.part import PartConfig

Share = Annotated[float, Field(ge=0, le=1)]


class SurgeryPlan(PartConfig):
    """The concept that `lexical-sae surgery` removes, its bounds, and how hard to look. Options of the command override
    it."""

    concept: str = Field(min_length=1)
    """Identity or concept whose leakage is measured: the name of an identity column, or a key of `group_words`."""
    positive: tuple[str, ...] = Field(min_length=1)
    """Labels that count as positive: the ones a group may be wrongly given, such as "toxic"."""
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
    """Nearest words in the decoder that the closure takes along, for each word."""
    correlated: int = Field(default=10, ge=0)
    """Words that the closure takes along because they correlate with the concept on train, at most."""
    probe_texts: int = Field(default=2000, ge=40)
    """Maximum number of texts per split for the probes."""
    train_texts: int = Field(default=10_000, ge=40)
    """Maximum number of train texts, sampled at random."""
    random_sets: int = Field(default=10, ge=1)
    """Random sets of words to compare the chosen set with."""
    seed: int = Field(default=0, ge=0)
    """For rows sampled at random, probes and random words."""
