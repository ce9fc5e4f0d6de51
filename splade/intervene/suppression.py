"""Words closed in the gate: in a view of a model, or in the model itself."""

import copy
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool
from torch import Tensor

from splade.intervene.words import FoundWord, Words, find_words, listed, opened_to_words
from splade.models.layers.screening import Screen
from splade.models.lexical_sae import LexicalSAE


class SuppressedModel(LexicalSAE):
    """A model without some words. Whatever takes a model takes it: prediction, explanation, tagging, saving.

    It is a view: every weight is shared with `original`, which keeps its words, and nothing is copied but one flag per
    dimension. So undoing is using `original`. Because parts are shared, move or train the original, not the view.

    Example: `predict(SuppressedModel(model, ["muslim", "jewish"]), texts)`
    """

    original: LexicalSAE
    removed: tuple[FoundWord, ...]

    def __init__(self, model: LexicalSAE, words: Words) -> None:
        asked = listed(words)
        opened = opened_to_words(model, asked)
        removed = find_words(opened, asked)
        _share(self, opened, opened.gate.closed | _mask(opened, removed))
        # Not as attributes of a module: the original would become a part of the view, and be saved with it.
        self.__dict__.update(original=model, removed=removed)


def with_closed(model: LexicalSAE, closed: Bool[Tensor, " V"]) -> LexicalSAE:
    """The same model with these dimensions closed and no others, sharing every weight."""
    view = LexicalSAE.__new__(LexicalSAE)
    _share(view, model, closed)
    return view


@dataclass(frozen=True, eq=False)
class Suppression:
    """Words closed in a model for good, and the way back."""

    model: LexicalSAE
    words: tuple[FoundWord, ...]
    newly_closed: tuple[int, ...]
    """Dimensions that were open before; the others of the words were closed already."""
    _original: LexicalSAE = field(repr=False)
    """The model without words that were added to be closed."""
    _before: Bool[Tensor, " V"] = field(repr=False)
    _after: Bool[Tensor, " W"] = field(repr=False)

    @torch.no_grad()
    def undo(self) -> None:
        """Open again what was open; bitwise the model from before. The last of several is undone first."""
        closed = self.model.gate.closed
        if not torch.equal(closed, self._after.to(closed.device)):
            names = ", ".join(repr(word.word) for word in self.words)
            raise ValueError(
                f"the removal of {names} cannot be undone now, because other words were closed or opened since: "
                "undo later removals first, and each one once"
            )
        self.model.adopt(self._original)
        self.model.gate.closed.copy_(self._before)


def suppress_token_globally(model: LexicalSAE, words: Words) -> Suppression:
    """Close words in the model itself, for every text and for good: saving keeps it, top-k and sense slots obey it.

    A model with literal words gets a dimension, closed, for each form of a word that it never met: else the word would
    have one again as soon as a text with it is read.

    Example: `suppress_token_globally(model, "muslim").undo()` leaves the model as it was, bitwise.
    """
    asked = listed(words)
    opened = opened_to_words(model, asked)
    found = find_words(opened, asked)
    original, before = copy.copy(model), model.gate.closed.clone()
    model.adopt(opened)
    mask = _mask(model, found)
    newly = (mask & ~model.gate.closed).nonzero().flatten().tolist()
    model.gate.close(mask)
    return Suppression(model, found, tuple(newly), original, before, model.gate.closed.clone())


def _mask(model: LexicalSAE, words: tuple[FoundWord, ...]) -> Bool[Tensor, " V"]:
    mask = torch.zeros_like(model.gate.closed)
    mask[[i for word in words for i in word.dimensions]] = True
    return mask


def _share(view: LexicalSAE, model: LexicalSAE, closed: Bool[Tensor, " V"]) -> None:
    """Make the view of the model's parts, but for a gate with closed words of its own."""
    gate = copy.copy(model.gate)
    gate._buffers = {**model.gate._buffers, "closed": closed}
    view.__dict__.update(model.__dict__)
    view._modules = {**model._modules, "gate": gate}
    # What a screen prepares depends on which words are open: two models in turn would prepare it anew each time.
    view._screen = Screen()
