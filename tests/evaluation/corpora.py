"""Batches as a collector sees them, made from dense vectors and a head, and heads that are planted by hand."""

import torch

from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.models.heads import BcosHead, ReluHead
from lexical_sae.models.sparse_code import SparseCode

TEXTS = [
    "a good film",
    "the acting was terrible",
    "good good plot, and the dogs play",
    "",
    "awful plot and boring acting",
    "the bank near the river has money",
    "a very boring movie!",
    "happy dogs",
]


def read_batch(head, vectors, classes=None, rows=None) -> ReadBatch:
    """The head's decisions on dense vectors."""
    with torch.no_grad():
        state = head.read(SparseCode.from_dense(vectors))
    classes = state.logits.argmax(-1) if classes is None else torch.tensor(classes)
    rows = tuple(range(len(vectors)) if rows is None else rows)
    return ReadBatch(rows, classes, state, tuple(f"text {row}" for row in rows), tuple([row] for row in rows))


def relu_head(word_vectors, class_weights, hidden_bias=None, class_bias=None) -> ReluHead:
    """A head with these weights."""
    size, width = len(word_vectors), len(word_vectors[0])
    head = ReluHead.Config(hidden_units=width).build(size, len(class_weights)).double()
    given = (word_vectors, hidden_bias or [0] * width, class_weights, class_bias or [0] * len(class_weights))
    for parameter, values in zip(head.parameters(), given, strict=True):
        parameter.data = torch.tensor(values, dtype=torch.float64)
    return head.requires_grad_(False)


def random_head(kind="relu", size=9, classes=3, width=6, seed=0) -> ReluHead | BcosHead:
    """A head of random weights, hidden bias included."""
    torch.manual_seed(seed)
    config = {"relu": ReluHead.Config, "bcos": BcosHead.Config}[kind](hidden_units=width)
    head = config.build(size, classes).double()
    for parameter in head.parameters():
        parameter.data = torch.randn_like(parameter)
    return head.requires_grad_(False)


def centered_weights(head, vectors):
    """Dense class-centred W_eff of each text, [B, C, V]."""
    W_eff = head(vectors).W_eff
    return W_eff - W_eff.mean(1, keepdim=True)
