"""From nothing to the decision in a few steps: the rows that tables and waterfalls share."""

from dataclasses import dataclass

from splade.explanation import Explanation
from splade.report.limits import REMAINDERS

METHODS = {
    "dla": "what each word adds to the logit here",
    "path": "what each word adds on the way from the empty text",
    "leave_one_out": "what removing each word alone takes away",
}
"""What the numbers are, by method."""


@dataclass(frozen=True)
class Sum:
    """Some of a decision under one name."""

    name: str
    amount: float


def remainder(explanation: Explanation, top: int) -> list[Sum]:
    """What comes after the `top` words: the others by side, and the bias."""
    rest = [word.contribution for word in explanation.words[top:]]
    sides = {"for": [v for v in rest if v > 0], "against": [v for v in rest if v <= 0]}
    others = [
        Sum(f"{len(values)} other word{'s'[: len(values) > 1]} {side}", sum(values))
        for side, values in sides.items()
        if values
    ]
    return [*others, Sum(REMAINDERS[explanation.method], explanation.bias)]


def question(explanation: Explanation) -> str:
    """What the numbers speak for. Example: "for positive, not negative" """
    return f"for {explanation.target}" + (f", not {explanation.contrast}" if explanation.contrast else "")
