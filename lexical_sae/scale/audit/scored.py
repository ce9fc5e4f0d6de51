"""A scored table in DuckDB: one view of its rows, each with its group, its time and the side that it is on."""

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from lexical_sae.data.tables.table import quoted
from lexical_sae.scale.audit.settings import Asked
from lexical_sae.scale.schema import About, read_about
from lexical_sae.utils.errors import DataError, SavedFileError, SettingsError
from lexical_sae.utils.suggest import did_you_mean

MEMORY = "1GB"
"""What DuckDB may hold; more goes to a temporary folder."""
MOST_THREADS = 8
MOST_GROUPS, MOST_PERIODS = 200, 1000
TIME_NAMES = ("date", "time", "datetime", "timestamp", "created", "created_at", "day", "month")
"""Kept columns of text that are taken for times."""
TIMES = ("DATE", "TIMESTAMP")
"""How the types begin that are times."""


class Scored:
    """The rows to audit and those to compare them with, as the view `rows`; used in a `with` statement.

    Columns besides those of the table: `own` (not of the other table), `is_after` (audited; false for those to compare
    with; null for neither), `grp`, `period` (the begin of it).
    """

    def __init__(self, path: str | Path, asked: Asked) -> None:
        self.asked = asked
        self.notes: list[str] = []
        self._open = ExitStack()
        spill = self._open.enter_context(tempfile.TemporaryDirectory(prefix="lexical-sae-audit-"))
        self.db = duckdb.connect(":memory:", config={"temp_directory": spill, "memory_limit": MEMORY})
        self._open.callback(self.db.close)
        try:
            threads = min(MOST_THREADS, os.cpu_count() or 1)
            self.db.execute(f"set threads={threads}; set preserve_insertion_order=false; set TimeZone='UTC'")
            self.about, columns = self._read(Path(path), "own_rows")
            if asked.against is not None:
                other, others = self._read(Path(asked.against), "other_rows")
                self._note_differences(other)
            self.time = asked.time or self._inferred_time("own_rows", columns)
            sides = [self._side("own_rows", columns, own=True)]
            if asked.against is not None:
                sides.append(self._side("other_rows", others, own=False))  # pyright: ignore[reportPossiblyUnboundVariable]
            self.db.execute(f"create temp view rows as {' union all '.join(sides)}")
            self._check()
        except BaseException:
            self._open.close()
            raise

    def __enter__(self) -> "Scored":
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def table(self, query: str, **values: Any) -> dict[str, Any]:
        """The columns of an answer, as arrays by name; `$name` in the query stands for a value."""
        return self.db.execute(query, values or None).fetchnumpy()

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of an answer."""
        return self.db.execute(query, values or None).fetchall()

    def _read(self, path: Path, name: str) -> tuple[About, dict[str, str]]:
        """What a scored table says about itself, and DuckDB's name of each of its columns."""
        files = scored_files(path)
        about = read_about(files[0])
        if about.explain == "none":
            raise SavedFileError(f"{path} has no words; score its texts again with --explain top or all")
        if path.is_dir() and not _is_finished(path):
            self.notes.append(f"scoring into {path} is not finished; the rows that are there are audited")
        try:
            relation = self.db.read_parquet([str(file) for file in files])
            # DuckDB tells names apart by letters alone, and renames a column that differs in case.
            names = dict(zip(pq.read_schema(files[0]).names, relation.columns, strict=True))
            relation.create_view(name)
        except duckdb.Error as error:
            raise SavedFileError(f"{path} cannot be read ({str(error).splitlines()[0]}); score it again") from error
        return about, names

    def _note_differences(self, other: About) -> None:
        if other.model != self.about.model:
            self.notes.append("the two tables were scored by different models: a change may be of texts or of models")
        if (other.explain, other.top) != (self.about.explain, self.about.top):
            self.notes.append("the two tables list words by other rules (--explain, --top): shares may differ by that")
        if other.dtype != self.about.dtype:
            self.notes.append(
                "the two tables were scored in different precisions (--dtype): few words may differ by that"
            )
        if missing := sorted(set(self.about.labels) ^ set(other.labels)):
            self.notes.append(f"only one of the tables has the classes {quoted(missing)}")

    def _inferred_time(self, view: str, columns: dict[str, str]) -> str | None:
        types = self._types(view)
        kept = [name for name in self.about.kept.values() if name in columns]
        dated = [name for name in kept if types[columns[name]].startswith(TIMES)]
        dated = dated or [name for name in kept if name.casefold() in TIME_NAMES]
        if len(dated) == 1:
            self.notes.append(f"guessed: time column {dated[0]!r}")
            return dated[0]
        if self.asked.needs_time:
            seen = f"; kept columns: {quoted(kept)}" if kept else ", and score with --keep-columns"
            raise SettingsError(f"name the column of the time with --time{seen}")
        return None

    def _types(self, view: str) -> dict[str, str]:
        return {row[0]: str(row[1]) for row in self.db.execute(f"describe {view}").fetchall()}

    def _side(self, view: str, columns: dict[str, str], *, own: bool) -> str:
        """The view's rows with what the questions need of each."""
        at = self._time_of(view, columns) if own else "null::timestamp"
        group = f"coalesce({self._column(columns, self.asked.by)}::varchar, '')" if own and self.asked.by else "''"
        return f"""
            select row_id, source, source_row, label, prediction, probability, probabilities, words, tokens_cut,
                warnings, {str(own).lower()} as own, {group} as grp, {at} as moment,
                date_trunc('{self.asked.every}', {at}) as period, {self._membership(at, own=own)} as is_after
            from {view}"""

    def _membership(self, at: str, *, own: bool) -> str:
        asked = self.asked
        if not own:
            return "false"
        inside = [f"{at} >= {_literal(asked.since)}"] if asked.since else []
        inside += [f"{at} < {_literal(asked.until)}"] if asked.until else []
        if asked.since is None or asked.against is not None:
            return f"case when {' and '.join(inside)} then true end" if inside else "true"
        before = [f"{at} < {_literal(asked.since)}"]
        before += [f"{at} >= {_literal(asked.reference_since)}"] if asked.reference_since else []
        return f"case when {' and '.join(inside)} then true when {' and '.join(before)} then false end"

    def _time_of(self, view: str, columns: dict[str, str]) -> str:
        if self.time is None:
            return "null::timestamp"
        column = self._column(columns, self.time)
        kind = self._types(view)[columns[self.time]]
        if not kind.startswith((*TIMES, "VARCHAR")):
            raise DataError(f"column {self.time!r} is {kind}; the time needs dates, such as 2026-01-31")
        return f"try_cast({column} as timestamp)"

    def _column(self, columns: dict[str, str], name: str | None) -> str:
        if name not in columns:
            raise DataError(
                f"the table has no column {name!r}{did_you_mean(name or '', columns)} Columns seen: {quoted(columns)}; "
                "others of the input are there if they were scored with --keep-columns"
            )
        return '"' + columns[name].replace('"', '""') + '"'

    def _check(self) -> None:
        """Refuse what cannot be answered, and say which rows are left out."""
        after, before, timeless, timed, groups, periods = self.rows(
            "select count(*) filter (is_after), count(*) filter (not is_after), "
            "count(*) filter (own and moment is null), count(moment), count(distinct grp), count(distinct period) "
            "from rows"
        )[0]
        if self.time is not None and not timed:
            if self.asked.time or self.asked.needs_time:
                raise DataError(
                    f"no row has a date in column {self.time!r}; give a column of dates, such as 2026-01-31"
                )
            self.notes.append(f"column {self.time!r} holds no dates, so nothing is shown over time")
            self.time = None
        if not after:
            raise DataError("no row is in the period that is audited; give another --since or --until")
        if self.asked.compares and not before:
            raise DataError("there is no row to compare with; give an earlier --reference-since, or --against")
        if groups > MOST_GROUPS:
            raise DataError(f"column {self.asked.by!r} has {groups} values, and up to {MOST_GROUPS} groups are shown")
        if periods > MOST_PERIODS:
            raise DataError(f"there are {periods} periods, and up to {MOST_PERIODS} are shown; give a longer --every")
        if self.time is not None and timeless:
            self.notes.append(f"{timeless} rows have no date in column {self.time!r}; they are in no period")


def scored_files(path: Path) -> Sequence[Path]:
    """The files of a scored table: those of its folder, or the one that was given."""
    files = [path] if path.is_file() else sorted(path.glob("part-*.parquet"))
    if not files:
        raise SavedFileError(f"{path} holds no scored rows; give a folder that `lexical-sae score` wrote")
    return files


def _is_finished(folder: Path) -> bool:
    """Whether the folder's totals are written down."""
    try:
        return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["totals"] is not None
    except FileNotFoundError:
        return True  # a copy of the Parquet files alone
    except (ValueError, KeyError, TypeError) as error:
        raise SavedFileError(f"{folder / 'manifest.json'} is damaged; score again") from error


def _literal(at: datetime | None) -> str:
    assert at is not None
    return f"timestamp '{at.isoformat(sep=' ')}'"
