"""A study of a removal for people: the table of methods, and the page around it. Plain data in, nothing computed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group

from lexical_sae.report.charts.leakage import leakage_sentence, leakage_svg
from lexical_sae.report.charts.svg import Picture
from lexical_sae.report.interval_text import number_text, share_text
from lexical_sae.report.page import html_document
from lexical_sae.report.tables import FigureTable, TablesPage, tables_view

Data = Mapping[str, Any]
COLUMNS = ("removal", "worst FPR gap", "accuracy", "concept read", "swap: change", "swap: other label", "changed")
LIMITS = (
    "Zeroing closes a dimension, exactly and for every text; the encoder still reads the word, and other words may say "
    "what it said. The concept is gone only as far as the probes fail, and a probe that fails proves nothing about "
    "probes that were not tried.",
    "The worst gap is the greatest of several noisy gaps: compare it between rows, not with zero. Words, thresholds "
    "and erasures were chosen on train and validation; every figure is from test.",
    "LEACE and the projection of the means are fitted to the concept's labels, may make activations negative, and are "
    "not in the saved model: they are baselines. What they promise holds for the train texts; with fewer texts than "
    "words it need not hold for others.",
)


@dataclass(frozen=True)
class StudyFiles:
    """Names of files beside the page, for its links; None for what was not written."""

    certificate: str | None = None
    lexicon: str | None = None


def method_rows(methods: Data) -> list[tuple[str, ...]]:
    """A row per removal, a column per measure, as text."""
    return [(name, *_measures(found)) for name, found in methods.items()]


def study_view(results: Data) -> Group:
    """The study in the terminal."""
    tables = [FigureTable(name, COLUMNS, method_rows(methods)) for name, methods in _sets(results).items()]
    return tables_view(TablesPage("", summary(results), tables, LIMITS))


def summary(results: Data) -> list[str]:
    """What was removed and why, in sentences."""
    words = ", ".join(results["words"]) or "none"
    lines = [f"Words removed: {words} ({'as given' if results['words_given'] else 'chosen on validation'})."]
    if choice := results["choice"]:
        lines.append(f"Choice: {choice['verdict']}.")
        lines += [f"On test, {name}: {_pair(found)}." for name, found in choice["on_test"].items()]
        if not results["words"]:
            lines.append(_measured_anyway(results))
        if sets := choice["random_sets"]:
            gap, accuracy = (sum(one[key] for one in sets) / len(sets) for key in ("gap", "accuracy"))
            lines.append(f"{len(sets)} random sets of equal mass: gap {gap:.3f}, accuracy {accuracy:.1%} on average.")
    first = next(iter(results["methods"].values()))
    if small := [group["name"] for group in first["audit"]["groups"] if group["is_too_small"]]:
        lines.append(f"Too few texts to say anything: {', '.join(small)}.")
    return lines


def _measured_anyway(results: Data) -> str:
    """What the table shows although nothing is removed."""
    measured = ", ".join(results["measured_words"])
    correlates = f"correlates with {results['concept']} on train beyond chance"
    if not measured:
        return f"No word is removed, and none {correlates}: only LEACE and the projection of the means are measured."
    return (
        "No word is removed, and no edited model is written. Suppression (zeroing) and LEACE are measured all the "
        f"same, for what {correlates}: {measured}."
    )


def study_html(title: str, results: Data, files: StudyFiles = StudyFiles()) -> str:
    """The study as one HTML document that stands alone: no script, nothing from elsewhere, every string escaped."""
    probes = results["ceilings"]
    return html_document(
        "surgery.html.j2",
        title,
        summary=summary(results),
        columns=COLUMNS,
        sets={name: method_rows(methods) for name, methods in _sets(results).items()},
        picture=Picture("Leakage", leakage_svg(probes), leakage_sentence(probes)),
        groups=_group_rows(results["methods"]),
        suspects=results["suspects"],
        unlisted=results.get("suspect_pieces", 0),  # older studies lack it
        files=files,
        limits=LIMITS,
    )


def _sets(results: Data) -> dict[str, Data]:
    """The removals on every set of texts, the test texts first."""
    return {f"{results['data']} (test)": results["methods"], **results["others"]}


def _group_rows(methods: Data) -> list[tuple[str, ...]]:
    """Each group before anything is removed."""
    names = ("fpr", "fpr_gap_background", "fpr_gap_overall", "equalised_odds", "subgroup_auc", "bpsn_auc", "bnsp_auc")
    rows = []
    for group in next(iter(methods.values()))["audit"]["groups"]:
        figures = [_plain(group["figures"].get(name)) for name in names]
        cells = ["too few texts", *[""] * (len(names) - 1)] if group["is_too_small"] else figures
        rows.append((group["name"], str(group["texts"]), *cells))
    return rows


def _measures(found: Data) -> tuple[str, ...]:
    leakage, swap = found.get("leakage"), found.get("swap")
    read = None if leakage is None else {**leakage, "mean": leakage["accuracy"]}
    return (
        _plain(found["audit"]["worst_fpr_gap"]),
        share_text(found["audit"]["accuracy"]),
        share_text(read),
        _plain(swap and swap["change"]),
        share_text(swap and swap["flipped"]),
        f"{found['changed']:.1%}",
    )


def _pair(found: Data) -> str:
    return f"gap {_plain(found['gap'])}, accuracy {share_text(found['accuracy'])}"


def _plain(interval: Data | None) -> str:
    return number_text(interval, 3)
