"""The explainer that knows nothing: whoever is not above it says nothing either."""

from dataclasses import dataclass

import torch

from splade.evaluation.arena.case import Case
from splade.evaluation.arena.explainer import Told


@dataclass(frozen=True)
class Chance:
    """Scores drawn by lot, for active words and for words of the text apart.

    Were active words' lots shared out among the text, words that open many dimensions would be favoured.
    """

    name: str = "random"
    about: str = "words drawn by lot"
    is_drawn: bool = True
    is_in_logits: bool = False

    def explain(self, case: Case, seed: int) -> Told:
        """A lot for every word."""
        generator = case.drawn(seed)
        values = case.state.code.values
        active = torch.from_numpy(generator.random(case.num_active)).to(values)
        return Told(active, torch.from_numpy(generator.random(case.num_written)))
