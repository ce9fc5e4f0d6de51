"""The table of a model with literal words, fitted without context.

    row(w) = own(w) + P m(w)        logits(text) = sum over its words of default activation * row(w) + bias

1. m(w) is the mean state of the word in the *pretrained* encoder over the training texts: no label enters. Words that
   are rare or were never met are shrunk towards what a ridge regression predicts from their input embedding, and that
   towards the same of words read alone (`word_prior`).
2. own and P minimise the loss of the output kind (of classes, a cross-entropy) with two ridge penalties: convex, so
   there is no seed and no learning rate. Own weights of rare words are penalised less (by their inverse document
   frequency). Cross-validation chooses the penalties (`table_choice`).
3. Five more tables leave out a fifth of the texts each. Context is learned on those (`FoldedDocuments`), because a
   table explains its own training texts too well to leave context anything to learn.
4. Rows that are too small to matter are emptied, and if wanted those that are not surely other than zero
   (`certain_rows`); the context shift learns how large the others are.
"""

import itertools
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import minimize
from torch import Tensor

from lexical_sae.data.batches import TokenizedTexts, length_buckets
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.literal_words import occurrences
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.literal_reading import read_words
from lexical_sae.models.table_head import TableHead
from lexical_sae.outputs import CLASSES, OutputKind
from lexical_sae.outputs.kind import Targets
from lexical_sae.training.certain_rows import certain_rows
from lexical_sae.training.folds import FOLDS
from lexical_sae.training.samples import ReadTokens
from lexical_sae.training.table_choice import Penalties, candidates, chosen_penalties, judged_folds
from lexical_sae.training.tasks import Documents
from lexical_sae.training.word_prior import prior_map
from lexical_sae.utils.progress import OnStep, Step, silent

logger = logging.getLogger(__name__)

SHRINK = 3.0
"""A word's mean state counts as much as what its embedding predicts when it was met so many times."""
RIDGE = 10.0
LEAST_SPREAD = 1e-6


@dataclass(frozen=True)
class WordVectors:
    """A label-blind vector per dimension, and how it follows from an input embedding alone."""

    vectors: Float[Tensor, "V E"]
    from_embedding: Float[Tensor, "D1 E"]
    """For words that were never met; the last row is the bias."""
    counts: Int[Tensor, " V"]
    spread: float = 1.0
    """How far the states of words lie apart, per coordinate: the unit in which context is read from them."""
    text_states: Float[Tensor, "T E"] = torch.empty(0, 0)
    """The mean state of each text's tokens, those that were read."""


@dataclass(frozen=True)
class Table:
    """A fitted table; of classes, class-centred."""

    rows: Float[Tensor, "V C"]
    bias: Float[Tensor, " C"]
    projection: Float[Tensor, "E C"]


def fit_word_table(
    model: LexicalSAE,
    documents: Documents,
    folds: Int[Tensor, " T"],
    fold_heads: Sequence[str],
    on_step: OnStep = silent,
) -> WordVectors:
    """Fit the table of the documents' head and those of the folds, while the encoder is still the pretrained one.

    Returns the vectors that the rows are made of.
    """
    head = model.head(documents.head)
    assert isinstance(head, TableHead)
    documents = documents.given()
    folds = folds[: len(documents.texts)]
    vectors = word_vectors(model, documents, on_step)
    counted = default_activations(model, documents)
    num_labels, output = len(model.labels[documents.head]), model.output_of(documents.head)
    fitter = TableFitter(counted, documents.labels, num_labels, vectors, documents.weights, output)
    least = head.config.least_certainty
    folds_fitted = [folds != k for k in range(FOLDS)] if fold_heads or least else []
    offered = candidates(len(documents.texts), with_context=bool(fold_heads))
    fits = len(offered) * len(judged_folds(folds)) + len(folds_fitted) + 1
    done = itertools.count(1)

    def told() -> None:
        on_step(Step("fitting the table of words", next(done), fits))

    def left_out(penalties: Penalties, rows: Int[Tensor, " R"]) -> Float[Tensor, "R C"]:
        rest = torch.ones(len(folds), dtype=torch.bool).index_fill(0, rows, value=False)
        return fitter.logits(fitter.fit(penalties, rest), rows)

    choice = chosen_penalties(offered, left_out, documents.labels, folds, documents.weights, told, output)
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
    return vectors


