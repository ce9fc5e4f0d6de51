"""A vector for every literal word, from what the pretrained encoder says of it. No label enters.

1. The mean state of the word over all texts in which it stands, those without a label too.
2. Words that are rare or were never met are shrunk towards what a ridge regression predicts from their input
   embedding, and that towards the same of words read alone (`word_prior`).
3. If wanted, vectors that add up: in a text with "dull" all words' states are dull, but a table counts each word by
   itself. So the regression is moved until the vectors of a text's words sum to its mean state; and with unlabelled
   texts, whose many words are met often enough, each word's own vector too.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from lexical_sae.data.batches import TokenizedTexts, length_buckets
from lexical_sae.models.backbone import evaluating
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.literal_words import occurrences
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.literal_reading import USUAL_TOKENS, read_words
from lexical_sae.training.samples import ReadTokens
from lexical_sae.training.tasks import Documents
from lexical_sae.training.unlabelled import WordsInTexts
from lexical_sae.training.word_prior import prior_map
from lexical_sae.utils.progress import OnStep, Step, silent

SHRINK = 3.0
"""A word's mean state counts as much as what its embedding predicts when it was met so many times."""
RIDGE = 10.0
HELD_MAP = 0.1
"""How strongly the regression on embeddings is held where sums are fitted, as a share of their mean square."""
HELD_WORD = 10.0
"""How strongly each word's vector is held there: as much as a text of sixteen tokens pulls it, times this."""
SWEEPS, ENOUGH = 50, 1e-3
"""Steps of conjugate gradients at most, and the share of the remainder at which they end."""


@dataclass(frozen=True)
class WordVectors:
    """A label-blind vector per dimension, and how it follows from an input embedding alone."""

    vectors: Float[Tensor, "V E"]
    from_embedding: Float[Tensor, "D1 E"]
    """For words that were never met; the last row is the bias."""
    counts: Int[Tensor, " V"]
    text_states: Float[Tensor, "T E"] = torch.empty(0, 0)
    """The mean state of each labelled text's tokens, those that were read."""

    def scaled(self) -> "WordVectors":
        """The same with a mean length of one over the words that were met."""
        scale = self.size()
        return replace(self, vectors=self.vectors / scale, from_embedding=self.from_embedding / scale)

    def size(self) -> float:
        """The mean length of the vectors of words that were met: the root of their mean square."""
        return float(self.vectors[self.counts > 0].square().sum(-1).mean().sqrt().clamp(min=1e-6))


def word_vectors(
    model: LexicalSAE, documents: Documents, on_step: OnStep = silent, *, adds_up: bool = False
) -> WordVectors:
    """The vectors of words by the texts of these documents, and by those that stand with them without a label.

    Args:
        model: Its encoder is the pretrained one.
        documents: Their labels are not read.
        on_step: Gets progress.
        adds_up: Whether vectors are fitted to the states of whole texts; with unlabelled texts they always are.
    """
    return vectors_of(model, *read_words_of(model, documents, on_step), adds_up=adds_up)


def read_words_of(
    model: LexicalSAE, documents: Documents, on_step: OnStep = silent
) -> tuple[WordsInTexts, WordsInTexts | None]:
    """What the encoder says of the words of documents, and of the texts without a label if there are any."""

    def read(texts: TokenizedTexts) -> WordsInTexts:
        return words_in_texts(model, texts, documents.most_windows, on_step)

    with evaluating(model):
        labelled = read(documents.texts)
        return labelled, None if documents.unlabelled is None else documents.unlabelled.words(model, read)


@torch.no_grad()
def vectors_of(
    model: LexicalSAE, labelled: WordsInTexts, unlabelled: WordsInTexts | None = None, *, adds_up: bool = False
) -> WordVectors:
    """The vectors that follow from what was read."""
    assert model.literal is not None
    embeddings = model.literal.embeddings(model.backbone.input_embeddings()).double().cpu()
    with evaluating(model):
        prior = prior_map(model, RIDGE)
    return vectors_from(embeddings, prior, labelled, unlabelled, adds_up=adds_up)


def vectors_from(
    embeddings: Float[Tensor, "V D"],
    prior: Float[Tensor, "D1 E"],
    labelled: WordsInTexts,
    unlabelled: WordsInTexts | None = None,
    *,
    adds_up: bool = False,
) -> WordVectors:
    """The same, given the input embedding of every word and what it says of words read alone."""
    every = labelled if unlabelled is None else labelled + unlabelled
    found = _shrunk(every.sums, every.counts, embeddings, prior)
    found = replace(found, text_states=labelled.means)
    if adds_up or unlabelled is not None:
        found = _with_moved_map(found, embeddings, every)
    if unlabelled is not None:
        # Not the labelled ones: their words would carry what is particular to those texts.
        found = replace(found, vectors=_adding_up(found.vectors, unlabelled))
    return found.scaled()


@torch.no_grad()
def words_in_texts(
    model: LexicalSAE, texts: TokenizedTexts, most_windows: int | None, on_step: OnStep = silent
) -> WordsInTexts:
    """What the encoder, as it is, says of the words of these texts."""
    assert model.literal is not None
    device = next(model.parameters()).device
    size, width = len(model.dimensions), model.backbone.encoder_width
    sums = torch.zeros(size, width, dtype=torch.float64)
    counts = torch.zeros(size, dtype=torch.long)
    kept = next(model.parameters()).dtype
    means = torch.zeros(len(texts), width, dtype=kept)
    done = 0
    # Of long texts some windows: means need not see every occurrence. Drawn in the same way every time: no seed.
    generator = torch.Generator().manual_seed(0)
    for rows in length_buckets(texts, 64):
        batch = texts.batch(rows)
        input_ids, mask = batch.input_ids.to(device), batch.attention_mask.to(device)
        tokens = ReadTokens.of(model, input_ids, mask.bool(), most_windows, generator)
        is_read = mask.bool() if tokens.is_read is None else tokens.is_read
        words = model.own_words(input_ids).masked_fill(~is_read, NO_WORD)
        _, _, found = occurrences(words)
        states = model.literal.word_states(tokens.states, input_ids, words != NO_WORD)
        sums.index_add_(0, found.cpu(), states.double().cpu())
        counts += torch.bincount(found.cpu(), minlength=size)
        means[rows] = tokens.mean_states().to(kept).cpu()
        done += len(rows)
        on_step(Step("reading words in the pretrained encoder", done, len(texts)))
    lengths = torch.tensor([len(ids) for ids in texts.ids])
    return WordsInTexts(sums, counts, default_activations(model, texts), means, lengths)


