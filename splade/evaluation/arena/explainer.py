"""What an explainer is, and what it says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from splade.evaluation.arena.case import Case, Scores


class Told(NamedTuple):
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
    """Whoever can say which words speak for a decision."""

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

    def explain(self, case: Case, seed: int) -> Told: ...


@dataclass(frozen=True)
class ByFunction:
    """An explainer that is one function from a case and a seed to scores, of active words unless it says otherwise."""

    name: str
    about: str
    score: Callable[[Case, int], Scores]
    is_drawn: bool = False
    is_in_logits: bool = True
    scores: Literal["active", "written"] = "active"
    """Whether active words or the text's words are scored: the field of `Told`."""

    def explain(self, case: Case, seed: int) -> Told:
        """The function's scores."""
        return Told(**{self.scores: self.score(case, seed)})
