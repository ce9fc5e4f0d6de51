"""Who takes part, and who cannot."""

from typing import NamedTuple

from lexical_sae.evaluation.explainers.attention import Attention
from lexical_sae.evaluation.explainers.attribution import DIRECT, LEAVE_ONE_OUT, OCCLUSION, PATH, Chance
from lexical_sae.evaluation.explainers.captum_methods import captum_explainers
from lexical_sae.evaluation.explainers.explainer import ArenaSettings, Explainer
from lexical_sae.evaluation.explainers.gradients import GRADIENT, GRADIENT_TIMES_STRENGTH, SampledPath
from lexical_sae.evaluation.explainers.shapley import ShapleySampling
from lexical_sae.models.lexical_sae import LexicalSAE


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
