"""From nothing to the decision in a few steps: the rows that tables and waterfalls share.

Every view of an explanation takes its words from `listing`, so that all of them name the same ones.
"""

from dataclasses import dataclass

from lexical_sae.explanation import Explanation, WordContribution
from lexical_sae.report.explanation.limits import REMAINDERS
from lexical_sae.report.explanation.removal import pieces_name

METHODS = {
    "dla": "the contribution of each word to the logit",
    "path": "the contribution of each word along the path from the empty text",
    "leave_one_out": "the leave-one-out effect of each word",
}
"""What the numbers are, by method."""

TABLE_BIAS = "bias"
"""The bias of a model with literal words, the same for every text."""


@dataclass(frozen=True)
class Sum:
    """Some of a decision under one name."""

    name: str
    amount: float


@dataclass(frozen=True)
class Listing:
    """What a view shows of an explanation; contributions and amounts sum to what is explained."""

    words: tuple[WordContribution, ...]
    """The strongest, by name."""
    rest: tuple[Sum, ...]
    """The other words by side, word pieces and symbols unless all tokens are listed, and the bias."""
    is_bias_alone: bool
    """Whether nothing at all is active."""


def listing(explanation: Explanation, top: int) -> Listing:
    """The `top` words of an explanation and the sums of everything else."""
    listed = explanation.listed()
    pieces = [Sum(pieces_name(listed.pieces.count), listed.pieces.contribution)] if listed.pieces else []
    is_bias_alone = not listed.words and not pieces
    bias = Sum(TABLE_BIAS if listed.has_defaults or is_bias_alone else REMAINDERS[listed.method], listed.bias)
    return Listing(listed.words[:top], (*_other_words(listed, top), *pieces, bias), is_bias_alone)


def _other_words(explanation: Explanation, top: int) -> list[Sum]:
    rest = [word.contribution for word in explanation.words[top:]]
    sides = {"for": [v for v in rest if v > 0], "against": [v for v in rest if v <= 0]}
    return [
        Sum(f"{len(values)} other word{'s'[: len(values) > 1]} {side}", sum(values))
        for side, values in sides.items()
        if values
    ]


def question(explanation: Explanation) -> str:
    """What the contributions are to. Example: "for positive, not negative" """
    return f"for {explanation.target}" + (f", not {explanation.contrast}" if explanation.contrast else "")
