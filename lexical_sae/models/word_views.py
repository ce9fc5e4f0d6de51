"""Views of a model with literal words: with more words, with fewer, or with other rows in its table.

A view shares every weight with the model but those that it changes, and is a model like any other: it reads, explains
and can be saved. Words stand in the settings, so that a saved view finds them again by their spelling.
"""

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lexical_sae.data.dimensions import Dimension
from lexical_sae.models.heads import CLASSIFY, TableHead
from lexical_sae.utils.errors import SettingsError

if TYPE_CHECKING:
    from lexical_sae.models.layers.literal_words import LiteralWords
    from lexical_sae.models.lexical_sae import LexicalSAE


@torch.no_grad()
def with_words(model: "LexicalSAE", words: Sequence[str]) -> "LexicalSAE":
    """The model with dimensions for these multi-piece words after the others, in their order; rows by their spelling.

    A word whose row is too small to count is closed, as in training.
    """
    if not words:
        return model
    assert model.literal is not None
    literal = model.literal.extended(words)
    embeddings = literal.added_embeddings(model.backbone.input_embeddings())[-len(words) :]
    heads = _each_once(model, lambda head: head.with_more(head.rows_of_unseen(embeddings)))
    # Which of them have weight is decided by the model's own table, not by one that leaves out a fold.
    largest = heads[CLASSIFY].word_vectors[-len(words) :].abs().amax(-1)
    known = multi_piece_words(model)
    closed = torch.cat([model.gate.closed, largest == 0])
    size = None if model.context is None else torch.cat([model.context.size, largest])
    return _spelled(_with_table(model, heads, closed, size), literal, (*known, *words))


def without_context(model: "LexicalSAE") -> "LexicalSAE":
    """The model with every word at its default, whatever the text: its table alone, which asks no encoder."""
    view = copy.copy(model)
    view._modules = {**model._modules, "context": None}
    view.config = model.config.model_copy(update={"context": None})
    return view


def cut_to_window(model: "LexicalSAE") -> "LexicalSAE":
    """The model reading no more of a text than its encoder takes at once."""
    view = copy.copy(model)
    view.config = model.config.model_copy(update={"long_texts": "cut"})
    return view


def without_last_words(model: "LexicalSAE", count: int) -> "LexicalSAE":
    """The model without the last `count` of its multi-piece words: what it was before `with_words`."""
    if not count:
        return model
    config, words = model.config.literal, multi_piece_words(model)[:-count]
    assert config is not None
    literal = config.model_copy(update={"multi_piece_words": words}).build(model.dimensions.vocabulary)
    heads = _each_once(model, lambda head: head.with_rows(head.word_vectors[:-count]))
    size = None if model.context is None else model.context.size[:-count]
    view = _with_table(model, heads, model.gate.closed[:-count], size)
    return _spelled(view, literal.to(model.gate.closed.device), words)


@torch.no_grad()
def with_rows(
    model: "LexicalSAE", dimensions: Int[Tensor, " K"], rows: Float[Tensor, "K C"], closed: Bool[Tensor, " V"]
) -> "LexicalSAE":
    """The model with these rows in the table that decides on documents, and these dimensions closed and no others.

    How far context may shift a word depends on the size of its row, which is changed along.
    """
    table = document_table(model)
    edited = table.with_rows(table.word_vectors.index_copy(0, dimensions, rows))
    size = None
    if model.context is not None:
        size = model.context.size.index_copy(0, dimensions, rows.abs().amax(-1))
    return _with_table(model, _each_once(model, lambda head: edited if head is table else head), closed, size)


def multi_piece_words(model: "LexicalSAE") -> tuple[str, ...]:
    """The words of the model that its tokenizer splits, in the order of their dimensions."""
    return () if model.config.literal is None else model.config.literal.multi_piece_words


def document_table(model: "LexicalSAE") -> TableHead:
    """The table of a model with literal words; other models have none and are refused."""
    head = model.head(CLASSIFY)
    if not isinstance(head, TableHead):
        raise SettingsError(
            f"this model is no table of words (its head is a {type(head).__name__}); train with a recipe whose words "
            "are literal (model.literal), or take words out by a lexicon file"
        )
    return head


def _each_once(model: "LexicalSAE", change: Callable[[TableHead], TableHead]) -> dict[str, TableHead]:
    """Every head changed, by name; one that has several names stays one."""
    heads = {name: head for name, head in model.heads.items() if isinstance(head, TableHead)}
    changed = {head: change(head) for head in heads.values()}
    return {name: changed[head] for name, head in heads.items()}


def _with_table(
    model: "LexicalSAE",
    heads: dict[str, TableHead],
    closed: Bool[Tensor, " V"],
    size: Float[Tensor, " V"] | None,
) -> "LexicalSAE":
    view = copy.copy(model)
    view._modules = {
        **model._modules,
        "heads": nn.ModuleDict(heads),
        "gate": _with_buffers(model.gate, closed=closed),
        "context": None if size is None or model.context is None else _with_buffers(model.context, size=size),
    }
    return view


def _spelled(view: "LexicalSAE", literal: "LiteralWords", words: tuple[str, ...]) -> "LexicalSAE":
    """Give a view the part that finds its words, and the names of their dimensions."""
    assert view.config.literal is not None
    view._modules["literal"] = literal
    settings = view.config.literal.model_copy(update={"multi_piece_words": words})
    view.config = view.config.model_copy(update={"literal": settings})
    names = [Dimension(word, "word") for word in words]
    view.dimensions = view.dimensions.with_appended(names)
    return view


def _with_buffers(part: nn.Module, **buffers: Tensor) -> nn.Module:
    view = copy.copy(part)
    view._buffers = {**part._buffers, **buffers}
    return view