@torch.no_grad()
def default_activations(model: LexicalSAE, texts: TokenizedTexts) -> scipy.sparse.csr_matrix:
    """The activations of the words of each text without context, [T, V]."""
    size = (len(texts), len(model.dimensions))
    rows, words, values = [], [], []
    for some in length_buckets(texts, 256):
        batch = texts.batch(some)
        device = model.gate.closed.device
        mask = batch.attention_mask.bool().to(device)
        read = read_words(model, batch.input_ids.to(device), mask, None, defaults_only=True)
        rows.append(np.array(some)[read.rows.cpu().numpy()])
        words.append(read.words.cpu().numpy())
        values.append(read.defaults.cpu().numpy())
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(words)))
    # Entries of one word of one text are summed.
    return scipy.sparse.csr_matrix(entries, shape=size, dtype=np.float64)


def _shrunk(sums: Tensor, counts: Tensor, embeddings: Tensor, prior: Tensor) -> WordVectors:
    """Centred; what embeddings predict is held to `prior` where texts are few."""
    X = _with_bias(embeddings)
    seen = counts > 0
    times = counts[seen, None].double()
    means, weight = sums[seen] / times, times / (times + SHRINK)
    A = X[seen].T @ (weight * X[seen]) + RIDGE * torch.eye(X.shape[1], dtype=X.dtype)
    from_embedding = torch.linalg.solve(A, X[seen].T @ (weight * means) + RIDGE * prior)
    vectors = X @ from_embedding
    vectors[seen] = (sums[seen] + SHRINK * vectors[seen]) / (times + SHRINK)
    centre = (vectors[seen] * times).sum(0) / times.sum()
    from_embedding[-1] -= centre
    return WordVectors(vectors - centre, from_embedding, counts)


def _with_bias(embeddings: Float[Tensor, "V D"]) -> Float[Tensor, "V D1"]:
    return torch.cat([embeddings, torch.ones_like(embeddings[:, :1])], dim=1)


def _remainder(vectors: Float[Tensor, "V E"], texts: WordsInTexts) -> Float[ndarray, "T E"]:
    """What the vectors of each text's words leave of its state, both as the table counts them, centred."""
    states = (texts.means - texts.means.mean(0)).double() * (USUAL_TOKENS * texts.tokens[:, None]).sqrt()
    left = states.numpy() - texts.activations @ vectors.numpy()
    return left - left.mean(0)


def _with_moved_map(found: WordVectors, embeddings: Float[Tensor, "V D"], texts: WordsInTexts) -> WordVectors:
    """The vectors with the regression on embeddings moved, by a ridge regression, so that they sum to texts' states."""
    X = _with_bias(embeddings)
    sums = torch.from_numpy(texts.activations @ X.numpy())
    left = torch.from_numpy(_remainder(found.vectors, texts))
    held = HELD_MAP * sums.square().sum() / len(sums)
    if len(sums) < sums.shape[1]:
        moved = sums.T @ torch.linalg.solve(sums @ sums.T + held * torch.eye(len(sums)).double(), left)
    else:
        moved = torch.linalg.solve(sums.T @ sums + held * torch.eye(sums.shape[1]).double(), sums.T @ left)
    return replace(found, vectors=found.vectors + X @ moved, from_embedding=found.from_embedding + moved)


def _adding_up(vectors: Float[Tensor, "V E"], texts: WordsInTexts) -> Float[Tensor, "V E"]:
    """The vectors moved, each by itself, by a ridge regression of texts' states on their words."""
    used = np.unique(texts.activations.indices)
    A = texts.activations[:, used]
    moved = vectors.clone()
    moved[used] += torch.from_numpy(ridge_solution(A, _remainder(vectors, texts), HELD_WORD))
    return moved


def ridge_solution(A: scipy.sparse.csr_matrix, left: Float[ndarray, "T E"], held: float) -> Float[ndarray, "W E"]:
    """What minimises `|A x - left|^2 + held |x|^2` over x and a free constant, where `left` has no mean.

    By conjugate gradients scaled by the diagonal, all columns at once.
    """
    A_T = A.T.tocsr()
    scale = 1 / (np.asarray(A.multiply(A).sum(0)).ravel() + held)[:, None]
    x = np.zeros((len(scale), left.shape[1]))
    rest = A_T @ left
    step = scale * rest
    fit = (rest * step).sum(0)
    enough = ENOUGH**2 * fit.clip(min=np.finfo(float).tiny)
    for _ in range(SWEEPS):
        if (fit <= enough).all():
            break
        said = A @ step
        pulled = A_T @ (said - said.mean(0)) + held * step
        along = fit / (step * pulled).sum(0).clip(min=np.finfo(float).tiny)
        x += along * step
        rest -= along * pulled
        scaled = scale * rest
        before, fit = fit, (rest * scaled).sum(0)
        step = scaled + fit / before.clip(min=np.finfo(float).tiny) * step
    return x
