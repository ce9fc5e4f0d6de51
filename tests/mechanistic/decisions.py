"""Small decisions to prove things about, and the answers by trying every subset."""

from collections.abc import Iterable
from itertools import product

import numpy as np
import torch
from hypothesis import strategies as st

from lexical_sae.mechanistic.minimal_sets import Decision


def random_decision(seed: int, words: int, hidden: int = 6, classes: int = 2, scale: float = 1.0) -> Decision:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return scale * torch.randn(shape, generator=generator, dtype=torch.float64)

    return Decision(normal(words, hidden), normal(hidden), normal(classes, hidden), normal(classes))


@st.composite
def decisions(draw, most_words: int = 8):
    """Decisions of many shapes; now and then one with a strong class bias, that removals rarely change."""
    shape = draw(st.integers(0, most_words)), draw(st.integers(1, 9)), draw(st.integers(2, 4))
    decision = random_decision(draw(st.integers(0, 10_000)), *shape)
    decision.class_bias[0] += draw(st.sampled_from([0.0, 2.0, 8.0]))
    return decision


@st.composite
def tied_decisions(draw, most_words: int = 7):
    """Decisions of small integers, so that equal logits are common and every evaluation is exact."""
    K, H, C = draw(st.integers(0, most_words)), draw(st.integers(1, 3)), draw(st.integers(2, 3))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    shapes = [(K, H), (H,), (C, H), (C,)]
    return Decision(*(torch.randint(-2, 3, shape, generator=generator).double() for shape in shapes))


def decision_that_needs(size: int, others: int) -> Decision:
    """A decision that changes only when all of the first `size` words go; removing fewer of them changes no logit.

    The hidden unit `1 - (number of them that are kept)` is on only when none is kept. The other words do nothing.
    """
    terms = torch.cat([-torch.ones(size, 1), torch.zeros(others, 1)])
    return Decision(terms, torch.ones(1), torch.tensor([[0.0], [1.0]]), torch.tensor([0.5, 0.0]))


def logits_of(decision: Decision, kept: np.ndarray) -> np.ndarray:
    """The head written out again, for one set of words or many, given as masks."""
    terms, hidden_bias, readout, class_bias = (
        part.numpy() for part in (decision.word_terms, decision.hidden_bias, decision.readout, decision.class_bias)
    )
    return np.maximum(hidden_bias + kept.astype(float) @ terms, 0) @ readout.T + class_bias


def label_when_removed(decision: Decision, words: Iterable[int]) -> int:
    return int(logits_of(decision, ~mask(decision, words)).argmax())


def label_when_alone(decision: Decision, words: Iterable[int]) -> int:
    return int(logits_of(decision, mask(decision, words)).argmax())


def mask(decision: Decision, words: Iterable[int]) -> np.ndarray:
    return np.isin(np.arange(decision.num_words), list(words))


def all_subsets(decision: Decision, words: Iterable[int]) -> np.ndarray:
    """Every subset of the words, as masks."""
    choices = [(False, True) if chosen else (False,) for chosen in mask(decision, words)]
    return np.array(list(product(*choices)), dtype=bool)


def margins_by_subset(decision: Decision, words: Iterable[int]) -> np.ndarray:
    """Margin of the winner over every class, for every subset of the words being removed."""
    logits = logits_of(decision, ~all_subsets(decision, words))
    return logits[:, decision.winner, None] - logits


def flips(decision: Decision, words: Iterable[int]) -> bool:
    """Whether some subset of the words, removed, changes the decision."""
    labels = logits_of(decision, ~all_subsets(decision, words)).argmax(-1)
    return bool((labels != decision.winner).any())


def smallest_size(decision: Decision, labels: Iterable[int], *, kept_alone: bool = False) -> int | None:
    """Size of the smallest set that, removed or kept alone, makes one of the labels win; none if no set does."""
    chosen = all_subsets(decision, range(decision.num_words))
    winners = logits_of(decision, chosen if kept_alone else ~chosen).argmax(-1)
    sizes = chosen.sum(-1)[np.isin(winners, list(labels))]
    return int(sizes.min()) if len(sizes) else None
