"""What a study of a removal is asked to do."""

from typing import Annotated

from pydantic import Field

from splade.part import PartConfig

Share = Annotated[float, Field(ge=0, le=1)]


class SurgeryPlan(PartConfig):
    """The concept, the words, and how hard to look."""

    concept: str
    """Identity or concept whose leakage is measured: the name of an identity column or of a group by words."""
    positive: tuple[str, ...] = Field(min_length=1)
    """Labels that count as positive: the ones a group may be wrongly given, such as "toxic"."""
    words: tuple[str, ...] = ()
    """Words to remove; without any, they are chosen on validation so that the gap between groups closes."""
    group_words: dict[str, tuple[str, ...]] = {}
    """Further groups, each with the words that make a text speak of it."""
    swaps: dict[str, str] = {}
    """Words to swap in the texts, each with its partner."""
    epsilon: Share = 0.05
    """Gap of false positive rates that is left alone."""
    delta: Share = 0.01
    """Greatest loss of accuracy on validation when words are chosen."""
    most_words: int = Field(default=20, ge=1)
    """Most words to choose."""
    candidates: int = Field(default=30, ge=1)
    """Suspect words to choose among; all pairs of them are tried."""
    neighbours: int = Field(default=5, ge=0)
    """Nearest words in the decoder that the closure takes along, for each word."""
    correlated: int = Field(default=10, ge=0)
    """Words that the closure takes along because they correlate with the concept on train, at most."""
    probe_texts: int = Field(default=2000, ge=40)
    """Most texts per split for the probes."""
    train_texts: int = Field(default=10_000, ge=40)
    """Most train texts to read, drawn by lot."""
    random_sets: int = Field(default=10, ge=1)
    """Random sets of words beside the chosen one."""
    seed: int = Field(default=0, ge=0)
