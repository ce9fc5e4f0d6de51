"""What a lower precision of the encoder changes in explanations, measured on some of the texts to be scored."""

from collections.abc import Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple

from lexical_sae.explanation import Explanation, WordContribution
from lexical_sae.inference.explaining import explain_batch
from lexical_sae.inference.question import Question
from lexical_sae.inference.reading import answers
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.cost import timed
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.precision import EncoderType, keeping_casts

SAMPLE = 256
"""Texts that are read in both precisions."""


class PrecisionEffect(NamedTuple):
    """Explanations in one precision against those in single precision."""

    dtype: EncoderType
    texts: int
    labels: int
    """Texts with another label."""
    words: int
    """Texts with other active words."""
    shifts: int
    """Words that context shifts, in either precision."""
    moved: int
    """Of these, words that it shifts in one of them only."""
    usual: float
    """Median change of the contribution of the others, in logits."""
    largest: float
    """The greatest."""
    speed: float
    """Processor time in single precision, as a multiple of that in this one."""

    @classmethod
    def of(cls, model: LexicalSAE, texts: Sequence[str], dtype: EncoderType, batch_size: int = 32) -> "PrecisionEffect":
        """The effect of a precision on the explanations of these texts; the model keeps the precision that it had."""
        exact, before = _explained(model, texts, "float32", batch_size)
        other, after = _explained(model, texts, dtype, batch_size)
        pairs = list(zip(exact, other, strict=True))
        same = [(_by_name(a), _by_name(b)) for a, b in pairs if a.label == b.label]
        common = list(chain.from_iterable(((a[name], b[name]) for name in a.keys() & b.keys()) for a, b in same))
        shifted = [(a, b) for a, b in common if a.context or b.context]
        moved = [bool(a.context) != bool(b.context) for a, b in shifted]
        stayed = [pair for pair, is_moved in zip(shifted, moved, strict=True) if not is_moved]
        # Words without a default have no shifts: all of them may change.
        compared = stayed if any(why.has_defaults for why in exact) else common
        changes = [abs(a.contribution - b.contribution) for a, b in compared]
        return cls(
            dtype,
            len(texts),
            sum(a.label != b.label for a, b in pairs),
            sum(_by_name(a).keys() != _by_name(b).keys() for a, b in pairs),
            len(shifted),
            sum(moved),
            median(changes) if changes else 0.0,
            max(changes, default=0.0),
            before / max(after, 1e-9),
        )

    def __str__(self) -> str:
        shifts = f"{self.moved} of {self.shifts} shifts by context come or go; " if self.shifts else ""
        return (
            f"{self.dtype} against float32, on the first {self.texts} texts: {self.labels} other labels, {self.words} "
            f"texts with other words; {shifts}other contributions change by {self.usual:.3f} logits as a rule, "
            f"{self.largest:.3f} at most; {self.speed:.1f} times as fast"
        )


def _explained(
    model: LexicalSAE, texts: Sequence[str], dtype: EncoderType, batch_size: int
) -> tuple[Sequence[Explanation], float]:
    if not model.asks_encoder:
        raise SettingsError("this model decides by its table alone and asks no encoder; leave --dtype out")
    question = Question.of(model, None, None, "dla", effects=False, places=False, words_only=True)
    had, model.backbone.encodes_in = model.backbone.encodes_in, dtype
    try:
        with keeping_casts(next(model.parameters()).device):
            return timed(lambda: list(answers(model, texts, batch_size, lambda read: explain_batch(question, read))))
    finally:
        model.backbone.encodes_in = had


def _by_name(why: Explanation) -> dict[str, WordContribution]:
    return {word.word: word for word in why.words}