@torch.no_grad()
def _write(head: TableHead, table: Table, vectors: WordVectors) -> None:
    """Put a table into a head: small rows are empty, and unseen words get theirs from their embedding."""
    head.word_vectors.copy_(head.emptied(table.rows, table.rows))
    head.class_bias.copy_(table.bias)
    head.unseen_weights.copy_(vectors.from_embedding @ table.projection)


@torch.no_grad()
def word_vectors(model: LexicalSAE, documents: Documents, on_step: OnStep = silent) -> WordVectors:
    """Mean states of the words in the training texts, filled in and shrunk by what input embeddings predict."""
    assert model.literal is not None
    device = next(model.parameters()).device
    sums = torch.zeros(len(model.dimensions), model.backbone.encoder_width, dtype=torch.float64)
    counts = torch.zeros(len(model.dimensions), dtype=torch.long)
    text_states = torch.empty(len(documents.texts), model.backbone.encoder_width)
    done = 0
    # Of long texts some windows: means need not see every occurrence. Drawn in the same way every time: no seed.
    generator = torch.Generator().manual_seed(0)
    was_training = model.training
    model.eval()
    for rows in length_buckets(documents.texts, 64):
        batch = documents.texts.batch(rows)
        input_ids, mask = batch.input_ids.to(device), batch.attention_mask.to(device)
        tokens = ReadTokens.of(model, input_ids, mask.bool(), documents.most_windows, generator)
        is_read = mask.bool() if tokens.is_read is None else tokens.is_read
        words = model.own_words(input_ids).masked_fill(~is_read, NO_WORD)
        _, _, found = occurrences(words)
        states = model.literal.word_states(tokens.states, input_ids, words != NO_WORD)
        sums.index_add_(0, found.cpu(), states.double().cpu())
        counts += torch.bincount(found.cpu(), minlength=len(counts))
        text_states[rows] = tokens.mean_states().float().cpu()
        done += len(rows)
        on_step(Step("reading words in the pretrained encoder", done, len(documents.texts)))
    model.train(was_training)
    embeddings = model.literal.embeddings(model.backbone.input_embeddings()).double().cpu()
    vectors, from_embedding, scale = _shrunk(sums, counts, embeddings, prior_map(model, RIDGE))
    return WordVectors(vectors, from_embedding, counts, scale / math.sqrt(vectors.shape[1]), text_states)


def _shrunk(sums: Tensor, counts: Tensor, embeddings: Tensor, prior: Tensor) -> tuple[Tensor, Tensor, float]:
    """Centred and scaled to a mean length of one; what embeddings predict is held to `prior` where texts are few."""
    X = torch.cat([embeddings, torch.ones_like(embeddings[:, :1])], dim=1)
    seen = counts > 0
    times = counts[seen, None].double()
    means, weight = sums[seen] / times, times / (times + SHRINK)
    A = X[seen].T @ (weight * X[seen]) + RIDGE * torch.eye(X.shape[1], dtype=X.dtype)
    from_embedding = torch.linalg.solve(A, X[seen].T @ (weight * means) + RIDGE * prior)
    vectors = X @ from_embedding
    vectors[seen] = (sums[seen] + SHRINK * vectors[seen]) / (times + SHRINK)
    centre = (vectors[seen] * times).sum(0) / times.sum()
    scale = (vectors[seen] - centre).square().sum(-1).mean().sqrt().clamp(min=1e-6)
    from_embedding[-1] -= centre
    return (vectors - centre) / scale, from_embedding / scale, float(scale)


