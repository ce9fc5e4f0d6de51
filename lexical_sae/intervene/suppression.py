"""Words suppressed in the gate: in a view of a model, or in the model itself."""

import copy
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool
from torch import Tensor

from lexical_sae.intervene.words import FoundWord, Words, find_words, listed, opened_to_words
from lexical_sae.models.layers.screening import Screen
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.errors import SettingsError


class SuppressedModel(LexicalSAE):
    """A view of a model without some words; it works wherever a model does: prediction, explanation, tagging, saving.

    Every weight is shared with `original`, which keeps its words; only one flag per dimension is copied. To undo, use
    `original`. Because parts are shared, move or train the original, not the view.

    Args:
        model: The model.
        words: Words to suppress, each with its case variants, plural or singular, and sense slots.

    Example: `predict(SuppressedModel(model, ["muslim", "jewish"]), texts)`
    """

    original: LexicalSAE
    removed: tuple[FoundWord, ...]

    def __init__(self, model: LexicalSAE, words: Words) -> None:
        given = listed(words)
        opened = opened_to_words(model, given)
        removed = find_words(opened, given)
        _share(self, opened, opened.gate.closed | _mask(opened, removed))
        # Not as attributes of a module: the original would become a part of the view, and be saved with it.
        self.__dict__.update(original=model, removed=removed)


def with_closed(model: LexicalSAE, closed: Bool[Tensor, " V"]) -> LexicalSAE:
    """A view of a model with exactly these dimensions suppressed, sharing every weight."""
    view = LexicalSAE.__new__(LexicalSAE)
    _share(view, model, closed)
    return view


@dataclass(frozen=True, eq=False)
class Suppression:
    """Words suppressed in a model itself, and the way back."""

    model: LexicalSAE
    words: tuple[FoundWord, ...]
    newly_closed: tuple[int, ...]
    """Dimensions that were not suppressed before."""
    _original: LexicalSAE = field(repr=False)
    """The model without the dimensions added for suppression."""
    _before: Bool[Tensor, " V"] = field(repr=False)
    _after: Bool[Tensor, " W"] = field(repr=False)

    @torch.no_grad()
    def undo(self) -> None:
        """Restore the previous model, bitwise. Of several suppressions the last is undone first."""
        closed = self.model.gate.closed
        if not torch.equal(closed, self._after.to(closed.device)):
            names = ", ".join(repr(word.word) for word in self.words)
            raise SettingsError(
                f"the removal of {names} cannot be undone now, because other words were suppressed or restored since: "
                "undo later removals first, and each one once"
            )
        self.model.adopt(self._original)
        self.model.gate.closed.copy_(self._before)


def suppress_token_globally(model: LexicalSAE, words: Words) -> Suppression:
    """Suppress words in the model itself, for every text; saving keeps it.

    A model with literal words gets a suppressed dimension for each unseen form of the words; otherwise the word would
    get a dimension as soon as a text with it is read.

    Args:
        model: The model to change.
        words: Words to suppress.

    Returns:
        The suppressed words, with `undo`.

    Example: `suppress_token_globally(model, "muslim").undo()` restores the model, bitwise.
    """
    given = listed(words)
    opened = opened_to_words(model, given)
    found = find_words(opened, given)
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
    """Fill the view with the model's parts and a gate with its own suppressed words."""
    gate = copy.copy(model.gate)
    gate._buffers = {**model.gate._buffers, "closed": closed}
    view.__dict__.update(model.__dict__)
    view._modules = {**model._modules, "gate": gate}
    # A screen depends on the suppressed words: shared by two models, it would be rebuilt at every turn.
    view._screen = Screen()
