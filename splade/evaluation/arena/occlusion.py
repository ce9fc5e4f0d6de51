"""The effect of masking each word of the text alone: for the input what leave-one-out is for active words."""

from splade.evaluation.arena.case import Case, Scores
from splade.evaluation.arena.explainer import ByFunction
from splade.evaluation.arena.masked_reading import logits_masked


def occlusion(case: Case, _seed: int) -> Scores:
    """The explained number with the word minus that without it."""
    left = logits_masked(case, [{word} for word in range(case.num_written)])
    return (case.explained(case.state.logits) - case.explained(left)).cpu()


OCCLUSION = ByFunction("input_occlusion", "effect of masking each word of the text alone", occlusion, scores="written")