@torch.no_grad()
def default_activations(model: LexicalSAE, documents: Documents) -> scipy.sparse.csr_matrix:
    """The activations of the words of each text without context, [T, V]."""
    size = (len(documents.texts), len(model.dimensions))
    rows, words, values = [], [], []
    for some in length_buckets(documents.texts, 256):
        batch = documents.texts.batch(some)
        device = model.gate.closed.device
        mask = batch.attention_mask.bool().to(device)
        read = read_words(model, batch.input_ids.to(device), mask, None, defaults_only=True)
        rows.append(np.array(some)[read.rows.cpu().numpy()])
        words.append(read.words.cpu().numpy())
        values.append(read.defaults.cpu().numpy())
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(words)))
    # Entries of one word of one text are summed.
    return scipy.sparse.csr_matrix(entries, shape=size, dtype=np.float64)


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


class TableFitter:
    """Tables of the same texts, with some of them left out."""

    def __init__(
        self,
        activations: scipy.sparse.csr_matrix,
        labels: Targets,
        num_labels: int,
        vectors: WordVectors,
        weights: Float[Tensor, " T"] | None = None,
        output: OutputKind = CLASSES,
    ) -> None:
        """`weights` say how much each text counts in the loss; by default all count the same."""
        self.output = output
        self.weights = None if weights is None else weights.double().numpy()
        self.labels, self.num_labels = labels.cpu().numpy(), num_labels
        self.vectors = vectors.vectors.numpy()
        self.activations = activations
        frequency = np.bincount(activations.indices, minlength=len(self.vectors))
        self.met = frequency.nonzero()[0]
        """Dimensions of words that occur: only those have weights of their own."""
        rarity = np.log((len(labels) + 1) / (frequency[self.met] + 1)) + 1
        self.rarity = rarity / rarity.mean()
        self.own = activations[:, self.met] @ scipy.sparse.diags(self.rarity)
        self.means = np.asarray(activations @ self.vectors)

    def fit(self, penalties: Penalties, chosen: Tensor | None = None) -> Table:
        """The table of the chosen texts, by default all, with these penalties of own weights and projection."""
        rows = np.arange(len(self.labels)) if chosen is None else chosen.nonzero().flatten().numpy()
        X, labels, shares = self.own[rows].tocsr(), self.labels[rows], self._shares(rows)
        centre = self.means[rows].mean(0)
        spread = self.means[rows].std(0) + LEAST_SPREAD if penalties.is_even else np.ones_like(centre)
        means = (self.means[rows] - centre) / spread
        texts = len(labels) if penalties.is_even else 1
        held = (penalties.own / texts, penalties.shared / texts)
        shapes = [(X.shape[1], self.num_labels), (means.shape[1], self.num_labels), (1, self.num_labels)]
        ends = np.cumsum([np.prod(shape) for shape in shapes])

        def parts(weights: np.ndarray) -> list[np.ndarray]:
            return [part.reshape(shape) for part, shape in zip(np.split(weights, ends[:-1]), shapes, strict=True)]

        def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
            own, P, bias = parts(weights)
            logits = X @ own + means @ P + bias
            value, pull = self.output.table_loss(logits, labels, shares)
            value += held[0] * np.square(own).sum() + held[1] * np.square(P).sum()
            pulls = (X.T @ pull + 2 * held[0] * own, means.T @ pull + 2 * held[1] * P, pull.sum(0))
            return float(value), np.concatenate([part.ravel() for part in pulls])

        limits = {"maxiter": 300, "maxcor": 20, "ftol": 1e-9, "gtol": 1e-6}
        found = minimize(loss, np.zeros(ends[-1]), jac=True, method="L-BFGS-B", options=limits)
        own, P, bias = parts(found.x)
        P = P / spread[:, None]
        table = self.vectors @ P
        table[self.met] += self.rarity[:, None] * own
        whole = (table, bias[0] - centre @ P, P)
        return Table(*(torch.from_numpy(self.output.anchored(part)) for part in whole))

    def logits(self, table: Table, rows: Int[Tensor, " R"]) -> Float[Tensor, "R C"]:
        """What a table says of some of the texts."""
        return torch.from_numpy(self.activations[rows.numpy()] @ table.rows.numpy()) + table.bias

    def _shares(self, rows: np.ndarray) -> np.ndarray | None:
        """The weights of these texts as shares of their sum; None where all count the same."""
        return None if self.weights is None else self.weights[rows] / self.weights[rows].sum()
