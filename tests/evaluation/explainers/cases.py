"""Texts read by a tiny model in double precision, and the decisions on a few of their words alone."""

import functools
from dataclasses import replace

import torch

from lexical_sae.evaluation.explainers.case import Case, read_case
from lexical_sae.mechanistic.exact import class_centered
from lexical_sae.models.config import ModelConfig
from tests import tiny

TEXT = "the acting was terrible and the plot boring"


@functools.cache
def model(head: str = "relu"):
    made = tiny.model(ModelConfig(gate="drelu", head=head)).double()  # pyright: ignore[reportArgumentType]
    with torch.no_grad():
        for name, parameter in made.head().named_parameters():
            drawn = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3))
            # Logits so small that no probability is near one: what a removal takes away is seen.
            parameter.copy_(drawn * (0.05 if name.startswith("class") else 1.0))
    return made


def case(text: str = TEXT, row: int = 0, head: str = "relu") -> Case:
    return read_case(model(head), row, text)


def small_case(words: int = 4, text: str = TEXT, head: str = "relu") -> Case:
    """The decision from the strongest words alone."""
    whole = case(text, head=head)
    with torch.no_grad():
        state = model(head).head().read(whole.state.code.keep_strongest(words))
    direction = class_centered(state.logits, state.logits.argmax(-1))
    return replace(whole, read=replace(whole.read, state=state), direction=direction)


def explained_of(of: Case, kept) -> torch.Tensor:
    """The explained number when only some active words (places in the code) are left; by the dense head."""
    vector = torch.zeros(of.state.code.size, dtype=torch.float64)
    for place in kept:
        vector[of.state.code.ids[place]] = of.state.code.values[place]
    with torch.no_grad():
        return of.explained(of.model.head()(vector[None]).logits)[0]
