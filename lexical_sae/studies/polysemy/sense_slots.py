"""Do the sense slots of a word (VPE) distinguish its senses?

At every mention one slot is picked. Adjusted mutual information (0 is chance, 1 is one slot per sense) and purity (how
often the commonest sense of a slot is right) stand beside the same for senses that were shuffled among the mentions,
and beside clusters of the hidden states, which show what could be told apart without being taught.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score

from lexical_sae.utils.errors import DataError

SHUFFLES = 20


@dataclass(frozen=True)
class SlotSplit:
    """How the slots of one word fall on its senses."""

    word: str
    mentions: int
    senses: int
    slots_used: int
    mutual_information: float
    """Adjusted for chance."""
    mutual_information_shuffled: float
    purity: float
    purity_shuffled: float
    """Of shuffled senses: the share of the majority sense, or slightly more."""
    clusters: float | None
    """Adjusted mutual information of as many clusters of hidden states; None with fewer mentions than slots."""


def measure_slots(
    word: str,
    slots: Int[ndarray, " N"],
    senses: Sequence[str],
    hidden: Float[ndarray, "N D"],
    num_slots: int,
    seed: int = 0,
) -> SlotSplit:
    """Agreement of the slots used at a word's mentions with its senses there."""
    if not len(senses):
        raise DataError(f"there is no mention of {word!r}; give at least one")
    names = np.unique(np.asarray(senses), return_inverse=True)[1]
    random = np.random.default_rng(seed)
    shuffled = [random.permutation(names) for _ in range(SHUFFLES)]
    clusters = None
    if len(names) >= num_slots:
        settings: dict[str, Any] = {"n_init": 4, "random_state": seed}
        fitted = KMeans(num_slots, **settings).fit(hidden)
        clusters = _mutual_information(np.asarray(fitted.labels_), names)
    return SlotSplit(
        word=word,
        mentions=len(names),
        senses=len(set(names.tolist())),
        slots_used=len(set(slots.tolist())),
        mutual_information=_mutual_information(slots, names),
        mutual_information_shuffled=float(np.mean([_mutual_information(slots, other) for other in shuffled])),
        purity=purity(slots, names),
        purity_shuffled=float(np.mean([purity(slots, other) for other in shuffled])),
        clusters=clusters,
    )


def purity(slots: Int[ndarray, " N"], senses: Int[ndarray, " N"]) -> float:
    """Share of mentions whose sense is the majority of their slot.

    Example: slots [0, 0, 0, 1], senses [a, a, b, b] -> 3/4
    """
    hits = sum(int(np.bincount(senses[slots == slot]).max()) for slot in np.unique(slots))
    return hits / len(senses)


def _mutual_information(slots: Int[ndarray, " N"], senses: Int[ndarray, " N"]) -> float:
    # With one slot and one sense the adjusted score would be perfect.
    if len(np.unique(slots)) < 2 or len(np.unique(senses)) < 2:
        return 0.0
    return float(adjusted_mutual_info_score(senses, slots))
