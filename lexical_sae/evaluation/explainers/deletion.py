"""Ground 2: words of the text are masked, and the model reads what is left.

The ground of explainers that look at the text alone, and the only one that all can meet on: an explainer of active
words is shared out among the text by the positions that its words won at. `masked_reading` masks token by token. A
model may never have seen so many masks, so part of the loss may come from unusual inputs; it is the same for all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from lexical_sae.evaluation.explainers.case import Case, Scores, logits_masked
from lexical_sae.evaluation.explainers.erasure import Erasure, Figure, Figures, erasure_figures, erasure_of, top_words


@dataclass(frozen=True)
class DeletionScores:
    """One explainer where words of the text go."""

    erasure: Erasure


class DeletionGround:
    """Masks words of the text, text by text."""

    def __init__(self, fractions: Sequence[float], control: str, seed: int = 0) -> None:
        self.fractions, self.control = tuple(fractions), control
        self.figures = Figures(seed)

    def update(self, case: Case, told: Mapping[str, Sequence[Scores]]) -> None:
        """One text; per explainer its scores of the text's words for each seed."""
        whole = frozenset(range(case.num_written))
        chosen = [
            frozenset(top_words(scores, fraction).tolist())
            for per_seed in told.values()
            for scores in per_seed
            for fraction in self.fractions
        ]
        # All explainers in one reading: many choose the same words.
        left = logits_masked(case, [*chosen, *(whole - words for words in chosen)])
        parts = zip(*(side.split(len(self.fractions)) for side in left.split(len(chosen))), strict=True)
        found: dict[str, list[Figure]] = {
            name: [self._figures(case, next(parts)) for _ in per_seed] for name, per_seed in told.items()
        }
        self.figures.add(case.row, found)

    def _figures(self, case: Case, left: tuple[Tensor, Tensor]) -> Figure:
        without, alone = left
        return erasure_figures(case, without, alone, self.fractions)

    def result(self) -> dict[str, DeletionScores]:
        """All texts so far, by explainer."""
        return {
            name: DeletionScores(erasure_of(self.figures, name, self.fractions, self.control))
            for name in self.figures.seeds
        }
