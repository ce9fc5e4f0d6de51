"""An explanation as a piece of HTML for notebooks: no script, nothing from elsewhere, every string escaped.

Its styles stand in the elements, as a cell has no style sheet; a page with a policy would strip them and shows
`explained_text` instead. Colours are tints over whatever the notebook has behind them, so that they do in light and
dark themes.
"""

from typing import Any, NamedTuple

from lexical_sae.explanation import Explanation, SpanContribution
from lexical_sae.report.charts.svg import Picture
from lexical_sae.report.charts.waterfall import waterfall
from lexical_sae.report.explanation.removal import changes_decision, notes_on_decision
from lexical_sae.report.explanation.shifts import Shift, place_of, shifts_by_place
from lexical_sae.report.explanation.steps import listing, question
from lexical_sae.report.html_templates import templates

FOR, AGAINST = "51, 102, 204", "217, 72, 15"
"""Blue and orange, told apart by nearly every eye."""


def explanation_html(explanation: Explanation, top: int = 12) -> str:
    """The label, the text with its words tinted by score, and the table of words that sum to the decision."""
    listed = listing(explanation, top)
    longest = max((abs(word.contribution) for word in listed.words), default=0.0) or 1.0
    return (
        templates()
        .get_template("explanation.html.j2")
        .render(
            why=explanation,
            question=question(explanation),
            pieces=highlighted_pieces(explanation),
            words=listed.words,
            rest=listed.rest,
            longest=longest,
            has_shifts=explanation.has_shifts,
            # A literal word is read from itself, and its removal takes away its contribution.
            has_places=not explanation.has_defaults and any(word.is_expansion is not None for word in listed.words),
            has_effects=not explanation.has_defaults and any(word.if_removed is not None for word in listed.words),
            colour=lambda amount: FOR if amount > 0 else AGAINST,
            changes_decision=changes_decision,
        )
    )


class HighlightedPiece(NamedTuple):
    """A part of the text: between words, or a word."""

    text: str
    span: SpanContribution | None = None
    share: float = 0.0
    """|score| of the word as a share of the strongest."""
    shift: Shift | None = None


def highlighted_pieces(explanation: Explanation) -> list[HighlightedPiece]:
    """The text in order: plain pieces, and words with their score and what context does to them."""
    spans, shifts = explanation.spans or (), shifts_by_place(explanation)
    strongest = max((abs(span.score) for span in spans), default=0.0) or 1.0
    pieces: list[HighlightedPiece] = []
    at = 0
    for span in spans:
        written = explanation.text[span.start : span.end]
        pieces.append(HighlightedPiece(explanation.text[at : span.start]))
        pieces.append(HighlightedPiece(written, span, abs(span.score) / strongest, shifts.get(place_of(span))))
        at = span.end
    return [piece for piece in [*pieces, HighlightedPiece(explanation.text[at:])] if piece.text]


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
        "has_shifts": why.has_shifts,
        # A literal word is read from itself, and its removal takes away its contribution.
        "has_places": not why.has_defaults and any(word.is_expansion is not None for word in named),
        "has_effects": not why.has_defaults and any(word.if_removed is not None for word in named),
        "has_changes": not why.has_defaults and any(changes_decision(word, why) for word in named),
        "decision": notes_on_decision(why),
    }


def tint(share: float) -> int:
    """The shade for a share of the strongest score; 0 for none. Example: `0.03 -> 0`, `0.5 -> 3`, `1.0 -> 5`"""
    return min(TINTS, round(share * TINTS + 0.3))
