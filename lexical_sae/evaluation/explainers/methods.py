"""Who takes part, and who cannot."""

from typing import NamedTuple

from lexical_sae.evaluation.explainers.attention import Attention
from lexical_sae.evaluation.explainers.attribution import DIRECT, LEAVE_ONE_OUT, OCCLUSION, PATH, Chance
from lexical_sae.evaluation.explainers.captum_methods import captum_explainers
from lexical_sae.evaluation.explainers.explainer import ArenaSettings, Explainer
from lexical_sae.evaluation.explainers.gradients import GRADIENT, GRADIENT_TIMES_STRENGTH, SampledPath
from lexical_sae.evaluation.explainers.shapley import ShapleySampling
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.plugins import PluginError, load_plugins


class LineUp(NamedTuple):
    """The explainers of a contest."""

    explainers: tuple[Explainer, ...]
    left_out: tuple[str, ...]
    """Who is missing and why, in sentences."""


OTHER_EXPLAINERS: dict[str, Explainer] = {}
"""Explainers of plug-ins, by name."""


def register_explainer(explainer: Explainer) -> Explainer:
    """Add an explainer of one's own to every comparison.

    Args:
        explainer: An object as `Explainer` describes it, such as a `ByFunction`; its name must be new.
    """
    OTHER_EXPLAINERS[explainer.name] = explainer
    return explainer


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
    load_plugins()
    taken = {explainer.name for explainer in explainers}
    if again := sorted(taken & OTHER_EXPLAINERS.keys()):
        raise PluginError(f"explainers called {', '.join(again)} are built in; register yours under another name")
    return LineUp((*explainers, *OTHER_EXPLAINERS.values()), tuple(left_out))
