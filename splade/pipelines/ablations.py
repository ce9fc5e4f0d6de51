"""The variants that an experiment is compared with where its file names none."""

from collections.abc import Mapping
from typing import Any, get_args

from splade.config.schema import ExperimentConfig
from splade.models.config import GateConfig
from splade.recipes import RECIPES

Variants = Mapping[str, Mapping[str, Any]]
TERMS = "training.objective.terms"
OTHER_COMPLETENESS = {"completeness_kl": "completeness_ce", "completeness_ce": "completeness_kl"}
HELD = 1e-6
"""A clamp on log lambda that leaves lambda at 1: the cross-entropy has a fixed weight."""


def term_ablations(config: ExperimentConfig) -> Variants:
    """Each term off, all of them off, the other completeness, a fixed weight for the cross-entropy, each other gate.

    Of literal words: context off.
    """
    asked = config.training.objective.terms
    variants: dict[str, dict[str, Any]] = {f"without {term.kind}": {f"{TERMS}.{term.kind}": None} for term in asked}
    if asked:
        variants["nothing asked"] = {TERMS: []}
        variants["fixed weights"] = {"training.controller.clamp": HELD}
    for term in asked:
        if other := OTHER_COMPLETENESS.get(term.kind):
            # Fraction, weight and centring stay; the two have the same fields.
            variants[other] = {f"{TERMS}.{term.kind}": {**term.model_dump(mode="json"), "kind": other}}
    gates = [part.model_fields["kind"].default for part in get_args(get_args(GateConfig)[0])]
    if config.model.context is not None:
        variants["without context"] = {"model.context": None}
    for kind in gates if config.model.literal is None else ():
        # Literal words have a gate of their own, and no other model has it.
        if kind not in (config.model.gate.kind, "presence"):
            variants[f"gate {kind}"] = {"model.gate": {"kind": kind, "offset": config.model.gate.offset}}
    return variants


def bcos_heads(config: ExperimentConfig) -> Variants:
    """B-cos heads of the same width beside the experiment's ReLU head: deeper, and with a higher exponent."""
    head = config.model.head
    if head.kind != "relu":
        raise ValueError(
            f"model.head is {head.kind!r}; B-cos heads are compared with a ReLU head, as in recipe: neighbours"
        )
    bcos = {"kind": "bcos", "hidden_units": head.hidden_units}
    return {
        "B-cos-2": {"model.head": bcos},
        "B-cos-3": {"model.head": {**bcos, "layers": 3}},
        "B-cos-2, exponent 3": {"model.head": {**bcos, "exponent": 3.0}},
    }


def other_recipes(config: ExperimentConfig) -> Variants:
    """The other generations of the method, as their recipes have them."""
    return {recipe: {"recipe": recipe} for recipe in RECIPES if recipe != config.recipe}
