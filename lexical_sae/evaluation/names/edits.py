"""The deletion and the substitution test: when the word behind a name is edited, does the name follow?

For the five top-attributed words of each text:
1. *Delete.* The whole word that holds the winning token is masked wherever it stands; the dimension's contribution to
   the predicted class must fall by 80 %.
2. *Follow.* It is swapped for a content word of similar frequency instead; the old contribution must fall by 80 % and
   the new word's own dimension must open.
3. *Shuffled names.* The same claims are held against the edit of another word of the same text.

A name that rests on a special token cannot be deleted, and fails all three. Every share is weighed by |contribution|.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from lexical_sae.data.language import word_form
from lexical_sae.evaluation.intervals import share_interval
from lexical_sae.evaluation.names.model import NamedModel, NamedWord, Probe, Reading, Response, Span
from lexical_sae.evaluation.names.text import SwapWords, replace_word, seeded
from lexical_sae.utils.progress import OnStep, silent

TOP_WORDS = 5
KEPT = 0.2
"""Share of a contribution that may be left when its word is gone."""


@dataclass(frozen=True)
class Rate:
    """A share, weighed by |contribution|, and the number of words that it is over; None over nothing."""

    share: float | None
    count: int
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % confidence interval over texts; None where it is not known."""


@dataclass(frozen=True)
class DeleteScores:
    """How much of the contributions goes when the word goes."""

    passed: Rate
    shuffled: Rate
    """The same when another word of the text goes: what is passed by accident."""
    at_special_tokens: Rate
    """What rests on [CLS], [SEP] and the like, and fails for it."""


@dataclass(frozen=True)
class FollowScores:
    """How much of the contributions goes when the word is swapped, and comes back under the new word's name."""

    passed: Rate
    old_falls: Rate
    new_opens: Rate
    shuffled: Rate


@dataclass(frozen=True)
class Claim:
    """A top-attributed word of a text, and another word of the same text to confuse it with."""

    reading: Reading
    word: NamedWord
    other: Span | None
    """A place with another written word; None in texts without one."""

    @property
    def weight(self) -> float:
        return abs(self.word.contribution)

    def probe(self, text: str) -> Probe:
        """What the word says in an edited text."""
        return Probe(text, self.word.dimension, self.reading.label)

    def falls(self, response: Response) -> bool:
        """Whether at most a fifth of the contribution is left; one that turned to the other side has not gone."""
        return abs(response.contribution) <= KEPT * abs(self.word.contribution)


def weighed(texts: Iterable[Iterable[tuple[float, bool]]]) -> Rate:
    """Share of the weight that passed, given the words of each text.

    Example: a text with the weights 3 (passed) and 1 (not) gives 0.75 of 2; one text alone has no interval.
    """
    listed = [list(words) for words in texts]
    wholes = [sum(weight for weight, _ in words) for words in listed]
    parts = [sum(weight for weight, passed in words if passed) for words in listed]
    count, total = sum(map(len, listed)), sum(wholes)
    return Rate(sum(parts) / total, count, *share_interval(parts, wholes)) if total > 0 else Rate(None, count)


def claims_of(readings: Sequence[Reading], seed: int) -> list[Claim]:
    """The top-attributed words of each text."""
    return [
        Claim(reading, word, _other_place(reading, word, seed))
        for reading in readings
        for word in reading.words[:TOP_WORDS]
        if word.contribution != 0
    ]


def _rate_of(claims: Iterable[Claim], passes: Callable[[Claim], bool]) -> Rate:
    """Share of the claims that pass; they come text by text."""
    by_text = groupby(claims, key=lambda claim: id(claim.reading))
    return weighed([(claim.weight, passes(claim)) for claim in of_text] for _, of_text in by_text)


def _other_place(reading: Reading, word: NamedWord, seed: int) -> Span | None:
    """The place of another top-attributed word, or where those all have one, of any other active word."""

    def written(span: Span) -> str:
        # As edits tell words apart: all negations with an apostrophe are one.
        return word_form(reading.text[slice(*span)])

    own = None if word.span is None else written(word.span)
    for words in (reading.words[:TOP_WORDS], reading.words):
        spans = sorted({w.span for w in words if w.span is not None and written(w.span) != own})
        if spans:
            return spans[int(seeded(seed, reading.text, word.name).integers(len(spans)))]
    return None


