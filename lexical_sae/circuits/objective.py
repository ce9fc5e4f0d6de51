"""The circuit objective: terms and a balance. It knows neither cross-entropy nor an optimizer.

1. Every term looks at the `StepView` and gives a value.
2. The balance turns the values into the loss to minimise.
3. The values, unweighted, are returned beside it, to be logged.
"""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from jaxtyping import Float
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn, stack

from lexical_sae.circuits.balances import Balance, RunningMean, Sum, Uncertainty, Weighted
from lexical_sae.circuits.term import StepView, Term
from lexical_sae.circuits.terms import (
    L1L0,
    ActiveCount,
    CompletenessCE,
    CompletenessKL,
    DFFlops,
    FrequencyPenalty,
    GateL0,
    Hoyer,
    OwnWords,
    SeparationContrastive,
    SeparationCosine,
)
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig, Shorthand
from lexical_sae.utils.plugins import OtherKinds, kinds_of

AnyTerm = (
    CompletenessCE.Config
    | CompletenessKL.Config
    | SeparationCosine.Config
    | SeparationContrastive.Config
    | Hoyer.Config
    | DFFlops.Config
    | L1L0.Config
    | GateL0.Config
    | FrequencyPenalty.Config
    | ActiveCount.Config
    | OwnWords.Config
)
OTHER_TERMS = OtherKinds("term", lambda: kinds_of(AnyTerm))
register_term = OTHER_TERMS.register
"""Adds a term of one's own to those that `objective.terms` may name; a class decorator."""
TermConfig = Annotated[AnyTerm, Field(discriminator="kind"), *OTHER_TERMS.annotations, Shorthand]
AnyBalance = Sum.Config | Weighted.Config | RunningMean.Config | Uncertainty.Config
BalanceConfig = Annotated[AnyBalance, Field(discriminator="kind"), Shorthand]


class ObjectiveOutput(NamedTuple):
    """The loss of a step and what it is made of."""

    total: Float[Tensor, ""]
    """The balanced loss, with its gradient."""
    values: dict[str, Tensor]
    """Each term's value by kind, unweighted and detached."""


class Objective(nn.Module):
    """The circuit objective as a whole.

    Its parameters (a margin, a balance's variances) learn with the model's; its buffers belong in a checkpoint.
    """

    class Config(PartConfig):
        terms: tuple[TermConfig, ...] = ()
        """The terms; a bare kind is short for its defaults. Empty has no objective: the ablation baseline."""
        balance: BalanceConfig = Sum.Config()
        """How the terms add up: `sum`, `weighted`, `running_mean` or `uncertainty`."""

        @field_validator("terms")
        @classmethod
        def _once_each(cls, terms: tuple[AnyTerm, ...]) -> tuple[AnyTerm, ...]:
            kinds = [term.kind for term in terms]
            if len(set(kinds)) < len(kinds):
                raise SettingsError(f"objective.terms {kinds} names a kind twice; keep one and raise its weight")
            return terms

        @model_validator(mode="after")
        def _adds_up(self) -> "Objective.Config":
            # The balance refuses weights that it cannot take: now, and not when training begins.
            self.balance.build([term.weight for term in self.terms])
            return self

        def build(self, size: int, num_labels: int) -> "Objective":
            return Objective(self, size, num_labels)

    def __init__(self, config: Config, size: int, num_labels: int) -> None:
        super().__init__()
        self.weights = {term.kind: term.weight for term in config.terms}
        self.in_warmup = [term.kind for term in config.terms if term.in_warmup]
        self.terms = nn.ModuleDict({term.kind: term.build(size, num_labels) for term in config.terms})
        self.balance: Balance = config.balance.build(list(self.weights.values()))

    def forward(self, view: StepView) -> ObjectiveOutput:
        """The loss of one batch; zero without terms, or without samples."""
        if not self.terms or not len(view.labels):
            return ObjectiveOutput(view.state.logits.sum() * 0, {})
        values = {kind: term(view) for kind, term in self.terms.items()}
        total = self.balance(stack(list(values.values())))
        return ObjectiveOutput(total, {kind: value.detach() for kind, value in values.items()})

    def warm_up(self, view: StepView) -> ObjectiveOutput:
        """The loss of one batch of the warm-up: the terms that are active from the first step, by their weights."""
        values = {kind: self.terms[kind](view) for kind in self.in_warmup if len(view.labels)}
        total = sum((self.weights[kind] * value for kind, value in values.items()), view.state.logits.sum() * 0)
        return ObjectiveOutput(total, {kind: value.detach() for kind, value in values.items()})

    def score(self, values: Mapping[str, float]) -> float:
        """Weighted sum of mean values: what to compare epochs by. Balances move, so balanced losses do not compare."""
        comparable = {kind for kind, term in self.terms.items() if isinstance(term, Term) and term.compares_epochs}
        return sum(self.weights[kind] * value for kind, value in values.items() if kind in comparable)

    @property
    def reopens_words(self) -> bool:
        """Whether a word that is closed in every text may come back through the objective."""
        return any(isinstance(term, Term) and term.reopens_words for term in self.terms.values())

    def end_of_epoch(self) -> None:
        """To be called once after every epoch, so that counts fade."""
        for term in self.terms.values():
            assert isinstance(term, Term)
            term.end_of_epoch()
