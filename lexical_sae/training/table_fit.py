"""A table of words, fitted with two ridge penalties: convex, so there is no seed and no learning rate.

    row(w) = own(w) + P m(w)        logits(text) = sum over its words of default activation * row(w) + bias

own and P minimise the loss of the output kind (of classes, a cross-entropy). Own weights of rare words are penalised
less (by their inverse document frequency).
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.optimize import minimize
from torch import Tensor

from lexical_sae.outputs import CLASSES, OutputKind
from lexical_sae.outputs.kind import Targets
from lexical_sae.training.literal_vectors import WordVectors
from lexical_sae.training.table_choice import Penalties

LEAST_SPREAD = 1e-6
LIMITS = {"maxiter": 300, "maxcor": 20, "ftol": 1e-9, "gtol": 1e-6}


@dataclass(frozen=True)
class Table:
    """A fitted table; of classes, class-centred."""

    rows: Float[Tensor, "V C"]
    bias: Float[Tensor, " C"]
    projection: Float[Tensor, "E C"]


@dataclass(frozen=True)
class Weights:
    """What the optimiser found, before it is written out as a row per word."""

    own: Float[ndarray, "M C"]
    """Of the words that occur, beside their rarity."""
    projection: Float[ndarray, "E C"]
    bias: Float[ndarray, " C"]


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
        self.own = scipy.sparse.csr_matrix(activations[:, self.met] @ scipy.sparse.diags(self.rarity))
        self.means = np.asarray(activations @ self.vectors)

    def fit(self, penalties: Penalties, chosen: Bool[Tensor, " T"] | None = None) -> Table:
        """The table of the chosen texts, by default all, with these penalties of own weights and projection."""
        found = self.weights_of(penalties, chosen)
        table = self.vectors @ found.projection
        table[self.met] += self.rarity[:, None] * found.own
        whole = (table, found.bias, found.projection)
        return Table(*(torch.from_numpy(self.output.anchored(part)) for part in whole))

    def weights_of(
        self, penalties: Penalties, chosen: Bool[Tensor, " T"] | None = None, start: Weights | None = None
    ) -> Weights:
        """The same, not written out; a `start` changes nothing but how soon they are found."""
        rows = np.arange(len(self.labels)) if chosen is None else chosen.nonzero().flatten().numpy()
        X, labels, shares = self.own[rows], self.labels[rows], self._shares(rows)
        centre = self.means[rows].mean(0)
        spread = self.means[rows].std(0) + LEAST_SPREAD if penalties.is_even else np.ones_like(centre)
        means = (self.means[rows] - centre) / spread
        X_T = scipy.sparse.csr_matrix(X.T)
        texts = len(labels) if penalties.is_even else 1
        held = (penalties.own / texts, penalties.shared / texts)
        # In steps of the size that each penalty allows: strong ones are found in half as many.
        sizes = tuple((2 * one) ** -0.5 if penalties.is_even else 1.0 for one in held)
        shapes = [(X.shape[1], self.num_labels), (means.shape[1], self.num_labels), (1, self.num_labels)]
        ends = np.cumsum([np.prod(shape) for shape in shapes])

        def parts(weights: ndarray) -> list[ndarray]:
            own, P, bias = (
                part.reshape(shape) for part, shape in zip(np.split(weights, ends[:-1]), shapes, strict=True)
            )
            return [own * sizes[0], P * sizes[1], bias]

        def loss(weights: ndarray) -> tuple[float, ndarray]:
            own, P, bias = parts(weights)
            value, pull = self.output.table_loss(X @ own + means @ P + bias, labels, shares)
            value += held[0] * np.vdot(own, own) + held[1] * np.vdot(P, P)
            of_own, of_P = X_T @ pull + 2 * held[0] * own, means.T @ pull + 2 * held[1] * P
            pulls = (of_own * sizes[0], of_P * sizes[1], pull.sum(0))
            return float(value), np.concatenate([part.ravel() for part in pulls])

        first = np.zeros(ends[-1])
        if start is not None:
            own, P = start.own / sizes[0], start.projection * spread[:, None] / sizes[1]
            begin = (own, P, start.bias + centre @ start.projection)
            first = np.concatenate([part.ravel() for part in begin])
        found = minimize(loss, first, jac=True, method="L-BFGS-B", options=LIMITS)
        own, P, bias = parts(found.x)
        P = P / spread[:, None]
        return Weights(own, P, bias[0] - centre @ P)

    def logits(self, found: Weights, rows: Int[Tensor, " R"]) -> Float[Tensor, "R C"]:
        """What weights say of some of the texts."""
        some = rows.numpy()
        return torch.from_numpy(
            self.output.anchored(self.own[some] @ found.own + self.means[some] @ found.projection + found.bias)
        )

    def _shares(self, rows: ndarray) -> ndarray | None:
        """The weights of these texts as shares of their sum; None where all count the same."""
        return None if self.weights is None else self.weights[rows] / self.weights[rows].sum()


class LeftOut:
    """The logits of texts by tables fitted without them; of each fold, a fit begins where the one before ended."""

    def __init__(self, fitter: TableFitter, folds: Int[Tensor, " T"]) -> None:
        self.fitter, self.folds = fitter, folds
        self._found: dict[int, Weights] = {}

    def __call__(self, penalties: Penalties, rows: Int[Tensor, " R"]) -> Float[Tensor, "R C"]:
        fold = int(self.folds[rows[0]])
        rest = torch.ones(len(self.folds), dtype=torch.bool).index_fill(0, rows, value=False)
        self._found[fold] = self.fitter.weights_of(penalties, rest, self._found.get(fold))
        return self.fitter.logits(self._found[fold], rows)
