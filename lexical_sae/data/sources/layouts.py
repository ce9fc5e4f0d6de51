"""Folder layouts of the sentiment, topic and intent sets: official files -> tables with the columns the hub has."""

import re
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lexical_sae.data.tables.columns import IDENTITY_PREFIX
from lexical_sae.data.tables.decoding import read_text
from lexical_sae.data.tables.formats import read_table
from lexical_sae.data.tables.table import Table
from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class Tables:
    """The splits a source holds, before any row is looked at."""

    train: Table
    validation: Table | None = None
    test: Table | None = None
    notes: tuple[str, ...] = ()

    def all(self) -> list[Table]:
        """The tables there are."""
        return [table for table in (self.train, self.validation, self.test) if table is not None]


def find_file(folder: Path, *names: str) -> Path:
    """The first of these files that the folder has, plain or `.gz`."""
    found = find_optional(folder, *names)
    if found is None:
        held = ", ".join(sorted(path.name for path in folder.iterdir())[:20]) or "nothing"
        raise FileNotFoundError(f"{folder} has no {' or '.join(names)} (plain or .gz); it holds {held}")
    return found


def find_optional(folder: Path, *names: str) -> Path | None:
    """Like `find_file`, or None."""
    candidates = (folder / (name + ending) for name in names for ending in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def open_sst2(folder: Path) -> Tables:
    """GLUE `train.tsv` and `dev.tsv`; dev is the test, because GLUE's own test has no labels."""
    return Tables(read_table(find_file(folder, "train.tsv")), test=read_table(find_file(folder, "dev.tsv")))


def open_ag_news(folder: Path) -> Tables:
    """`train.csv` and `test.csv` without header: class 1-4, title, description."""
    columns = ("class", "title", "description")
    train = find_file(folder, "train.csv", "train_partial.csv")
    notes = (f"{train.name} is a part of the official train split",) if "partial" in train.name else ()
    tables = [read_table(path, columns) for path in (train, find_file(folder, "test.csv"))]
    tables = [_from_one(table).with_columns(text=_joined(table, "title", "description")) for table in tables]
    return Tables(tables[0], test=tables[1], notes=notes)


def open_yelp(folder: Path) -> Tables:
    """`train.csv`, `test.csv` without header: class 1-2, text; or `dev.csv`, `test.csv` with stars in `label2`."""
    if not find_optional(folder, "train.csv") and find_optional(folder, "dev.csv"):
        return _open_yelp_stars(folder)
    tables = [_from_one(read_table(find_file(folder, name), ("class", "text"))) for name in ("train.csv", "test.csv")]
    return Tables(tables[0], test=tables[1])


def _open_yelp_stars(folder: Path) -> Tables:
    dev, test = (_polarity_of_stars(read_table(find_file(folder, name))) for name in ("dev.csv", "test.csv"))
    note = "not the Yelp polarity split: dev.csv is train, stars 4-5 against 1-2, business categories as identities"
    return Tables(dev, test=test, notes=(note,))


def _polarity_of_stars(table: Table) -> Table:
    stars = [re.search(r"[1-5]", str(value)) for value in table.column("label2")]
    if None in stars:
        raise DataError(f"{table.place(stars.index(None))}: column 'label2' holds no number of stars from 1 to 5")
    numbers = [int(match[0]) for match in stars if match]
    kept = [i for i, number in enumerate(numbers) if number != 3]
    labels = ["1" if number > 3 else "0" for number in numbers]
    categories = [str(value).partition(":")[2].strip() for value in table.column("label1")]
    return table.with_columns(label=labels, **one_hot(categories)).take(kept)


def open_imdb(folder: Path) -> Tables:
    """`train` and `test` folders of `pos/*.txt`, `neg/*.txt`; or `train.jsonl` and `test.jsonl` with text, label."""
    if (folder / "train" / "pos").is_dir():
        return Tables(_read_review_folder(folder / "train"), test=_read_review_folder(folder / "test"))
    train, test = (read_table(find_file(folder, name)) for name in ("train.jsonl", "test.jsonl"))
    return Tables(train, test=test)


def _read_review_folder(folder: Path) -> Table:
    paths = [
        (path, label) for label, kind in (("0", "neg"), ("1", "pos")) for path in sorted((folder / kind).glob("*.txt"))
    ]
    if not paths:
        raise FileNotFoundError(f"{folder} has no pos/*.txt and neg/*.txt; unpack the whole archive")
    columns = {"text": [read_text(path) for path, _ in paths], "label": [label for _, label in paths]}
    return Table(str(folder), columns, range(len(paths)), is_file=False)


def open_banking77(folder: Path) -> Tables:
    """`train.csv` and `test.csv` with text, category."""
    tables = [read_table(find_file(folder, name)) for name in ("train.csv", "test.csv")]
    tables = [table.with_columns(label_text=table.column("category")) for table in tables]
    return Tables(tables[0], test=tables[1])


def open_beavertails(folder: Path) -> Tables:
    """`train.jsonl` and `test.jsonl` (also `30k_train`, `30k_test`, or in `round0/30k`): prompt, response, is_safe."""
    inner = folder / "round0" / "30k"
    folder = inner if inner.is_dir() else folder
    train, test = (find_file(folder, f"{name}.jsonl", f"30k_{name}.jsonl") for name in ("train", "test"))
    return Tables(read_table(train), test=read_table(test))


def prepare_beavertails(table: Table) -> Table:
    """The question and the answer are judged together, so they are read together; `is_safe` becomes safe or unsafe."""
    labels = {"true": "safe", "false": "unsafe"}
    safe = [labels.get(str(value).lower(), value) for value in table.column("is_safe")]
    return table.with_columns(text=_joined(table, "prompt", "response"), label=safe)


SNIPPETS = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"
SNIPPETS_ARCHIVE = "hutto_ICWSM_2014.tar.gz"


def open_movie_snippets(path: Path) -> Tables:
    """The archive `hutto_ICWSM_2014.tar.gz`, a folder with it, or a folder with the snippets file in it.

    Ids are running numbers that reveal no review, so the splits are made by text; repeated texts are left out.
    """
    plain = [path / SNIPPETS, path / Path(SNIPPETS).name]
    if found := next((file for file in plain if file.is_file()), None):
        text = read_text(found)
    else:
        text = _read_from_archive(path if path.is_file() else find_file(path, SNIPPETS_ARCHIVE))
    rows = [line.rstrip("\r").split("\t") for line in text.split("\n")]
    table = _snippet_table([(number, fields) for number, fields in enumerate(rows, start=1) if fields != [""]])
    return Tables(
        table, notes=("the snippets share most sentences with SST-2: never train on one and test on the other",)
    )


def _read_from_archive(path: Path) -> str:
    try:
        with tarfile.open(path) as archive:
            member = archive.extractfile(SNIPPETS)
            assert member is not None
            return member.read().decode("utf-8-sig")
    except (tarfile.TarError, EOFError, KeyError) as error:
        raise DataError(f"{path} is not the archive with {SNIPPETS}; fetch it again") from error


def _snippet_table(rows: list[tuple[int, list[str]]]) -> Table:
    source = Path(SNIPPETS).name
    numbers, ratings, texts, seen = [], [], [], set()
    for number, fields in rows:
        try:
            _, rating, text = fields
            value = float(rating)
        except ValueError:
            raise DataError(f"{source}:{number} is not 'id TAB rating TAB text'; fetch the file again") from None
        # Below half a point raters did not agree on a direction.
        if abs(value) < 0.5 or text.strip().casefold() in seen:
            continue
        seen.add(text.strip().casefold())
        numbers.append(number)
        ratings.append("1" if value > 0 else "0")
        texts.append(text.strip())
    return Table(source, {"text": texts, "label": ratings}, numbers)


def one_hot(values: Sequence[str]) -> dict[str, list[float]]:
    """One identity column per distinct value, 1.0 on its rows.

    Example: ["a", "b"] -> {"identity:a": [1.0, 0.0], "identity:b": [0.0, 1.0]}
    """
    return {f"{IDENTITY_PREFIX}{name}": [float(value == name) for value in values] for name in sorted(set(values))}


def _from_one(table: Table) -> Table:
    """Classes that the file counts from 1, counted from 0 as on the hub."""
    digits = {str(number): str(number - 1) for number in range(1, 10)}
    return table.with_columns(label=[digits.get(str(value).strip(), value) for value in table.column("class")])


def _joined(table: Table, first: str, second: str) -> list[str]:
    pairs = zip(table.column(first), table.column(second), strict=True)
    return [" ".join(str(part).strip() for part in pair if part) for pair in pairs]
