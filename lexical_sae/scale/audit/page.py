"""An audit for people: the page, and a summary for the terminal."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from lexical_sae.report.sections import Section, SectionsPage
from lexical_sae.report.tables import AnyCell, Cell, FigureTable
from lexical_sae.scale.audit.audit import Audit, Cut
from lexical_sae.scale.audit.charts import decision_charts, period_name, word_charts
from lexical_sae.scale.audit.drift import Drift
from lexical_sae.scale.audit.labels import Labels
from lexical_sae.scale.audit.words import Columns

MOST_CLASSES, MOST_GROUPS, MOST_WORDS, MOST_CHANGES, MOST_ROWS = 12, 6, 12, 40, 25
"""What the page shows at most; the CSVs have more."""
WORDS = (
    "“Per text” is the mean contribution over all texts of the class, zero where the word is not listed; “listed in” "
    "the share of those texts; “when listed” the mean where it is. Brackets: 95 % confidence intervals."
)
LIMITS = (
    "Intervals and tests take texts for independent; copies of one text make both too sure.",
    "A contribution is to the class that the model decided for, so these words drive decisions, right or wrong ones.",
)
COLUMNS = ("word", "per text", "listed in", "when listed")


def audit_page(found: Audit) -> SectionsPage:
    """The page."""
    count = len(found.decisions["prediction"])
    more = f" The {MOST_CLASSES} most frequent of {count} classes." if count > MOST_CLASSES else ""
    sections = [Section("Words of each class", WORDS + more, pairs=_class_pairs(found))]
    if found.groups is not None:
        sections.append(_group_section(found, found.groups))
    if found.periods is not None:
        sections.append(_time_section(found, found.periods))
    if found.drift is not None:
        sections.append(_drift_section(found, found.drift))
    sections.append(_unusual_section(found))
    if found.suspects is not None:
        sections.append(_label_section(found.suspects))
    limits = [*LIMITS]
    if found.top is not None:
        limits.append(
            f"The table lists the {found.top} strongest words of each text. A word that is present but weaker than "
            "those counts as not listed; score with --explain all to count it."
        )
    return SectionsPage("Audit", _summary(found), _tiles(found), sections, limits)


def terminal_tables(found: Audit, words: int = 5) -> list[FigureTable]:
    """The most important of the page."""
    tables = [
        FigureTable(
            f"{name}: {texts:,} texts", (COLUMNS[0], COLUMNS[1], "±", *COLUMNS[2:]), _brief(found.words, chosen)
        )
        for name, texts, chosen in _strongest(found, words)
    ]
    if found.drift is not None:
        tables.append(_brief_changes(found.drift, 10))
    if len(found.unusual["kind"]):
        tables.append(_shares_table("Unusual texts", "kind", found.unusual))
    if found.suspects is not None:
        tables.append(_pairs_table(found.suspects, 5))
    return tables


def headline(found: Audit) -> str:
    """What was audited, in a line."""
    span = f", {found.first:%Y-%m-%d} to {found.last:%Y-%m-%d}" if found.first and found.last else ""
    return f"{found.rows:,} texts{span}, scored by model {found.model[:12]}"


def _summary(found: Audit) -> list[str]:
    return [f"{found.source}: {headline(found)}.", *(f"{note[0].upper()}{note[1:]}." for note in found.notes)]


def _tiles(found: Audit) -> list[tuple[str, str, str]]:
    tiles = [("texts", f"{found.rows:,}", "")]
    order = np.argsort(-found.decisions["share"])[:3]
    tiles += [
        (found.decisions["prediction"][i], f"{found.decisions['share'][i]:.1%}", "of the decisions") for i in order
    ]
    odd = [share for kind, share in zip(found.unusual["kind"], found.unusual["share"], strict=True) if kind == "any"]
    tiles.append(("unusual texts", f"{odd[0] if odd else 0:.1%}", "with a warning"))
    if found.drift is not None:
        remark = f"at a false discovery rate of {found.asked.level:.0%}, in {found.drift.tests:,} tests"
        tiles.append(("changes", f"{found.drift.found:,}", remark))
    if found.suspects is not None:
        remark = f"of {found.suspects.known:,} that can be judged"
        tiles.append(("labels suspected", f"{found.suspects.suspected:,}", remark))
    return tiles


def _classes(found: Audit) -> list[tuple[str, int]]:
    """The classes that are shown, the most frequent first, with their texts."""
    order = np.argsort(-found.decisions["count"], kind="stable")[:MOST_CLASSES]
    return [(str(found.decisions["prediction"][i]), int(found.decisions["count"][i])) for i in order]


def _strongest(found: Audit, count: int, sign: int = 1) -> Iterator[tuple[str, int, list[int]]]:
    """Per class its words that contribute most to it, or against it: their places."""
    words = found.words
    for name, texts in _classes(found):
        mine = np.flatnonzero((words["prediction"] == name) & (sign * words["per_text"] > 0))
        yield name, texts, mine[np.argsort(-sign * words["per_text"][mine], kind="stable")][:count].tolist()


def _class_pairs(found: Audit) -> list[tuple[str, FigureTable, FigureTable]]:
    sides = zip(_strongest(found, MOST_WORDS), _strongest(found, MOST_WORDS, -1), strict=True)
    return [
        (
            f"{name}: {texts:,} texts",
            FigureTable("contribute to it", COLUMNS, _word_rows(found.words, ours)),
            FigureTable("contribute against it", COLUMNS, _word_rows(found.words, theirs)),
        )
        for (name, texts, ours), (_, _, theirs) in sides
    ]


def _word_rows(words: Columns, places: Sequence[int]) -> list[tuple[AnyCell, ...]]:
    return [
        (str(words["word"][i]), _signed(words, "per_text", i), _share(words, i), _signed(words, "mean", i))
        for i in places
    ]


def _brief(words: Columns, places: Sequence[int]) -> list[tuple[AnyCell, ...]]:
    """With half the confidence interval of what counts most: a terminal has no room for every interval."""
    return [
        (
            str(words["word"][i]),
            Cell(f"{words['per_text'][i]:+.3f}", "for" if words["per_text"][i] > 0 else "against"),
            Cell(f"{words['per_text_high'][i] - words['per_text'][i]:.3f}", "quiet"),
            f"{words['share'][i]:.1%}",
            f"{words['mean'][i]:+.3f}",
        )
        for i in places
    ]


def _signed(columns: Columns, name: str, i: int) -> Cell:
    value, low, high = (columns[f"{name}{end}"][i] for end in ("", "_low", "_high"))
    limits = "" if np.isnan(low) else f" ({low:+.3f} to {high:+.3f})"
    return Cell(f"{value:+.3f}{limits}", "for" if value > 0 else "against")


def _share(columns: Columns, i: int) -> str:
    return f"{columns['share'][i]:.1%} ({columns['share_low'][i]:.1%} to {columns['share_high'][i]:.1%})"


def _shares_table(title: str, name: str, columns: Columns) -> FigureTable:
    order = np.argsort(-columns["share"], kind="stable")
    rows = [(str(columns[name][i]), f"{columns['count'][i]:,}", _share(columns, i)) for i in order.tolist()]
    return FigureTable(title, (name, "texts", "share"), rows)


def _crossed(
    title: str,
    columns: Columns,
    down: str,
    across: str,
    names: Sequence[str],
    cell: Callable[[int], AnyCell],
    note: str = "",
) -> FigureTable:
    """A table with a row for each value of `down` and a column for each of the names."""
    at = {(str(d), str(a)): i for i, (d, a) in enumerate(zip(columns[down], columns[across], strict=True))}
    rows = [
        (row or "(empty)", *(cell(at[row, name]) if (row, name) in at else "–" for name in names))
        for row in dict.fromkeys(row for row, _ in at)
    ]
    return FigureTable(title, ("", *(name or "(empty)" for name in names)), rows, note)


def _group_section(found: Audit, cut: Cut) -> Section:
    of = dict(zip(map(str, cut.decisions["grp"]), cut.decisions["texts"].tolist(), strict=True))
    groups = sorted(of, key=lambda name: -of[name])[:MOST_GROUPS]
    classes = [name for name, _ in _classes(found)]
    shown = np.isin(cut.decisions["grp"].astype(str), groups)
    mine = {name: values[shown] for name, values in cut.decisions.items()}
    tables = [_crossed("Decisions", mine, "grp", "prediction", classes, lambda i: _share(mine, i))]
    for name, _, places in _strongest(found, MOST_WORDS):
        wanted = [str(found.words["word"][i]) for i in places]
        here = np.flatnonzero((cut.words["prediction"] == name) & np.isin(cut.words["word"].astype(str), wanted))
        here = here[np.argsort([wanted.index(cut.words["word"][i]) for i in here], kind="stable")]
        words = {column: values[here] for column, values in cut.words.items()}
        cell = partial(_signed, words, "per_text")
        tables.append(_crossed(f"{name}: contribution per text", words, "word", "grp", groups, cell))
    more = f" The {MOST_GROUPS} largest of {len(of)} groups." if len(of) > MOST_GROUPS else ""
    return Section(f"By {cut.column}", f"A dash: no text of the group lists the word.{more}", tables=tables)


def _time_section(found: Audit, cut: Cut) -> Section:
    classes = [name for name, _ in _classes(found)]
    charts = [*decision_charts(cut, classes, found.asked.every), *word_charts(cut, classes, found.asked.every)]
    note = f"By {found.asked.every} of {cut.column}, over the whole table. Upright lines: 95 % confidence intervals."
    return Section("Over time", note, charts)


def _drift_section(found: Audit, drift: Drift) -> Section:
    asked = found.asked
    with_what = asked.against or f"the texts before {asked.since:%Y-%m-%d}"
    note = (
        f"{drift.after:,} texts beside {drift.before:,} of {with_what}. Named are changes at a false discovery rate of "
        f"{asked.level:.0%} (Fisher's exact tests of shares and of contributions, Benjamini-Yekutieli)."
    )
    rows = [
        (
            Cell(f"{drift.shares['name'][i]}", "strong" if drift.shares["is_found"][i] else "plain"),
            str(drift.shares["kind"][i]),
            f"{drift.shares['before'][i]:.1%}",
            f"{drift.shares['after'][i]:.1%}",
            _q(drift.shares["q_value"][i])[2:],
            "changed" if drift.shares["is_found"][i] else "",
        )
        for i in range(len(drift.shares["name"]))
    ]
    shares = FigureTable("Decisions and warnings", ("", "kind", "before", "now", "q-value", ""), rows, left=2)
    return Section("Drift", note, tables=[shares, _change_table(drift, MOST_CHANGES)])


def _change_table(drift: Drift, most: int) -> FigureTable:
    words = drift.words
    rows = [
        (
            *_changed(drift, i),
            f"{_shares(drift, i)} ({_q(words['share_q_value'][i])})",
            f"{_means(drift, i)} ({_q(words['mean_q_value'][i])})",
        )
        for i in _found(drift)[:most]
    ]
    columns = ("word", "class", "change per text", "listed in", "when listed")
    return FigureTable(_changes_title(drift, most), columns, rows, "In brackets: q-values of the two tests.", left=2)


def _brief_changes(drift: Drift, most: int) -> FigureTable:
    """For the terminal, with the smaller of the q-values."""
    words = drift.words
    rows = [
        (*_changed(drift, i), _shares(drift, i), _means(drift, i), f"{smaller:.0e}")
        for i in _found(drift)[:most]
        for smaller in [min(words["share_q_value"][i], words["mean_q_value"][i])]
    ]
    columns = ("word", "class", "per text", "listed in", "when listed", "q")
    return FigureTable(_changes_title(drift, most), columns, rows, left=2)


def _found(drift: Drift) -> list[int]:
    return np.flatnonzero(drift.words["is_found"]).tolist()


def _changes_title(drift: Drift, most: int) -> str:
    count = len(_found(drift))
    return "Words that changed" + (f", of {count:,} the {most} that changed most" if count > most else "")


def _changed(drift: Drift, i: int) -> tuple[AnyCell, ...]:
    change = drift.words["change"][i]
    cell = Cell(f"{change:+.3f}", "for" if change > 0 else "against")
    return str(drift.words["word"][i]), str(drift.words["prediction"][i]), cell


def _shares(drift: Drift, i: int) -> str:
    return f"{drift.words['share_before'][i]:.1%} → {drift.words['share_after'][i]:.1%}"


def _means(drift: Drift, i: int) -> str:
    return f"{_mean(drift.words['mean_before'][i])} → {_mean(drift.words['mean_after'][i])}"


def _q(value: float) -> str:
    return "q 1" if value > 0.995 else f"q {value:.2g}"


def _mean(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:+.2f}"


def _unusual_section(found: Audit) -> Section:
    note = "Texts with a warning of the model (any), and those that were not read to their end (cut)."
    tables = [_shares_table("All texts", "kind", found.unusual)]
    kinds = [str(kind) for kind in found.unusual["kind"]]
    if found.groups is not None and kinds:
        unusual = found.groups.unusual
        order = sorted(range(len(unusual["grp"])), key=lambda i: (-unusual["texts"][i], unusual["grp"][i]))
        mine = {name: values[order] for name, values in unusual.items()}
        tables.append(_crossed(f"By {found.groups.column}", mine, "grp", "kind", kinds, lambda i: _share(mine, i)))
    if found.periods is not None and kinds:
        unusual = found.periods.unusual
        named = {**unusual, "period": np.array([period_name(p, found.asked.every) for p in unusual["period"]])}
        table = _crossed(f"By {found.asked.every}", named, "period", "kind", kinds, lambda i: _share(named, i))
        tables.append(table)
    return Section("Unusual texts", note, tables=tables)


def _label_section(labels: Labels) -> Section:
    unknown = f" {labels.unknown:,} labels are no class of the model and were not judged." if labels.unknown else ""
    note = (
        f"{labels.disagree:,} of {labels.known:,} labels differ from the decision. Suspected are the "
        f"{labels.suspected:,} where the model is at least as sure as it usually is of that class.{unknown} A model "
        "that learnt these labels finds fewer of the wrong ones."
    )
    rows: list[Sequence[Any]] = [
        (
            f"{row.source.rpartition('/')[2]}:{row.source_row}",
            row.label,
            f"{row.probability_of_label:.1%}",
            row.prediction,
            f"{row.probability:.1%}",
            ", ".join(f"{word} {contribution:+.2f}" for word, contribution in row.words),
        )
        for row in labels.rows[:MOST_ROWS]
    ]
    columns = ("row", "label", "its probability", "decision", "its probability", "words for the decision")
    doubtful = FigureTable("The most doubtful rows", columns, rows, left=len(columns))
    tables = [_pairs_table(labels, MOST_CHANGES), doubtful]
    return Section("Labels", note, tables=tables)


def _pairs_table(labels: Labels, most: int) -> FigureTable:
    rows = [(label, decision, f"{count:,}") for label, decision, count in labels.pairs[:most]]
    return FigureTable("Suspected labels", ("label", "decision", "texts"), rows, left=2)
