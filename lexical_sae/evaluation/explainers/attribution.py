"""Attribution methods of the model itself and their simplest references: direct, leave-one-out, occlusion, random."""

from dataclasses import dataclass

import torch

from lexical_sae.evaluation.explainers.case import Case, Scores, logits_masked
from lexical_sae.evaluation.explainers.explainer import Answer, ByFunction
from lexical_sae.mechanistic.exact import along_path, attribute_towards, leave_one_out


@torch.no_grad()
def direct(case: Case, _seed: int) -> Scores:
    """Direct logit attribution."""
    return attribute_towards(case.state, case.direction)


def removal(case: Case, _seed: int) -> Scores:
    """The effect of removing each word alone."""
    return leave_one_out(case.head, case.state).effects.towards(case.direction)


@torch.no_grad()
def path(case: Case, _seed: int) -> Scores:
    """Integrated gradients from the empty text, in closed form."""
    return attribute_towards(along_path(case.head, case.state), case.direction)


DIRECT = ByFunction("direct", "direct attribution: what each word adds at this input", direct)
LEAVE_ONE_OUT = ByFunction("leave_one_out", "exact effect of removing each word alone", removal)
PATH = ByFunction("path", "integrated gradients from no words, in closed form", path)


@dataclass(frozen=True)
class Chance:
    """Scores sampled at random, for active words and for words of the text apart.

    Were active words' lots shared out among the text, words that open many dimensions would be favoured.
    """

    name: str = "random"
    about: str = "words sampled at random"
    is_drawn: bool = True
    is_in_logits: bool = False

    def explain(self, case: Case, seed: int) -> Answer:
        """A lot for every word."""
        generator = case.drawn(seed)
        values = case.state.code.values
        active = torch.from_numpy(generator.random(case.num_active)).to(values)
        return Answer(active, torch.from_numpy(generator.random(case.num_written)))


def occlusion(case: Case, _seed: int) -> Scores:
    """The explained number with the word minus that without it."""
    left = logits_masked(case, [{word} for word in range(case.num_written)])
    return (case.explained(case.state.logits) - case.explained(left)).cpu()


OCCLUSION = ByFunction("input_occlusion", "effect of masking each word of the text alone", occlusion, scores="written")
