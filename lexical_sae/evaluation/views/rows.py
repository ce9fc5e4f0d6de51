"""Figures of several views: named rows with a remark each, over texts or over the words of sentences."""

from lexical_sae.evaluation.metrics.completeness import CompletenessResult
from lexical_sae.evaluation.metrics.removability import RemovabilityResult
from lexical_sae.evaluation.metrics.separation import SeparationResult
from lexical_sae.evaluation.metrics.verification import Verification
from lexical_sae.report.interval_text import number_text, share_text

Rows = list[tuple[str, str, str]]
"""Name, value and remark of each figure."""
ORDERS = {"direct": "contributions", "leave_one_out": "leave-one-out", "random": "random words"}
"""What chooses the words, by its key in `evaluation.json`."""


def check_rows(check: Verification, at: str, what: str) -> Rows:
    """The identity and how far contributions are from effects, "in" texts or "at" words."""
    beyond = check.texts_beyond_tolerance
    return [
        (
            "sums to the logit",
            f"{at} every {what}" if not beyond else f"not {at} {beyond} {what}s",
            f"worst gap {check.worst_relative_error:.0e} of the contributions; 1e-05 is allowed",
        ),
        ("same sign", share_text(check.same_sign), "of words have a leave-one-out effect of their contribution's sign"),
        (
            "difference",
            share_text(check.effect_error),
            "of contributions from leave-one-out effects, relative",
        ),
    ]


def circuit_rows(completeness: CompletenessResult) -> Rows:
    """What the strongest words alone decide, by their share of a text's words."""
    empty = ("no words", share_text(completeness.empty.agreement), "the bias alone")
    return [
        empty,
        *(
            (
                f"{size.fraction:.0%} of the words",
                share_text(size.circuit.agreement),
                f"{size.words.mean:.1f} words; random words: {share_text(size.random.agreement, limits=False)}",
            )
            for size in completeness.sizes
        ),
    ]


def removal_rows(removability: RemovabilityResult) -> Rows:
    """How many labels change without the top-attributed words."""
    rows = [
        (
            "without the top word" if rate.words == 1 else f"without the top {rate.words}",
            share_text(direct),
            f"by leave-one-out: {share_text(exact, limits=False)}; random words: {share_text(random, limits=False)}",
        )
        for rate in removability.removed
        for direct, exact, random in ([rate.orders[key] for key in ORDERS],)
    ]
    return [*rows, ("without all words", share_text(removability.everything), "")]


def separation_rows(separation: SeparationResult, kind: str, kinds: str) -> Rows:
    """How far apart the words of classes, or of tags, are; nothing of fewer than two."""
    rows: Rows = []
    if separation.cosine is not None:
        chance = separation.cosine_by_chance
        beside = "" if chance is None else f"; {kinds} at random: {chance:.2f}"
        rows.append(("separation", number_text(separation.cosine, 2), f"of the {kinds}' words, 0 to 1{beside}"))
    if separation.jaccard is not None:
        rows.append(("overlap", number_text(separation.jaccard, 2), f"of circuits within a {kind} minus across"))
    return rows


def word_count(count: int) -> str:
    """Example: `1 -> "1 word"`"""
    return "1 word" if count == 1 else f"{count} words"
