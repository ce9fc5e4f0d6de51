"""The context measures of a model, from plain data: rows for the terminal and the report."""

from collections.abc import Mapping
from typing import Any

from lexical_sae.report.interval_text import NOT_MEASURED, is_missing, number_text, share_text

Row = tuple[str, str, str]


def context_figures(title: str, scores: Mapping[str, Any]) -> tuple[str, list[Row]]:
    """Heading and rows of the table of context measures, each beside its control."""
    rows = [
        *main_context_rows(scores),
        *_leakage_rows(scores["leakage"]),
        *_pair_rows(scores["minimal_pairs"], scores["antonyms"]),
    ]
    if scores["skipped"]:
        rows.append(("not measured", NOT_MEASURED, scores["skipped"]))
    return f"Do words mean the same in every text? The {title} on {scores['texts']} texts", rows


def main_context_rows(scores: Mapping[str, Any]) -> list[Row]:
    """The rows that stand beside every accuracy."""
    accuracy, shifts = scores["accuracy"], scores["shifts"]
    references = f"bag of words {_percent(accuracy['bag_of_words'])}, TF-IDF {_percent(accuracy['tfidf'])}"
    share = f"{_percent(shifts['context_share'])} of |contribution|"
    kind = "" if shifts["is_explicit"] else "; defaults are estimated"
    return [
        (
            "context-free accuracy",
            share_text(accuracy["context_free"]),
            f"every word at its default; full {_percent(accuracy['full'])}, {references}",
        ),
        *_points_row(scores["leakage"]),
        (
            "context shifts",
            number_text(shifts["per_text"], 1),
            f"words per text not at their default; none in {_percent(shifts['texts_without'])} of texts; {share}{kind}",
        ),
        *_negation_row(scores["negation"]),
        (
            "independence",
            number_text(scores["independence"]["change"]),
            "change in other words / contribution of the masked word; 0 for a bag of words",
        ),
    ]


def _points_row(leakage: Mapping[str, Any] | None) -> list[Row]:
    if leakage is None:
        return [("label leakage", NOT_MEASURED, "no neutral words")]
    remark = f"from what neutral words activate; shuffled labels: {points_text(leakage['shuffled_labels'])}"
    return [("label leakage", points_text(leakage["points"]), remark)]


def _leakage_rows(leakage: Mapping[str, Any] | None) -> list[Row]:
    if leakage is None:
        return []
    probe, own = _percent(leakage["probe"]), _percent(leakage["own_head"])
    at_defaults = _percent(leakage["own_head_at_defaults"])
    exchanged = number_text(leakage["shuffled_activations"], 3)
    return [
        ("leakage, probe", probe, f"on their presence alone: {_percent(leakage['probe_on_presence'])}"),
        ("leakage, own head", own, f"with these words at their defaults: {at_defaults}"),
        ("leakage in bits", number_text(leakage["bits"], 3), f"of {leakage['label_bits']:.2f}; exchanged: {exchanged}"),
        (
            "neutral words",
            share_text(leakage["contribution_share"]),
            f"of |contribution|, on {leakage['neutral_words']} different words",
        ),
    ]


def _negation_row(negation: Mapping[str, Any] | None) -> list[Row]:
    if negation is None:
        return []
    rates = f"{_percent(negation['negated_positive'])} / {_percent(negation['negated_negative'])}"
    plain = f"{_percent(negation['plain_positive'])} / {_percent(negation['plain_negative'])}"
    remark = f"right of {negation['sentences']} sentences ('not good' / 'not bad'); without 'not': {plain}"
    if negation["dense_positive"]:
        dense = f"{_percent(negation['dense_positive'])} / {_percent(negation['dense_negative'])}"
        remark += f"; dense baseline: {dense}"
    return [("negation", rates, remark)]


def _pair_rows(pairs: Mapping[str, Any] | None, antonyms: Mapping[str, Any] | None) -> list[Row]:
    rows = []
    if antonyms is not None:
        rows.append(("antonyms", share_text(antonyms["reversed"]), "reverse the sign of the contribution when swapped"))
    if pairs is not None:
        beside = f"{number_text(pairs['features_beside_positive'], 1)} and "
        beside += number_text(pairs["features_beside_negative"], 1)
        rows += [
            (
                "minimal pairs",
                number_text(pairs["contribution_change"]),
                "change at the noun / change at the adjective beside it",
            ),
            ("features at the noun", share_text(pairs["features_change"]), f"of pairs change them; active: {beside}"),
        ]
    return rows


def points_text(interval: Mapping[str, Any]) -> str:
    """A difference of shares in percentage points. Example: mean 0.15, from 0.12 to 0.18 -> `15.0 (12.0 to 18.0)`"""
    points = {key: None if interval[key] is None else 100 * interval[key] for key in ("mean", "low", "high")}
    return number_text(points, 1)


def _percent(interval: Mapping[str, Any]) -> str:
    return NOT_MEASURED if is_missing(interval["mean"]) else f"{interval['mean']:.1%}"
