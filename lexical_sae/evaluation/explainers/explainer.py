"""What an explainer is, and what it says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from lexical_sae.evaluation.explainers.case import Case, Scores
from lexical_sae.evaluation.settings import FRACTIONS
from lexical_sae.utils.errors import SettingsError


@dataclass(frozen=True)
class ArenaSettings:
    """Sizes of a contest; the defaults take some minutes for short texts on two cores."""

    texts: int = 200
    """Texts to remove words from, sampled at random; 0 takes all."""
    rationale_texts: int = 100
    """Texts of each set of rationales; 0 takes all."""
    fractions: tuple[float, ...] = FRACTIONS
    """Budgets, as shares of a text's words."""
    seeds: int = 3
    """How often explainers that draw are asked."""
    path_steps: int = 50
    shapley_orders: int = 20
    with_captum: bool = True
    """Whether LIME and integrated gradients at the input take part; they cost by far the most."""
    captum_steps: int = 50
    lime_samples: int = 200
    memory_texts: int = 3
    """Texts that are explained a second time to measure memory."""
    seed: int = 0
    """Of all that is sampled at random."""

    def __post_init__(self) -> None:
        positive = ("seeds", "path_steps", "shapley_orders", "captum_steps", "lime_samples")
        for name in positive:
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.fractions or not all(0 < fraction <= 1 for fraction in self.fractions):
            raise SettingsError(f"fractions are {self.fractions}; give shares above 0 and up to 1")


class Answer(NamedTuple):
    """What an explainer says of one text; at least one of the two."""

    active: Scores | None = None
    """Of the active words, in the order of the code; None for who looks at the text alone."""
    written: Scores | None = None
    """Of the words of the text, in reading order; None where active words are to be shared out among them."""

    def at_input(self, case: Case) -> Scores:
        """Scores of the words of the text, shared out by winning positions where only active words have some."""
        if self.written is not None:
            return self.written
        assert self.active is not None
        return case.share_out(self.active)


@runtime_checkable
class Explainer(Protocol):
    """A method that scores the words behind a decision."""

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str:
        """What it does, in a line for people."""
        ...

    @property
    def is_drawn(self) -> bool:
        """Whether it depends on a seed."""
        ...

    @property
    def is_in_logits(self) -> bool:
        """Whether its scores claim to be amounts of the logit, so that an error can be measured."""
        ...

    def explain(self, case: Case, seed: int) -> Answer: ...


@dataclass(frozen=True)
class ByFunction:
    """An explainer that is one function from a case and a seed to scores, of active words unless it says otherwise."""

    name: str
    about: str
    score: Callable[[Case, int], Scores]
    is_drawn: bool = False
    is_in_logits: bool = True
    scores: Literal["active", "written"] = "active"
    """Whether active words or the text's words are scored: the field of `Answer`."""

    def explain(self, case: Case, seed: int) -> Answer:
        """The function's scores."""
        return Answer(**{self.scores: self.score(case, seed)})
