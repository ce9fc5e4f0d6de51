"""The table of a model with literal words, fitted without context.

    row(w) = own(w) + P m(w)        logits(text) = sum over its words of default activation * row(w) + bias

1. m(w) is what the *pretrained* encoder says of the word in the training texts, and in texts without a label if there
   are any: no label enters (`literal_vectors`).
2. own and P minimise the loss of the output kind with two ridge penalties (`table_fit`). Cross-validation chooses the
   penalties (`table_choice`).
3. Five more tables leave out a fifth of the texts each. Context is learned on those (`FoldedDocuments`), because a
   table explains its own training texts too well to leave context anything to learn.
4. Rows that are too small to matter are emptied, and if wanted those that are not surely other than zero
   (`certain_rows`); the context shift learns how large the others are.
"""

import itertools
import logging
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lexical_sae.data.batches import TokenizedTexts, length_buckets
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.literal_words import occurrences
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.table_head import TableHead
from lexical_sae.training.certain_rows import certain_rows
from lexical_sae.training.folds import FOLDS
from lexical_sae.training.literal_vectors import WordVectors, read_words_of, vectors_of
from lexical_sae.training.table_choice import Choice, candidates, chosen_penalties, is_held_strongly, judged_folds
from lexical_sae.training.table_fit import LeftOut, Table, TableFitter
from lexical_sae.training.tasks import Documents
from lexical_sae.utils.progress import OnStep, Step, silent

logger = logging.getLogger(__name__)


def fit_word_table(
    model: LexicalSAE,
    documents: Documents,
    folds: Int[Tensor, " T"],
    fold_heads: Sequence[str],
    on_step: OnStep = silent,
) -> tuple[WordVectors, Choice]:
    """Fit the table of the documents' head and those of the folds, while the encoder is still the pretrained one.

    Returns the vectors that the rows are made of, and what texts left out say of such a table.
    """
    head = model.head(documents.head)
    assert isinstance(head, TableHead)
    documents = documents.given()
    folds = folds[: len(documents.texts)]
    is_few = is_held_strongly(len(documents.texts), with_context=bool(fold_heads))
    labelled, unlabelled = read_words_of(model, documents, on_step)
    vectors = vectors_of(model, labelled, unlabelled, adds_up=is_few)
    num_labels, output = len(model.labels[documents.head]), model.output_of(documents.head)
    fitter = TableFitter(labelled.activations, documents.labels, num_labels, vectors, documents.weights, output)
    least = head.config.least_certainty
    folds_fitted = [folds != k for k in range(FOLDS)] if fold_heads or least else []
    offered = candidates(len(documents.texts), with_context=bool(fold_heads))
    fits = len(offered) * len(judged_folds(folds)) + len(folds_fitted) + 1
    done = itertools.count(1)

    def told() -> None:
        on_step(Step("fitting the table of words", next(done), fits))

    choice = chosen_penalties(offered, LeftOut(fitter, folds), documents.labels, folds, documents.weights, told, output)
    logger.info("table of words: %s", choice)

    def fitted(chosen: Bool[Tensor, " T"] | None = None) -> Table:
        found = fitter.fit(choice.penalties, chosen)
        told()
        return found

    whole, tables = fitted(), [fitted(chosen) for chosen in folds_fitted]
    if least:
        is_certain = certain_rows(whole.rows, [table.rows for table in tables], least)
        whole = replace(whole, rows=whole.rows * is_certain[:, None])
    _write(head, whole, vectors)
    for name, table in zip(fold_heads, tables, strict=bool(fold_heads)):
        other = model.head(name)
        assert isinstance(other, TableHead)
        _write(other, table, vectors)
    size = head.word_vectors.abs().amax(-1)
    model.gate.close(size == 0)
    if model.context is not None:
        model.context.size.copy_(size)
    return vectors, choice


@torch.no_grad()
def _write(head: TableHead, table: Table, vectors: WordVectors) -> None:
    """Put a table into a head: small rows are empty, and unseen words get theirs from their embedding."""
    head.word_vectors.copy_(head.emptied(table.rows, table.rows))
    head.class_bias.copy_(table.bias)
    head.unseen_weights.copy_(vectors.from_embedding @ table.projection)


@torch.no_grad()
def document_frequencies(model: LexicalSAE, texts: TokenizedTexts) -> dict[str, int]:
    """In how many texts each literal word stands, by name; words that stand in none are left out."""
    counts = torch.zeros(len(model.dimensions), dtype=torch.long)
    device = model.gate.closed.device
    for some in length_buckets(texts, 256):
        batch = texts.batch(some)
        words = model.own_words(batch.input_ids.to(device)).cpu()
        rows, _, found = occurrences(words.masked_fill(~batch.attention_mask.bool(), NO_WORD))
        pairs = (rows * len(counts) + found).unique()
        counts += torch.bincount(pairs % len(counts), minlength=len(counts))
    specials = ~model.dimensions.feature_mask
    return {model.dimensions[i].name: int(counts[i]) for i in (counts * ~specials).nonzero().flatten().tolist()}
