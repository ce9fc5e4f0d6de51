"""Word in context: does a word mean the same in two sentences? By the cosine of its two codes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from lexical_sae.data.sources.senses import ContextPair
from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.studies.polysemy.word_states import codes_of, read_mentions, take_texts
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, silent


@dataclass(frozen=True)
class ContextReading:
    """Accuracy of same or different meaning, by the cosine of codes."""

    code: str
    threshold: float
    """Of the cosine, chosen on train pairs."""
    accuracy: Interval
    by_chance: float
    """The same, with the threshold chosen on shuffled train answers."""


def read_in_context(
    model: LexicalSAE,
    train: Sequence[ContextPair],
    dev: Sequence[ContextPair],
    seed: int = 0,
    on_step: OnStep = silent,
) -> tuple[ContextReading, ...]:
    """Accuracy on dev pairs for every kind of code, with thresholds chosen on train pairs."""
    (train_cosine, train_same), (cosine, is_same) = (_similarities(model, some, on_step) for some in (train, dev))
    shuffled = train_same[torch.from_numpy(np.random.default_rng(seed).permutation(len(train_same)))]
    found, means = [], BootstrapMeans(seed=seed)
    for name, values in cosine.items():
        threshold, at_random = (best_threshold(train_cosine[name], given) for given in (train_same, shuffled))
        means.update(range(len(values)), {name: ((values > threshold) == is_same).double()})
        chance = float(((values > at_random) == is_same).double().mean())
        found.append(ContextReading(name, threshold, means.share(name), chance))
    return tuple(found)


def _similarities(
    model: LexicalSAE, pairs: Sequence[ContextPair], on_step: OnStep
) -> tuple[dict[str, Float[Tensor, " N"]], Bool[Tensor, " N"]]:
    """The cosine of each pair by code, and the answers; pairs cut at the length limit are left out."""
    states = read_mentions(model, [mention for pair in pairs for mention in pair.mentions], on_step=on_step)
    place = {row: i for i, row in enumerate(states.rows)}
    whole = [i for i in range(len(pairs)) if 2 * i in place and 2 * i + 1 in place]
    if not whole:
        raise DataError("the model saw both words of no pair: sentences are cut before the word (model.max_length)")
    first, second = (codes_of(model, states.take([place[2 * i + side] for i in whole])) for side in (0, 1))
    answers = torch.tensor([pairs[i].is_same for i in whole])
    return {name: code_cosine(first[name], second[name]) for name in first}, answers


def code_cosine(first: SparseCode, second: SparseCode, rows: int = 256) -> Float[Tensor, " N"]:
    """Cosine of two codes, text by text; zero where one is empty."""
    parts = [range(start, min(start + rows, len(first))) for start in range(0, len(first), rows)]
    found = [cosine_similarity(take_texts(first, part).dense(), take_texts(second, part).dense()) for part in parts]
    return torch.cat(found).double()


def best_threshold(values: Float[Tensor, " N"], answers: Bool[Tensor, " N"]) -> float:
    """The threshold on the cosine with the highest accuracy; between two values, or below all of them.

    Example: values [0.1, 0.4, 0.8] with answers [no, no, yes] -> 0.6
    """
    order = values.argsort()
    ranked, yes = values[order], answers[order]
    # Correct with the first k answered no: their noes, and the yeses of the others.
    nothing = torch.zeros(1, dtype=torch.long)
    right = torch.cat([nothing, (~yes).cumsum(0)]) + int(yes.sum()) - torch.cat([nothing, yes.cumsum(0)])
    padded = torch.cat([ranked[:1] - 1, ranked, ranked[-1:] + 1])
    middles = (padded[:-1] + padded[1:]) / 2
    # Equal values cannot be separated.
    is_cut = torch.cat([torch.tensor([True]), ranked[1:] > ranked[:-1], torch.tensor([True])])
    return float(middles[right.masked_fill(~is_cut, -1).argmax()])
