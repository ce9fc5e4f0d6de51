"""Why a text got its label, as plain data.

Explanation                          one prediction and the words behind it, in JSON too
WordContribution, SpanContribution   one active word; one word of the text
Cause, Pieces, InputWarning          what shifts a word; what is summed; why not to rely on the label
Reasons, WordSet                     the fewest words that a decision hangs on
"""

from lexical_sae.explanation.decision import ABSTAIN, FORMAT, Explanation, InputWarning
from lexical_sae.explanation.word_sets import Reasons, WordSet
from lexical_sae.explanation.words import PIECE, WORD, Cause, Pieces, SpanContribution, WordContribution

__all__ = [
    "ABSTAIN",
    "FORMAT",
    "PIECE",
    "WORD",
    "Cause",
    "Explanation",
    "InputWarning",
    "Pieces",
    "Reasons",
    "SpanContribution",
    "WordContribution",
    "WordSet",
]
