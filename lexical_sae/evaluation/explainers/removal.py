"""Ground 1: active words are taken away, and what then happens is known exactly.

    error      sum of |score - effect of removing the word| as a share of the sum of |effects|, for scores in logits
    spearman   rank correlation of scores and effects of single removals, over a text's active words
    kendall    the same as Kendall's tau-b
    top word   share of texts whose label changes when the first word of the order goes

and the removal of many words (`erasure`). Exact leave-one-out *is* the effect, so it is first on single removals by
definition: that is a check of the ground, not a finding.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from lexical_sae.evaluation.explainers.case import Case, Scores
from lexical_sae.evaluation.explainers.erasure import Erasure, Figure, Figures, erasure_figures, erasure_of, top_words
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.mechanistic.exact import WordSets, leave_one_out, remove


@dataclass(frozen=True)
class RemovalScores:
    """One explainer against the known effects of removal."""

    error: Interval
    """NaN where scores do not claim to be amounts of the logit."""
    spearman: Interval
    kendall: Interval
    top_word: Interval
    erasure: Erasure


class RemovalGround:
    """Takes active words away, text by text."""

    def __init__(self, fractions: Sequence[float], control: str, seed: int = 0) -> None:
        self.fractions, self.control = tuple(fractions), control
        self.figures = Figures(seed)

    def update(self, case: Case, told: Mapping[str, Sequence[Scores]], in_logits: Mapping[str, bool]) -> None:
        """One text; per explainer its scores of active words for each seed."""
        effects = leave_one_out(case.head, case.state).effects
        known = effects.towards(case.direction)
        # Whether the label changes without each word.
        flips = effects.logits_without(case.state.logits).argmax(-1) != case.predicted

        def measure(name: str, scores: Scores) -> Figure:
            return {
                "error": float((scores - known).abs().sum()) if in_logits[name] else math.nan,
                "effects": float(known.abs().sum()),
                **rank_agreement(scores, known),
                "top word": float(flips[scores.argmax()]),
                **self._erased(case, scores),
            }

        self.figures.add(
            case.row, {name: [measure(name, scores) for scores in per_seed] for name, per_seed in told.items()}
        )

    def result(self) -> dict[str, RemovalScores]:
        """All texts so far, by explainer."""
        return {
            name: RemovalScores(
                self.figures.ratio(name, "error", "effects"),
                self.figures.mean(name, "spearman"),
                self.figures.mean(name, "kendall"),
                self.figures.share(name, "top word"),
                erasure_of(self.figures, name, self.fractions, self.control),
            )
            for name in self.figures.seeds
        }

    def _erased(self, case: Case, scores: Scores) -> Figure:
        chosen = [top_words(scores, fraction) for fraction in self.fractions]
        sets = [*chosen, *(_others(words, len(scores)) for words in chosen)]
        ends = torch.tensor([0, *(len(words) for words in sets)], device=scores.device).cumsum(0)
        places = WordSets(torch.zeros_like(ends[1:]), torch.cat(sets), ends)
        left = remove(case.head, case.state, places).effects.logits_without(case.state.logits)
        without, alone = left.split(len(chosen))
        return erasure_figures(case, without, alone, self.fractions)


def rank_agreement(scores: Float[Tensor, " N"], known: Float[Tensor, " N"]) -> dict[str, float]:
    """Rank correlations of scores with what is known: NaN where nothing can be ranked, 0 for scores all alike."""
    ours, theirs = (values.detach().cpu().double().numpy() for values in (scores, known))
    if np.ptp(theirs) == 0:
        return {"spearman": math.nan, "kendall": math.nan}
    if np.ptp(ours) == 0:
        return {"spearman": 0.0, "kendall": 0.0}
    ranks = np.corrcoef(stats.rankdata(ours), stats.rankdata(theirs))
    found: Any = stats.kendalltau(ours, theirs)
    return {"spearman": float(ranks[0, 1]), "kendall": float(found[0])}


def _others(words: Tensor, count: int) -> Tensor:
    """All places but these."""
    is_left = torch.ones(count, dtype=torch.bool, device=words.device)
    is_left[words] = False
    return is_left.nonzero().flatten()
