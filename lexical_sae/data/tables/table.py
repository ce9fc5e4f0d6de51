"""Rows with the place each came from."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lexical_sae.utils.errors import DataError
from lexical_sae.utils.suggest import did_you_mean

MAX_PLACES = 5
MAX_NAMES = 20


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, and where each row was found."""

    source: str
    """The file, or what else the rows came from."""
    columns: Mapping[str, Sequence[object]]
    numbers: Sequence[int]
    """Line (or row) number of each row."""
    is_file: bool = True
    notes: tuple[str, ...] = ()
    """What was decided in reading it, such as its encoding."""

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, row: int) -> str:
        """`reviews.csv:17`, or `train DataFrame row 17`."""
        return f"{self.source}{':' if self.is_file else ' row '}{self.numbers[row]}"

    def column(self, name: str) -> Sequence[object]:
        """One column; an unknown name is an error that lists the columns seen."""
        if name not in self.columns:
            raise DataError(
                f"{self.source} has no column {name!r}{did_you_mean(name, self.columns)} "
                f"Columns seen: {quoted(self.columns) or 'none'}"
            )
        return self.columns[name]

    def with_columns(self, **columns: Sequence[object]) -> "Table":
        """The same rows with columns added or replaced."""
        return replace(self, columns={**self.columns, **columns})

    def take(self, rows: Sequence[int]) -> "Table":
        """The rows at these positions."""
        columns = {name: [values[i] for i in rows] for name, values in self.columns.items()}
        return replace(self, columns=columns, numbers=[self.numbers[i] for i in rows])


def list_places(places: Sequence[str]) -> str:
    """The first few places, and how many more.

    Example: six places -> "a.csv:2, a.csv:3, a.csv:4, a.csv:5, a.csv:6 and 1 more"
    """
    more = len(places) - MAX_PLACES
    return ", ".join(places[:MAX_PLACES]) + (f" and {more} more" if more > 0 else "")


def quoted(names: Iterable[object]) -> str:
    """Names from a file for a message: control characters made visible, long names and long lists cut.

    Example: ["text", "\\x1b[31m"] -> "'text', '\\\\x1b[31m'"
    """
    names = list(names)
    more = len(names) - MAX_NAMES
    return ", ".join(f"{name!r:.60}" for name in names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def refuse_repeated(source: str, columns: Iterable[str]) -> None:
    """An error if two columns have one name."""
    if twice := sorted(name for name, count in Counter(columns).items() if count > 1):
        raise DataError(f"{source} has more than one column named {quoted(twice)}; rename one")


def table_of_dicts(
    source: str, records: Sequence[Mapping[str, object]], numbers: Sequence[int], is_file: bool
) -> Table:
    """One row per record, one column per key that any of them has; what a record lacks is None."""
    names = dict.fromkeys(name for record in records for name in record)
    return Table(source, {name: [record.get(name) for record in records] for name in names}, numbers, is_file)
