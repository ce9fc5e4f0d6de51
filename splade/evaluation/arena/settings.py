"""How much is measured."""

from dataclasses import dataclass

from splade.evaluation.circuit_words import FRACTIONS


@dataclass(frozen=True)
class ArenaSettings:
    """Sizes of a contest; the defaults take some minutes for short texts on two cores."""

    texts: int = 200
    """Texts to remove words from, drawn by lot; 0 takes all."""
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
    """Of all that is drawn by lot."""

    def __post_init__(self) -> None:
        positive = ("seeds", "path_steps", "shapley_orders", "captum_steps", "lime_samples")
        for name in positive:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.fractions or not all(0 < fraction <= 1 for fraction in self.fractions):
            raise ValueError(f"fractions are {self.fractions}; give shares above 0 and up to 1")
