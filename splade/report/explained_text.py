"""What a page needs to show one text with its reasons; `explained_text.html.j2` shows it."""

from typing import Any

from splade.explanation import Explanation
from splade.report.explanation_html import highlighted_pieces
from splade.report.explanation_steps import listing, question
from splade.report.picture import Picture
from splade.report.removal import changes_decision, told_of_decision
from splade.report.waterfall import waterfall

TINTS = 5
"""Shades for the words of a text; the style has a class for each."""


def explained_text(why: Explanation, top: int) -> dict[str, Any]:
    """The text in pieces with their shades, its `top` words, the sums of the others, and the waterfall."""
    listed = listing(why, top)
    named, rest = listed.words, listed.rest
    steps = [f"{word.word} {word.contribution:+.2f}" for word in named] + [f"{s.name} {s.amount:+.2f}" for s in rest]
    told = f"{', '.join(steps)}; together {why.explained:+.2f}"
    return {
        "why": why,
        "question": question(why),
        "pieces": [(piece, tint(piece.share)) for piece in highlighted_pieces(why)],
        "words": named,
        "rest": rest,
        "is_bias_alone": listed.is_bias_alone,
        "waterfall": Picture("What adds up to the decision", waterfall(why, top), told),
        "has_defaults": why.has_defaults,
        # A literal word is read from itself, and its removal takes away its contribution.
        "has_places": not why.has_defaults and any(word.is_expansion is not None for word in named),
        "has_effects": not why.has_defaults and any(word.without is not None for word in named),
        "has_changes": not why.has_defaults and any(changes_decision(word, why) for word in named),
        "decision": told_of_decision(why),
    }


def tint(share: float) -> int:
    """The shade for a share of the strongest score; 0 for none. Example: `0.03 -> 0`, `0.5 -> 3`, `1.0 -> 5`"""
    return min(TINTS, round(share * TINTS + 0.3))
