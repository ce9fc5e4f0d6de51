"""Does a word mean the same in two sentences? Answered by how alike its two codes are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from splade.circuits.sparse_code import SparseCode
from splade.data.senses import ContextPair
from splade.evaluation.bootstrap import BootstrapMeans
from splade.evaluation.intervals import Interval
from splade.evaluation.word_states import codes_of, read_mentions, take_texts
from splade.models.lexical_sae import LexicalSAE
from splade.progress import OnStep, silent


@dataclass(frozen=True)
class ContextReading:
    """Accuracy of telling same from different meanings by the likeness of codes."""

    code: str
    threshold: float
    """Of the cosine, chosen on train pairs."""
    accuracy: Interval
    by_chance: float
    """The same with the answers of the train pairs shuffled when the threshold is chosen."""


def tell_in_context(
    model: LexicalSAE,
    train: Sequence[ContextPair],
    dev: Sequence[ContextPair],
    seed: int = 0,
    on_step: OnStep = silent,
) -> tuple[ContextReading, ...]:
    """Choose thresholds on train pairs and answer dev pairs, from every kind of code."""
    (train_likeness, train_same), (likeness, is_same) = (_likeness(model, some, on_step) for some in (train, dev))
    shuffled = train_same[torch.from_numpy(np.random.default_rng(seed).permutation(len(train_same)))]
    found, means = [], BootstrapMeans(seed=seed)
    for name, values in likeness.items():
        threshold, by_lot = (best_threshold(train_likeness[name], given) for given in (train_same, shuffled))
        means.update(range(len(values)), {name: ((values > threshold) == is_same).double()})
        chance = float(((values > by_lot) == is_same).double().mean())
        found.append(ContextReading(name, threshold, means.share(name), chance))
    return tuple(found)


def _likeness(
    model: LexicalSAE, pairs: Sequence[ContextPair], on_step: OnStep
) -> tuple[dict[str, Float[Tensor, " N"]], Bool[Tensor, " N"]]:
    """The cosine of each pair by code, and the answers; pairs of which the model saw one word alone are left out."""
    states = read_mentions(model, [mention for pair in pairs for mention in pair.mentions], on_step=on_step)
    place = {row: i for i, row in enumerate(states.rows)}
    whole = [i for i in range(len(pairs)) if 2 * i in place and 2 * i + 1 in place]
    if not whole:
        raise ValueError("the model saw both words of no pair: sentences are cut before the word (model.max_length)")
    first, second = (codes_of(model, states.take([place[2 * i + side] for i in whole])) for side in (0, 1))
    answers = torch.tensor([pairs[i].is_same for i in whole])
    return {name: code_cosine(first[name], second[name]) for name in first}, answers


def code_cosine(first: SparseCode, second: SparseCode, rows: int = 256) -> Float[Tensor, " N"]:
    """Cosine of two codes, text by text; zero where one is empty."""
    parts = [range(start, min(start + rows, len(first))) for start in range(0, len(first), rows)]
    found = [cosine_similarity(take_texts(first, part).dense(), take_texts(second, part).dense()) for part in parts]
    return torch.cat(found).double()


def best_threshold(values: Float[Tensor, " N"], answers: Bool[Tensor, " N"]) -> float:
    """The threshold above which saying yes is right most often; between two values, or below all of them.

    Example: values [0.1, 0.4, 0.8] with answers [no, no, yes] -> 0.6
    """
    order = values.argsort()
    ranked, yes = values[order], answers[order]
    # Right with the first k said no: their noes, and the yeses of the others.
    nothing = torch.zeros(1, dtype=torch.long)
    right = torch.cat([nothing, (~yes).cumsum(0)]) + int(yes.sum()) - torch.cat([nothing, yes.cumsum(0)])
    padded = torch.cat([ranked[:1] - 1, ranked, ranked[-1:] + 1])
    middles = (padded[:-1] + padded[1:]) / 2
    # Equal values cannot be told apart: a cut between them is no cut.
    is_cut = torch.cat([torch.tensor([True]), ranked[1:] > ranked[:-1], torch.tensor([True])])
    return float(middles[right.masked_fill(~is_cut, -1).argmax()])
