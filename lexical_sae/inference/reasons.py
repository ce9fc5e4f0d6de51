"""The fewest words that a decision hangs on, and the fewest that are enough for it, with proof.

A decision is one on a text, or on the tag of one of its words; shape features of a tagged word count as words here.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.data.dimensions import Dimension
from lexical_sae.data.language import grouped_forms, joined_forms
from lexical_sae.explanation import PIECE, WORD, Reasons, WordSet
from lexical_sae.inference.labels import label_index, labels_of
from lexical_sae.inference.reading import answers, is_one_text
from lexical_sae.inference.tagging import decisions_on, untagged_sentence
from lexical_sae.mechanistic.minimal_sets import Decision, SmallestSet, smallest_flip, smallest_sufficient_set
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.heads import Head, ReluHead, TableHead
from lexical_sae.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from lexical_sae.utils.errors import SettingsError


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
    """The fewest words whose removal changes a decision, and the fewest that are enough for it, with proof.

    Sets are complete; a view or JSON of them counts word pieces and symbols. A word that occurs several times counts
    once.

    Args:
        model: A classifier or tagger whose head is piecewise linear.
        text: A string; for a tagger also a list of words.
        to: The label to change the decision to; any other by default.
        max_nodes: Sets after which each search stops, the same on every machine. The result is then the smallest set
            found, and the size below which there is provably none.
        seconds: Time after which each search stops; no limit by default.
        word: Place of the word whose tag is the decision, counted as in `tag(model, text).words`. It is the word's own
            decision, before tags are made to fit together.
        all_tokens: Whether views name word pieces and symbols.
        merge_inflections: Whether the forms of a word (film, films) are removed and kept together.

    Returns:
        `Reasons`, with the two sets as `flip` and `enough`.

    Example: `find_reasons(model, "a warm, funny film").flip.words` -> ("hilarious", "warm", "funny")
    """
    name = CLASSIFY if word is None else TAG
    head, labels = model.head(name), labels_of(model, "flip") if word is None else model.labels[name]
    wanted = None if to is None else label_index(labels, to, "to")
    made = _on_text(model, text) if word is None else _on_word(model, text, word)
    active = [made.model.dimensions[i] for i in made.state.code.ids.tolist()]
    names = [dimension.name if merge_inflections and dimension.kind == WORD else None for dimension in active]
    groups = grouped_forms(names)
    decision = _decision(head, made.state, groups)
    if wanted is not None and wanted == decision.winner:
        others = ", ".join(label for label in labels if label != labels[wanted])
        raise SettingsError(f"{made.what} already gets the label {labels[wanted]!r}; name another: {others}")
    features = [_as_one([active[place] for place in group]) for group in groups]
    everything = torch.ones(decision.num_words, dtype=torch.bool)
    logits = decision.logits(everything)
    # The temperature is that of documents.
    probabilities = made.model.probabilities(logits) if word is None else logits.softmax(-1)
    return Reasons(
        text=made.text,
        label=labels[decision.winner],
        probability=float(probabilities[decision.winner]),
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
        raise SettingsError(f"text is {type(text).__name__}; reasons are looked for in one text at a time")
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
        raise SettingsError(
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
