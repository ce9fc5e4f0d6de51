"""An explanation as a piece of HTML for notebooks: no script, nothing from elsewhere, every string escaped.

Its styles stand in the elements, as a cell has no style sheet; a page with a policy would strip them and shows
`explained_text` instead. Colours are tints over whatever the notebook has behind them, so that they do in light and
dark themes.
"""

from typing import NamedTuple

from splade.explanation import Explanation, SpanContribution
from splade.report.explanation_steps import listing, question
from splade.report.html_templates import templates
from splade.report.removal import changes_decision
from splade.report.shifts import Shift, place_of, shifts_by_place

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
            has_defaults=explanation.has_defaults,
            # A literal word is read from itself, and its removal takes away its contribution.
            has_places=not explanation.has_defaults and any(word.is_expansion is not None for word in listed.words),
            has_effects=not explanation.has_defaults and any(word.without is not None for word in listed.words),
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
