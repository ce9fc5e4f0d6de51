"""`Explanation`: why a text got its label, as plain frozen data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WordContribution:
    """What one active word said."""

    word: str
    kind: str
    """What the dimension is: a word, a sense of a word, a shape feature."""
    strength: float
    """How active the word is in this text."""
    contribution: float
    """How much it speaks for the predicted label, class-centred: the same for all labels counts as nothing."""


@dataclass(frozen=True)
class Explanation:
    """One prediction and the words behind it.

    `sum of all contributions + bias` is the centred logit of the label, exactly.
    """

    text: str
    label: str
    probability: float
    words: tuple[WordContribution, ...]
    """Every active word, the most telling first."""
    bias: float
    """What the hidden units that are on say by themselves; with them it depends on the input."""
    identity_error: float
    """Relative gap between the logits and their decomposition; rounding, at most 1e-5."""
    tokens_cut: int
    """Tokens at the end of the text that the model did not see."""
