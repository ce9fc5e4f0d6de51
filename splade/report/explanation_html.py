"""An explanation as a piece of HTML for notebooks: no script, nothing from elsewhere, every string escaped.

Its styles stand in the elements, as a cell has no style sheet; a page with a policy would strip them and shows
`explained_text` instead. Colours are tints over whatever the notebook has behind them, so that they do in light and
dark themes.
"""

from splade.explanation import Explanation, SpanContribution
from splade.report.explanation_steps import listing, question
from splade.report.html_templates import templates
from splade.report.removal import changes_decision

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
            has_places=any(word.is_expansion is not None for word in listed.words),
            has_effects=any(word.without is not None for word in listed.words),
            colour=lambda amount: FOR if amount > 0 else AGAINST,
            changes_decision=changes_decision,
        )
    )


def highlighted_pieces(explanation: Explanation) -> list[tuple[str, SpanContribution | None, float]]:
    """The text in order: plain pieces, and words with their score and its share of the strongest."""
    spans = explanation.spans or ()
    strongest = max((abs(span.score) for span in spans), default=0.0) or 1.0
    pieces: list[tuple[str, SpanContribution | None, float]] = []
    at = 0
    for span in spans:
        pieces.append((explanation.text[at : span.start], None, 0.0))
        pieces.append((explanation.text[span.start : span.end], span, abs(span.score) / strongest))
        at = span.end
    return [piece for piece in [*pieces, (explanation.text[at:], None, 0.0)] if piece[0]]
