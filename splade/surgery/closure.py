"""Words that may say what a removed word said: its inflections, its neighbours, and words that come along with it.

What comes along is chosen on the texts that are handed in; those must not be the texts that results are reported on.
"""

from collections.abc import Collection, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch.nn.functional import normalize

from splade.models.lexical_sae import LexicalSAE
from splade.surgery.codes import Codes, texts_with

SUFFIXES = (
    "s",
    "es",
    "'s",
    "ed",
    "d",
    "ing",
    "er",
    "ers",
    "ist",
    "ists",
    "ism",
    "ic",
    "ish",
    "ity",
    "ness",
    "ly",
    "al",
    "an",
)
SHORTEST_STEM = 4
"""Shorter words begin too many others: "man" is not in "manner"."""


def inflections(model: LexicalSAE, dimensions: Collection[int]) -> list[int]:
    """Whole words that are one of these with a suffix, or that one of these is with a suffix; themselves left out.

    Example: "islam" -> "islamic"; "terrorist" -> "terror"
    """
    names = {i: model.dimensions[i].letters for i in _open_words(model)}
    asked = {model.dimensions[i].letters for i in dimensions}
    longer = {word + suffix for word in asked if len(word) >= SHORTEST_STEM for suffix in SUFFIXES}
    stems = {word.removesuffix(suffix) for word in asked for suffix in SUFFIXES}
    forms = longer | {stem for stem in stems if len(stem) >= SHORTEST_STEM}
    return [i for i, name in names.items() if name in forms and i not in set(dimensions)]


def embedding_neighbours(model: LexicalSAE, dimensions: Sequence[int], count: int) -> list[int]:
    """The `count` words nearest to each of these in the decoder, by cosine of the centred rows."""
    words = _open_words(model)
    rows = model.dimension_embeddings()
    rows = normalize(rows - rows[words].mean(0), dim=-1)
    asked, found = set(dimensions), set[int]()
    others = torch.tensor([i for i in words if i not in asked], device=rows.device)
    for i in dimensions:
        nearest = (rows[others] @ rows[i]).topk(min(count, len(others))).indices
        found |= set(others[nearest].tolist())
    return sorted(found)


def correlations(codes: Codes, concept: Float[ndarray, " N"]) -> Float[ndarray, " V"]:
    """Correlation of each word's strength with a concept; zero for words that never or always are the same."""
    rows = codes.shape[0]
    centred = concept - concept.mean()
    mean = np.asarray(codes.sum(axis=0)).ravel() / rows
    variance = np.asarray(codes.multiply(codes).sum(axis=0)).ravel() / rows - mean**2
    spread = np.sqrt(np.clip(variance, 0, None) * (centred**2).mean())
    return np.divide(codes.T @ centred / rows, spread, out=np.zeros(codes.shape[1]), where=spread > 1e-12)


def correlated_words(codes: Codes, concept: Float[ndarray, " N"], count: int) -> list[int]:
    """The words that correlate most with a concept in either direction, and more than chance explains.

    Chance: with V words looked at, the greatest of V independent correlations over N texts is about sqrt(2 ln V / N).
    """
    found = np.abs(correlations(codes, concept))
    looked_at = max(2, int((texts_with(codes) > 0).sum()))
    least = np.sqrt(2 * np.log(looked_at) / codes.shape[0])
    order = np.argsort(-found, kind="stable")[:count]
    return [int(i) for i in order if found[i] > least]


def random_words_of_equal_mass(codes: Codes, dimensions: Collection[int], seed: int) -> list[int]:
    """Other words, drawn at random until their strengths over all texts add up to those of the removed ones.

    Words that alone would weigh more than what is missing are passed over, so the mass is met from below, not exceeded.
    """
    mass = np.asarray(codes.sum(axis=0)).ravel()
    missing = float(mass[list(dimensions)].sum())
    others = np.setdiff1d(np.flatnonzero(mass > 0), list(dimensions))
    drawn: list[int] = []
    for i in np.random.default_rng(seed).permutation(others):
        if mass[i] <= missing:
            drawn.append(int(i))
            missing -= float(mass[i])
    return sorted(drawn)


def _open_words(model: LexicalSAE) -> list[int]:
    """Whole words that the model may use."""
    usable: Int[torch.Tensor, " K"] = (model.dimensions.clean_mask & ~model.gate.closed.cpu()).nonzero().flatten()
    return usable.tolist()
