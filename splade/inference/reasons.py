"""The fewest words that a decision hangs on, and the fewest that are enough for it, with proof."""

from typing import Any

import torch

from splade.explanation import Reasons, WordSet
from splade.inference.labels import label_index, labels_of
from splade.inference.reading import ReadTexts, answers, is_one_text
from splade.mechanistic.certify import Decision, SmallestSet, smallest_flip, smallest_sufficient_set
from splade.models.heads import ReluHead
from splade.models.lexical_sae import CLASSIFY, LexicalSAE


def find_reasons(
    model: LexicalSAE, text: Any, to: str | int | None = None, max_nodes: int = 50_000, seconds: float | None = None
) -> Reasons:
    """The fewest words whose removal changes the decision on a text, to any label or to one; and the fewest enough.

    Each search stops after `max_nodes` sets, the same on every machine, or after `seconds` if given. It then tells the
    smallest set found and the size below which there is provably none.

    Example: `find_reasons(model, "a warm, funny film").flip.words` -> ("hilarious", "warm", "funny")
    """
    if not is_one_text(text):
        raise ValueError(f"text is {type(text).__name__}; reasons are looked for in one text at a time")
    wanted = None if to is None else label_index(labels_of(model), to, "to")
    (found,) = answers(model, text, 1, lambda read: [_reasons(model, read, wanted, max_nodes, seconds)])
    return found


def _reasons(model: LexicalSAE, read: ReadTexts, to: int | None, max_nodes: int, seconds: float | None) -> Reasons:
    decision, labels = _decision(model, read), labels_of(model)
    if to is not None and to == decision.winner:
        raise ValueError(f"this text already gets the label {labels[to]!r}; name another: {', '.join(labels)}")
    names = model.dimensions.names(read.state.code.ids.tolist())
    everything = torch.ones(decision.num_words, dtype=torch.bool)
    return Reasons(
        text=read.texts[0],
        label=labels[decision.winner],
        probability=float(decision.logits(everything).softmax(-1)[decision.winner]),
        num_words=decision.num_words,
        tokens_cut=read.tokens_cut[0],
        to=None if to is None else labels[to],
        flip=_named(smallest_flip(decision, to, max_nodes, seconds), names, labels),
        enough=_named(smallest_sufficient_set(decision, max_nodes, seconds), names, labels),
    )


def _decision(model: LexicalSAE, read: ReadTexts) -> Decision:
    head, code = model.head(CLASSIFY), read.state.code
    if not isinstance(head, ReluHead):
        raise ValueError(
            f"a {type(head).__name__} is not piecewise linear, and about sets of its words nothing can be proved; "
            "use explain, or train with model.head.kind 'relu'"
        )
    terms = head.word_vectors[code.ids].double() * code.values.double()[:, None]
    return Decision(terms, head.hidden_bias, head.class_weights, head.class_bias)


def _named(found: SmallestSet, names: list[str], labels: tuple[str, ...]) -> WordSet:
    words = None if found.words is None else tuple(names[i] for i in found.words)
    label = None if found.label is None else labels[found.label]
    return WordSet(words, label, found.at_least, found.is_minimal, found.is_impossible)