def delete_test(model: NamedModel, readings: Sequence[Reading], seed: int, on_step: OnStep = silent) -> DeleteScores:
    """Mask the word behind each top-attributed name and check whether the name goes."""
    claims = claims_of(readings, seed)

    def edit(claim: Claim, span: Span) -> Probe:
        return claim.probe(replace_word(claim.reading.text, span, model.blank))

    answer = _answers(model, (edit(claim, span) for claim in claims for span in _places(claim)), on_step)

    def passes(claim: Claim, span: Span | None) -> bool:
        return claim.word.span is not None and span is not None and claim.falls(answer(edit(claim, span)))

    return DeleteScores(
        passed=_rate_of(claims, lambda claim: passes(claim, claim.word.span)),
        shuffled=_rate_of(filter(_has_control, claims), lambda claim: passes(claim, claim.other)),
        at_special_tokens=_rate_of(claims, lambda claim: claim.word.span is None),
    )


def follow_test(
    model: NamedModel, readings: Sequence[Reading], swaps: SwapWords, seed: int, on_step: OnStep = silent
) -> FollowScores:
    """Swap the word behind each top-attributed name and check whether the name goes and the new word's name comes.

    Words that have no word to be swapped for are left out.
    """
    trials = _Trials(model, claims_of(readings, seed), swaps, on_step)
    return FollowScores(
        passed=trials.rate(lambda claim: trials.old_falls(claim, True) and trials.new_opens(claim, True)),
        old_falls=trials.rate(lambda claim: trials.old_falls(claim, True)),
        new_opens=trials.rate(lambda claim: trials.new_opens(claim, True)),
        shuffled=trials.rate(
            lambda claim: trials.old_falls(claim, False) and trials.new_opens(claim, False), _has_control
        ),
    )


class _Trials:
    """The swapped texts of all claims, and what the model says of them; `own` or the other word's edit."""

    def __init__(self, model: NamedModel, claims: Sequence[Claim], swaps: SwapWords, on_step: OnStep) -> None:
        self.swaps = swaps
        self.edited: dict[tuple[str, Span], tuple[str, str]] = {}
        """Per text and place, the new word and the text with it."""
        for claim in claims:
            for span in _places(claim):
                self._edit(claim.reading.text, span)
        self.claims = [claim for claim in claims if claim.word.span is None or self._is_swapped(claim, claim.word.span)]
        probes = (probe for claim in self.claims for span in _places(claim) for probe in self._probes(claim, span))
        self.answer = _answers(model, probes, on_step)

    def rate(self, passes: Callable[[Claim], bool], counts: Callable[[Claim], bool] = lambda _: True) -> Rate:
        """Share of the claims that count and pass; those at special tokens fail."""
        return _rate_of(filter(counts, self.claims), lambda claim: claim.word.span is not None and passes(claim))

    def old_falls(self, claim: Claim, own: bool) -> bool:
        text = self._text(claim, own)
        return text is not None and claim.falls(self.answer(claim.probe(text)))

    def new_opens(self, claim: Claim, own: bool) -> bool:
        """Whether a dimension of the new word is open and stronger than it was before."""
        text = self._text(claim, own)
        if text is None:
            return False
        # Context may reverse a literal word: then its activation is below zero.
        before = {word.dimension: abs(word.activation) for word in claim.reading.words}
        return any(
            abs(self.answer(Probe(text, dimension, claim.reading.label)).activation) > before.get(dimension, 0.0)
            for dimension in self._new_dimensions(claim)
        )

    def _text(self, claim: Claim, own: bool) -> str | None:
        span = claim.word.span if own else claim.other
        edited = None if span is None else self.edited.get((claim.reading.text, span))
        return edited and edited[1]

    def _probes(self, claim: Claim, span: Span) -> list[Probe]:
        if not self._is_swapped(claim, span):
            return []
        text = self.edited[claim.reading.text, span][1]
        return [claim.probe(text), *(Probe(text, i, claim.reading.label) for i in self._new_dimensions(claim))]

    def _new_dimensions(self, claim: Claim) -> tuple[int, ...]:
        assert claim.word.span is not None
        return self.swaps.dimensions[self.edited[claim.reading.text, claim.word.span][0]]

    def _is_swapped(self, claim: Claim, span: Span) -> bool:
        return (claim.reading.text, span) in self.edited

    def _edit(self, text: str, span: Span) -> None:
        new = self.swaps.choose(text[slice(*span)], text)
        if new is not None:
            self.edited[text, span] = new, replace_word(text, span, new)


def _places(claim: Claim) -> list[Span]:
    """Where the text is edited for a claim: at its own word, and at the other for the control."""
    return [] if claim.word.span is None else [span for span in (claim.word.span, claim.other) if span is not None]


def _has_control(claim: Claim) -> bool:
    return claim.word.span is None or claim.other is not None


def _answers(model: NamedModel, probes: Iterable[Probe], on_step: OnStep) -> Callable[[Probe], Response]:
    asked = list(dict.fromkeys(probes))
    return dict(zip(asked, model.responses(asked, on_step), strict=True)).__getitem__
