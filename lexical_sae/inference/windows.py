"""Long texts in overlapping windows, each a text of its own with a decision of its own.

Words are weighed within their window, so contributions of different windows do not add up to one decision, and none is
made here. A model with `model.long_texts: whole` makes one by itself: `explain`.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from transformers import PreTrainedTokenizerBase

from lexical_sae.data.encoding import encode
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.data.words import Span, word_spans
from lexical_sae.inference.explaining import explain
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.report.explanation.shown import ShownExplanation
from lexical_sae.utils.errors import SettingsError

SPARE = 16
"""One of this many tokens is left free: the first word of a window may take more tokens than in the midst of a text."""


class Window(NamedTuple):
    """A part of a text and the explanation of the decision on it."""

    start: int
    """First character of the part in the whole text; places of the explanation count from here."""
    end: int
    """One after the last."""
    explanation: ShownExplanation


def explain_windows(model: LexicalSAE, text: Any, *, overlap: float = 0.25, **question: Any) -> tuple[Window, ...]:
    """The explanations of a text's windows, in reading order; one window where the text fits.

    Windows begin and end between words, so that every word is in a window. A word that alone is longer than the model
    reads is cut, as its explanation notes.

    Args:
        model: The classifier.
        text: One string of any length.
        overlap: Share of its tokens that a window has in common with the next.
        question: The other arguments of `explain`.

    Returns:
        One `Window` per stretch of text, with its explanation.

    Example: `for window in explain_windows(model, novel): print(window.start, window.explanation.label)`
    """
    if not isinstance(text, str):
        raise SettingsError(f"text is {type(text).__name__}; explain_windows takes one string")
    if not 0 <= overlap < 1:
        raise SettingsError(f"overlap is {overlap}; it is a share of a window, at least 0 and below 1")
    clean = repair_text(text)
    spans = list(cut_windows(model.tokenizer, clean, model.window, overlap))
    explanations = explain(model, [clean[start:end] for start, end in spans], **question)
    return tuple(Window(*span, made) for span, made in zip(spans, explanations, strict=True))


def cut_windows(tokenizer: PreTrainedTokenizerBase, text: str, max_length: int, overlap: float) -> Iterator[Span]:
    """First and last character of each window."""
    (encoded,) = encode(tokenizer, [text], add_special_tokens=False)
    offsets = encoded.offsets
    room = max_length - tokenizer.num_special_tokens_to_add()
    words = list(word_spans(text))
    if len(offsets) <= room or len(words) < 2:
        yield 0, len(text)
        return
    room = max(1, room - room // SPARE)
    ends = [end for _, end in offsets]
    # Tokens that end before each word begins: how many tokens lie between two words is a difference of these.
    before = [bisect_right(ends, start) for start, _ in words] + [len(offsets)]
    first = 0
    while True:
        last = _end(before, first, room)
        yield (0 if first == 0 else words[first][0]), (words[last - 1][1] if last < len(words) else len(text))
        if last >= len(words):
            return
        back = bisect_right(before, before[last] - int(room * overlap)) - 1
        first = min(max(first + 1, back), last)
        # The next window must reach further than this one, though a long word may stand in the way.
        while _end(before, first, room) <= last:
            first += 1


def _end(before: Sequence[int], first: int, room: int) -> int:
    """One after the last word of the window that begins with a word; a word alone may be too long."""
    return max(first + 1, bisect_right(before, before[first] + room) - 1)
