"""What an explanation leaves out, in sentences."""

from collections.abc import Sequence

from lexical_sae.explanation import Explanation
from lexical_sae.report.explanation.removal import MARK, is_marked
from lexical_sae.report.printable import with_short_words

REMAINDERS = {
    "dla": "bias (this input)",
    "path": "bias (the empty text)",
    "leave_one_out": "joint remainder",
}
"""What the bias is, by method."""

_ABOUT_BIAS = {
    "dla": "The bias at this input is {bias:+.2f}, {share:.0%} of all contributions. It depends on the hidden units "
    "that the words switch on, so it may hold evidence that no word is credited with.",
    "path": "The bias {bias:+.2f} is the decision on the empty text, {share:.0%} of all contributions; it is the same "
    "for every text.",
    "leave_one_out": "Single removals do not add up to the decision: {bias:+.2f} of it ({share:.0%} of all "
    "contributions) belongs to no single word.",
}


SHOWN_AT_MOST = 5
"""Out-of-vocabulary words that are named, as they are written."""


def limits(explanation: Explanation, mute: Sequence[str] = (), unread: Sequence[str] = ()) -> tuple[str, ...]:
    """What is not explained: what was not read, the bias, the whole text, and where removal does something else.

    `mute` are the out-of-vocabulary words of the text, which have no feature of their own, `unread` those that the
    tokenizer cannot spell.
    """
    found = []
    if unread:
        found.append(f"The tokenizer cannot read {_some(list(dict.fromkeys(unread)))}: no feature stands for that.")
    if mute:
        found.append(_about_oov(list(dict.fromkeys(mute))))
    if explanation.tokens_cut:
        found.append(f"{explanation.tokens_cut} tokens at the end were not read: the text is too long for the model.")
    if explanation.has_defaults:
        return (*found, *_about_context(explanation))
    if not explanation.words:
        return (*found, "No word is active: the bias alone decides, as it would for any such text.")
    found.append(_ABOUT_BIAS[explanation.method].format(bias=explanation.bias, share=explanation.bias_share))
    if explanation.whole_text:
        found.append(f"{explanation.whole_text:+.2f} comes from the text as a whole, not from any single word of it.")
    found += _about_removal(explanation)
    return (*found, "A word's activation depends on the whole text, and that is not analysed here.")


def _about_context(explanation: Explanation) -> list[str]:
    """How much of a decision the table of words makes, and how much context."""
    moved = sum(bool(word.context) for word in explanation.words)
    shifted = (
        f"Context shifts {moved} of {len(explanation.words)} words; {explanation.context_free_share:.0%} of the "
        "contributions are context-free, the same in any text."
        if moved
        else "Every word contributes here what it contributes in any text: context shifts none."
    )
    lines = [
        f"{shifted} Removing a word takes away its contribution, exactly. The bias {explanation.bias:+.2f} is the same "
        "for every text."
    ]
    if any(word.cause for word in explanation.words):
        lines.append("Causes are measured, not proved: without that word, most of the shift is gone.")
    return lines


def _some(words: Sequence[str]) -> str:
    named = ", ".join(f'"{with_short_words(word)}"' for word in words[:SHOWN_AT_MOST])
    return named + (f" and {len(words) - SHOWN_AT_MOST} more" if len(words) > SHOWN_AT_MOST else "")


def _about_oov(words: Sequence[str]) -> str:
    return (
        f"The tokenizer cuts up {_some(words)}, and the model has no feature for such an out-of-vocabulary word: it "
        "acts through the activations of other words, or not at all."
    )


def _about_removal(explanation: Explanation) -> list[str]:
    """Where the effect of removal is not the contribution."""
    if explanation.method == "leave_one_out":
        return []
    changes = explanation.region_changes
    if changes is None:
        return ["The effect of removing each word was not computed; a contribution is not the effect of removal."]
    if changes == 0 and explanation.method == "dla":
        return ["No single removal switches a hidden unit: removing a word takes away exactly its contribution."]
    gap = max(abs(word.contribution + (word.if_removed or 0.0)) for word in explanation.words)
    marked = sum(map(is_marked, explanation.words))
    clearly = f"by more than 10 % for {f'{marked} ({MARK})' if marked else 'none'}"
    return [
        f"{changes} of {len(explanation.words)} single removals switch hidden units. The effect of removal differs "
        f"from the contribution by up to {gap:.2f}, and {clearly}."
    ]
