"""What removing words can and cannot do to one decision, proved instead of sampled.

    decision = Decision(word_vectors[active] * activations[:, None], hidden_bias, class_weights, class_bias)
    certify_removals(decision, words)      can any combination of these words change the decision?
    smallest_flip(decision)                the fewest words whose removal changes it
    smallest_sufficient_set(decision)      the fewest words that give it when kept alone

Words are numbered by their place among the K active words of the text. A removed word has an activation of zero, a kept
one its own. The class with the largest logit wins; of equal logits the lowest class, as in `torch.argmax`.

The flow of every proof: a `Decision` and a `Question` about it -> sound lines below the margin over many sets of words
at once (`relaxation`) -> sets that the lines cannot exclude are split (`removals`) or grown word by word (`smallest`)
-> single sets are evaluated. Proofs hold for the numbers of the `Decision` in exact arithmetic and in fp64, whatever
the order of summation. Where a margin is smaller than rounding nothing is proved.
"""

from lexical_sae.mechanistic.minimal_sets.decision import Decision
from lexical_sae.mechanistic.minimal_sets.removals import RemovalCertificate, certify_removals
from lexical_sae.mechanistic.minimal_sets.smallest import (
    SmallestSet,
    smallest_flip,
    smallest_sufficient_set,
)

__all__ = [
    "Decision",
    "RemovalCertificate",
    "SmallestSet",
    "certify_removals",
    "smallest_flip",
    "smallest_sufficient_set",
]
