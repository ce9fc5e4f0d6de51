"""What an explanation leaves out, in sentences."""

from collections.abc import Sequence

from splade.explanation import Explanation
from splade.report.removal import MARK, is_marked

REMAINDERS = {
    "dla": "bias at this input",
    "path": "decision on the empty text",
    "leave_one_out": "no single removal shows it",
}
"""What the bias is, by method."""

_ABOUT_BIAS = {
    "dla": "The bias at this input is {bias:+.2f}, {share:.0%} of all that is said. It depends on the hidden units "
    "that the words switch on, so it may hold evidence that no word is credited with.",
    "path": "The bias {bias:+.2f} is the decision on the empty text, {share:.0%} of all that is said; it is the same "
    "for every text.",
    "leave_one_out": "Single removals do not add up to the decision: {bias:+.2f} of it ({share:.0%} of all that is "
    "said) belongs to no word alone.",
}


SHOWN_AT_MOST = 5
"""Words that open nothing, as they are written."""


def limits(explanation: Explanation, mute: Sequence[str] = ()) -> tuple[str, ...]:
    """What is not explained: what was not read, the bias, the whole text, and where removal does something else.

    `mute` are words of the text that can open nothing themselves.
    """
    found = []
    if mute:
        found.append(_about_mute(list(dict.fromkeys(mute))))
    if explanation.tokens_cut:
        found.append(f"{explanation.tokens_cut} tokens at the end were not read: the text is too long for the model.")
    if explanation.has_defaults:
        return (*found, *_about_context(explanation))
    if not explanation.words:
        return (*found, "No word is active: the bias alone decides, as it would for any such text.")
    found.append(_ABOUT_BIAS[explanation.method].format(bias=explanation.bias, share=explanation.bias_share))
    if explanation.whole_text:
        found.append(
            f"{explanation.whole_text:+.2f} was read from the text as a whole and stands at none of its words."
        )
    found += _about_removal(explanation)
    return (*found, "How strong a word is depends on the whole text, and that is not taken apart here.")


def _about_context(explanation: Explanation) -> list[str]:
    """How much of a decision the table of words makes, and how much context."""
    moved = sum(bool(word.context) for word in explanation.words)
    shifted = f"context shifts {moved} of {len(explanation.words)} words" if moved else "context shifts no word"
    lines = [
        f"{explanation.context_free_share:.0%} of this is context-free: what the words say in any text; {shifted}. "
        f"Removing a word takes away its contribution, exactly. The bias {explanation.bias:+.2f} is the same for every "
        "text."
    ]
    if any(word.cause for word in explanation.words):
        lines.append("Causes are measured, not proved: without that word, most of the shift is gone.")
    return lines


def _about_mute(words: Sequence[str]) -> str:
    named = ", ".join(f'"{word}"' for word in words[:SHOWN_AT_MOST])
    more = f" and {len(words) - SHOWN_AT_MOST} more" if len(words) > SHOWN_AT_MOST else ""
    return (
        f"The tokenizer cuts up {named}{more}, and the model was given no name for such a word: what is said there "
        "acts through the strengths of other words, or not at all."
    )


def _about_removal(explanation: Explanation) -> list[str]:
    """Where what a word contributes is not what its removal takes away."""
    if explanation.method == "leave_one_out":
        return []
    changes = explanation.region_changes
    if changes is None:
        return ["What would happen without each word was not asked for; a contribution is not the effect of removal."]
    if changes == 0 and explanation.method == "dla":
        return ["No single removal switches a hidden unit: what a word contributes is what its removal takes away."]
    gap = max(abs(word.contribution - (word.without or 0.0)) for word in explanation.words)
    marked = sum(map(is_marked, explanation.words))
    clearly = f"clearly (over a tenth) for {f'{marked} ({MARK})' if marked else 'none'}"
    return [
        f"{changes} of {len(explanation.words)} single removals switch hidden units. What removals take away differs "
        f"from what the words say by up to {gap:.2f}, and {clearly}."
    ]
