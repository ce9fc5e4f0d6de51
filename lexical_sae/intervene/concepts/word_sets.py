"""Words that may carry what a removed word carried: inflections, lexical neighbours, correlated words.

Correlated words are chosen on the texts given; results must be reported on others.
"""

from collections.abc import Collection, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch.nn.functional import normalize

from lexical_sae.intervene.concepts.word_matrix import Codes, texts_with
from lexical_sae.models.assembly import dimension_embeddings
from lexical_sae.models.lexical_sae import LexicalSAE

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
    """Whole words that differ from one of these by a suffix, in either direction; without these themselves.

    Example: "islam" -> "islamic"; "terrorist" -> "terror"
    """
    names = {i: model.dimensions[i].letters for i in _usable_words(model)}
    given = {model.dimensions[i].letters for i in dimensions}
    longer = {word + suffix for word in given if len(word) >= SHORTEST_STEM for suffix in SUFFIXES}
    stems = {word.removesuffix(suffix) for word in given for suffix in SUFFIXES}
    forms = longer | {stem for stem in stems if len(stem) >= SHORTEST_STEM}
    return [i for i, name in names.items() if name in forms and i not in set(dimensions)]


def embedding_neighbours(model: LexicalSAE, dimensions: Sequence[int], count: int) -> list[int]:
    """The `count` words nearest to each of these in the decoder, by cosine of the centred rows."""
    words = _usable_words(model)
    rows = dimension_embeddings(model)
    rows = normalize(rows - rows[words].mean(0), dim=-1)
    given, found = set(dimensions), set[int]()
    others = torch.tensor([i for i in words if i not in given], device=rows.device)
    for i in dimensions:
        nearest = (rows[others] @ rows[i]).topk(min(count, len(others))).indices
        found |= set(others[nearest].tolist())
    return sorted(found)


def correlations(codes: Codes, concept: Float[ndarray, " N"]) -> Float[ndarray, " V"]:
    """Correlation of each word's activation with a concept; zero for words whose activation is constant."""
    rows = codes.shape[0]
    centered = concept - concept.mean()
    mean = np.asarray(codes.sum(axis=0)).ravel() / rows
    variance = np.asarray(codes.multiply(codes).sum(axis=0)).ravel() / rows - mean**2
    spread = np.sqrt(np.clip(variance, 0, None) * (centered**2).mean())
    return np.divide(codes.T @ centered / rows, spread, out=np.zeros(codes.shape[1]), where=spread > 1e-12)


def correlated_words(codes: Codes, concept: Float[ndarray, " N"], count: int) -> list[int]:
    """The words that correlate most with a concept in either direction, beyond chance.

    Chance: the greatest of V independent correlations over N texts is about sqrt(2 ln V / N).
    """
    found = np.abs(correlations(codes, concept))
    active = max(2, int((texts_with(codes) > 0).sum()))
    least = np.sqrt(2 * np.log(active) / codes.shape[0])
    order = np.argsort(-found, kind="stable")[:count]
    return [int(i) for i in order if found[i] > least]


def random_words_of_equal_mass(codes: Codes, dimensions: Collection[int], seed: int) -> list[int]:
    """Other words, sampled at random until their total activation over all texts matches that of the removed ones.

    Words that would exceed the rest of the mass are skipped, so the mass is approached from below.
    """
    mass = np.asarray(codes.sum(axis=0)).ravel()
    missing = float(mass[list(dimensions)].sum())
    others = np.setdiff1d(np.flatnonzero(mass > 0), list(dimensions))
    sampled: list[int] = []
    for i in np.random.default_rng(seed).permutation(others):
        if mass[i] <= missing:
            sampled.append(int(i))
            missing -= float(mass[i])
    return sorted(sampled)


def _usable_words(model: LexicalSAE) -> list[int]:
    """Whole words that the model may use."""
    usable: Int[torch.Tensor, " K"] = (model.dimensions.clean_mask & ~model.gate.closed.cpu()).nonzero().flatten()
    return usable.tolist()
