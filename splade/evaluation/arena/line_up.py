"""Who takes part, and who cannot."""

from typing import NamedTuple

from splade.evaluation.arena.attention import Attention
from splade.evaluation.arena.attribution import DIRECT, LEAVE_ONE_OUT, PATH
from splade.evaluation.arena.captum_ways import captum_explainers
from splade.evaluation.arena.chance import Chance
from splade.evaluation.arena.explainer import Explainer
from splade.evaluation.arena.gradients import GRADIENT, GRADIENT_TIMES_STRENGTH, SampledPath
from splade.evaluation.arena.occlusion import OCCLUSION
from splade.evaluation.arena.settings import ArenaSettings
from splade.evaluation.arena.shapley import ShapleySampling
from splade.models.lexical_sae import LexicalSAE


class LineUp(NamedTuple):
    """The explainers of a contest."""

    explainers: tuple[Explainer, ...]
    left_out: tuple[str, ...]
    """Who is missing and why, in sentences."""


def line_up(model: LexicalSAE, settings: ArenaSettings) -> LineUp:
    """All explainers that this model and this machine allow."""
    explainers: list[Explainer] = [
        DIRECT,
        LEAVE_ONE_OUT,
        SampledPath(settings.path_steps),
        GRADIENT,
        Attention(),
        ShapleySampling(settings.shapley_orders),
        OCCLUSION,
        Chance(),
    ]
    left_out: list[str] = []
    if model.head().is_piecewise_linear:
        explainers.append(PATH)
    else:
        explainers.append(GRADIENT_TIMES_STRENGTH)
        left_out.append(f"{PATH.name}: this head is not piecewise linear, so the path has no closed form")
    if settings.with_captum:
        try:
            explainers += captum_explainers(settings.captum_steps, settings.lime_samples)
        except ImportError as error:
            left_out.append(str(error))
    else:
        left_out.append("integrated gradients and LIME at the input were not asked for")
    return LineUp(tuple(explainers), tuple(left_out))
