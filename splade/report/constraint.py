"""Whether a run kept the cross-entropy that circuits must not cost, and what to do where it did not."""

from collections.abc import Mapping, Sequence
from typing import Any

from splade.circuits.geco import FEASIBLE_WITHIN, beats_guessing

NAME = "cross-entropy kept"
REMEDY = (
    "Raise training.controller.tau_ce (training.short_first takes it from short texts, which are easier), "
    "train longer (training.max_epochs), "
    "or keep the cross-entropy of a training.target_accuracy within reach"
)
GUESSING_REMEDY = "Lower training.learning_rate, or train longer (training.max_epochs)"


def constraint_rows(run: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The row for one seed's results; none where no cross-entropy was to be kept, or an older file does not say.

    Example: `("cross-entropy kept", "yes", "validation 0.412, tau 0.400; up to 1.05 tau is kept")`
    """
    tau, epoch = run.get("tau_ce"), run.get("validation")
    if tau is None or epoch is None:
        return []
    figures = f"validation {epoch['ce']:.3f}, tau {tau:.3f}"
    if epoch["is_feasible"]:
        return [(NAME, "yes", f"{figures}; up to {FEASIBLE_WITHIN:g} tau is kept")]
    guessing = epoch.get("guessing_ce")
    if guessing is not None and not beats_guessing(epoch["ce"], guessing):
        why = f"no better than always giving the same answer ({guessing:.3f}), so the model has learned nothing"
        return [(NAME, "no", f"{figures}: {why}. {GUESSING_REMEDY}.")]
    # A feasible epoch would have been chosen before this one.
    why = f"no epoch after the warm-up came to {FEASIBLE_WITHIN:g} tau or less"
    ended = f", and lambda ended at {run['lambda']:.3g}" if "lambda" in run else ""
    return [(NAME, "no", f"{figures}: {why}{ended}. {REMEDY}.")]


def seeds_constraint_rows(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """The row for several seeds: in how many it was kept."""
    kept = [value == "yes" for run in runs for _, value, _ in constraint_rows(run)]
    if not kept:
        return []
    return [(NAME, f"{sum(kept)} of {len(kept)}", f"seeds; within {FEASIBLE_WITHIN:g} tau on validation")]
