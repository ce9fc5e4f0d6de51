"""All questions put to a scored table, in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lexical_sae.scale.audit import inputs, words
from lexical_sae.scale.audit.drift import Drift, drift
from lexical_sae.scale.audit.labels import Labels, suspected_labels
from lexical_sae.scale.audit.scored import Scored
from lexical_sae.scale.audit.settings import Asked
from lexical_sae.scale.audit.words import Columns
from lexical_sae.utils.progress import OnStep, Step, silent

AUDITED, DATED = "is_after", "own and period is not null"
"""Which rows of the view `rows` are asked about."""


@dataclass(frozen=True)
class Cut:
    """The rows cut into groups, or into periods."""

    column: str
    decisions: Columns
    unusual: Columns
    words: Columns


@dataclass(frozen=True)
class Audit:
    """What was asked, and what was found."""

    asked: Asked
    source: str
    model: str
    labels: tuple[str, ...]
    top: int | None
    """How many words of a text are listed at most; None for all."""
    rows: int
    first: datetime | None
    """Time of the first audited row; None without times."""
    last: datetime | None
    decisions: Columns
    unusual: Columns
    words: Columns
    groups: Cut | None
    periods: Cut | None
    drift: Drift | None
    suspects: Labels | None
    """None where no row has a label."""
    notes: Sequence[str]


def audit(path: str | Path, asked: Asked | None = None, on_step: OnStep = silent) -> Audit:
    """What a scored table says.

    Args:
        path: A folder that `score` wrote, or one of its files.
        asked: Which rows, cut how and compared with what.
        on_step: Gets progress.
    """
    asked = asked or Asked()
    with Scored(path, asked) as scored:
        questions = 4 + (asked.by is not None) + (scored.time is not None) + asked.compares
        done = 0

        def step(name: str) -> None:
            nonlocal done
            done += 1
            on_step(Step(name, done, questions))

        words.count_words(scored)
        step("counting words")
        rows, first, last = scored.rows(f"select count(*), min(moment), max(moment) from rows where {AUDITED}")[0]
        strongest = words.class_words(scored)
        decisions, unusual = (ask(scored, "own", AUDITED) for ask in (inputs.decisions, inputs.unusual))
        step("words of each class")
        groups = periods = changes = None
        if asked.by is not None:
            groups = _cut(scored, asked.by, "grp", AUDITED, words.group_words(scored))
            step("groups")
        if scored.time is not None:
            periods = _cut(scored, scored.time, "period", DATED, words.words_over_time(scored))
            step("periods")
        if asked.compares:
            changes = drift(scored, asked.level)
            step("drift")
        suspects = suspected_labels(scored)
        step("labels")
        found = Audit(
            asked, str(path), scored.about.model, scored.about.labels, scored.about.top, rows, first, last,
            decisions, unusual, strongest, groups, periods, changes, suspects, tuple(scored.notes),
        )  # fmt: skip
    step("done")
    return found


def _cut(scored: Scored, column: str, by: str, where: str, of_words: Columns) -> Cut:
    return Cut(column, inputs.decisions(scored, by, where), inputs.unusual(scored, by, where), of_words)
