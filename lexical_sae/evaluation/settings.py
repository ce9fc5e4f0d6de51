"""How much an evaluation measures."""

from dataclasses import dataclass

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Circuit sizes to try, as shares of a text's active words."""
REMOVED_WORDS = (1, 3, 5, 10)
"""Numbers of words to remove."""


@dataclass(frozen=True)
class EvaluationSettings:
    """How much is measured."""

    fractions: tuple[float, ...] = FRACTIONS
    """Circuit sizes, as shares of a text's active words."""
    circuit_fraction: float = 0.1
    """Size of the circuits that are compared between classes."""
    removed_words: tuple[int, ...] = REMOVED_WORDS
    sample_texts: int = 2000
    """Texts kept for the probes and the out-of-distribution check."""
    edited_texts: int = 200
    layer_texts: int = 100
    ungated_texts: int = 200
    explainer_texts: int = 10
    """Texts on which attribution methods are compared; 0 skips the comparison."""
    explainer_tokens: int = 256
    """Longest text in that comparison: the methods read a text some hundred times."""
    batch_size: int = 32
    seed: int = 0
