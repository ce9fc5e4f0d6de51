"""The fewest words that a decision hangs on, and the fewest that are enough for it, with proof.

A decision is one on a text, or on the tag of one of its words; shape features of a tagged word count as words here.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from splade.circuits.core import SparseCircuitState
from splade.explanation import PIECE, WORD, Reasons, WordSet
from splade.inference.labels import label_index
from splade.inference.reading import answers, is_one_text
from splade.inference.tagging import decisions_on, untagged_sentence
from splade.mechanistic.certify import Decision, SmallestSet, smallest_flip, smallest_sufficient_set
from splade.models.heads import Head, ReluHead, TableHead
from splade.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from splade.vocab import Dimension
from splade.word_forms import grouped_forms, joined_forms


def find_reasons(
    model: LexicalSAE,
    text: Any,
    to: str | int | None = None,
    max_nodes: int = 50_000,
    seconds: float | None = None,
    *,
    word: int | None = None,
    all_tokens: bool = False,
    merge_inflections: bool = False,
) -> Reasons:
    """The fewest words whose removal changes the decision on a text, to any label or to one; and the fewest enough.

    With `word` the decision is the tag of that word, counted as `tag(model, text).words` does; the text may then be a
    list of words. It is the word's own decision, before tags are made to fit together.

    Each search stops after `max_nodes` sets, the same on every machine, or after `seconds` if given. It then tells the
    smallest set found and the size below which there is provably none. Sets are complete; a view or JSON of them counts
    word pieces and symbols, or names them with `all_tokens`. A word that occurs several times counts once; with
    `merge_inflections` so do its forms (film, films), which are then removed and kept together.

    Example: `find_reasons(model, "a warm, funny film").flip.words` -> ("hilarious", "warm", "funny")
    """
    name = CLASSIFY if word is None else TAG
    head, labels = model.head(name), model.labels[name]
    wanted = None if to is None else label_index(labels, to, "to")
    made = _on_text(model, text) if word is None else _on_word(model, text, word)
    active = [made.model.dimensions[i] for i in made.state.code.ids.tolist()]
    names = [dimension.name if merge_inflections and dimension.kind == WORD else None for dimension in active]
    groups = grouped_forms(names)
    decision = _decision(head, made.state, groups)
    if wanted is not None and wanted == decision.winner:
        others = ", ".join(label for label in labels if label != labels[wanted])
        raise ValueError(f"{made.what} already gets the label {labels[wanted]!r}; name another: {others}")
    features = [_as_one([active[place] for place in group]) for group in groups]
    everything = torch.ones(decision.num_words, dtype=torch.bool)
    return Reasons(
        text=made.text,
        label=labels[decision.winner],
        probability=float(decision.logits(everything).softmax(-1)[decision.winner]),
        num_words=decision.num_words,
        tokens_cut=made.tokens_cut,
        to=None if wanted is None else labels[wanted],
        flip=_named(smallest_flip(decision, wanted, max_nodes, seconds), features, labels),
        enough=_named(smallest_sufficient_set(decision, max_nodes, seconds), features, labels),
        all_tokens=all_tokens,
    )


@dataclass(frozen=True)
class _Made:
    """A decision that was made, and on what."""

    model: LexicalSAE
    what: str
    text: str
    tokens_cut: int
    state: SparseCircuitState
    """Of one row."""


def _on_text(model: LexicalSAE, text: Any) -> _Made:
    if not is_one_text(text):
        raise ValueError(f"text is {type(text).__name__}; reasons are looked for in one text at a time")
    (read,) = answers(model, text, 1, lambda read: [read])
    return _Made(read.model, "this text", read.texts[0], read.encoded[0].tokens_cut, read.state)


def _on_word(model: LexicalSAE, text: Any, word: int) -> _Made:
    sentence = untagged_sentence(text)
    (read,) = decisions_on(model, sentence.words, [word])
    # Long sentences are read in windows: nothing is cut.
    return _Made(model, f"{sentence.words[word]!r}", sentence.text, 0, read.state)


def _as_one(forms: list[Dimension]) -> Dimension:
    return forms[0] if len(forms) == 1 else Dimension(joined_forms(form.name for form in forms), WORD)


def _decision(head: Head, state: SparseCircuitState, groups: list[list[int]]) -> Decision:
    """The decision as one on groups of active words, by their places in the code."""
    if isinstance(head, TableHead):
        return _linear_decision(head, state, groups)
    if not isinstance(head, ReluHead):
        raise ValueError(
            f"a {type(head).__name__} is not piecewise linear, and about sets of its words nothing can be proved; "
            "use explain, or train with model.head.kind 'relu'"
        )
    terms = _terms(head.word_vectors, state, groups)
    return Decision(terms, head.hidden_bias, head.class_weights, head.class_bias)


def _terms(word_vectors: Tensor, state: SparseCircuitState, groups: list[list[int]]) -> Float[Tensor, "G H"]:
    """What each group of active words adds before the decision."""
    terms = word_vectors[state.code.ids].double() * state.code.values.double()[:, None]
    return torch.stack([terms[group].sum(0) for group in groups]) if groups else terms


def _linear_decision(head: TableHead, state: SparseCircuitState, groups: list[list[int]]) -> Decision:
    """A linear decision as one of ReLU units that are on for every choice of words, so that no bound is loose."""
    terms = _terms(state.word_vectors, state, groups)
    lift = 1 + terms.abs().sum(0)
    identity = torch.eye(len(lift), dtype=terms.dtype, device=terms.device)
    return Decision(terms, lift, identity, head.class_bias.double() - lift)


def _named(found: SmallestSet, active: list[Dimension], labels: tuple[str, ...]) -> WordSet:
    chosen = [active[i] for i in found.words or ()]
    words = None if found.words is None else tuple(dimension.name for dimension in chosen)
    pieces = tuple(dimension.name for dimension in chosen if dimension.kind == PIECE)
    label = None if found.label is None else labels[found.label]
    return WordSet(words, label, found.at_least, found.is_minimal, found.is_impossible, pieces)
