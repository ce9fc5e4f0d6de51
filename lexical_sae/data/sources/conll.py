"""CoNLL-style columns: one word per line, blank lines between sentences, first column the word, last the tag."""

from collections.abc import Iterable
from pathlib import Path

from lexical_sae.data.examples import Source, TaggedSplit
from lexical_sae.data.tables.decoding import read_text, split_lines
from lexical_sae.data.tables.table import Table, list_places
from lexical_sae.data.tagging import detect_scheme, parse_tag, repair_iob2, to_iob2
from lexical_sae.utils.errors import DataError


def read_conll(path: Path) -> Table:
    """A table with the columns `tokens` and `tags`, one row per sentence, numbered by its first line.

    Any number of columns, separated by spaces or tabs; `-DOCSTART-` lines and comments of `# key = value` are skipped.
    """
    sentences: list[tuple[int, list[str], list[str]]] = []
    width = 0
    starts_sentence = True
    for number, line in enumerate(split_lines(read_text(path)), start=1):
        # Only what separates columns: a no-break space may be part of a word.
        fields = [field for field in line.rstrip("\r").replace("\t", " ").split(" ") if field]
        if not fields or fields[0] == "-DOCSTART-" or line.startswith("# ") and " = " in line:
            starts_sentence = True
            continue
        width = width or len(fields)
        if len(fields) < 2 or len(fields) != width:
            raise DataError(
                f"{path}:{number} has {len(fields)} columns, the first word line has {width}; "
                f"write the word first and its tag last on every line"
            )
        try:
            parse_tag(fields[-1])
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from error
        if starts_sentence:
            sentences.append((number, [], []))
            starts_sentence = False
        sentences[-1][1].append(fields[0])
        sentences[-1][2].append(fields[-1])
    if not sentences:
        raise DataError(f"{path} holds no sentence; write one word per line: the word first, its tag last")
    numbers, tokens, tags = (list(column) for column in zip(*sentences, strict=True))
    return Table(str(path), {"tokens": tokens, "tags": tags}, numbers)


def tagged_source(train: Table, validation: Table | None, test: Table | None) -> Source[TaggedSplit]:
    """The tables as IOB2 splits; the tag names are those of all of them, `O` first.

    The scheme (IOB1, IOB2 or BIOES) is found from the tags; a broken sequence is mended and counted.
    """
    notes: list[str] = []
    given = [table for table in (train, validation, test) if table is not None]
    scheme = detect_scheme(tags for table in given for tags in _rows(table, "tags"))
    if scheme != "IOB2":
        notes.append(f"tags are {scheme}, converted to IOB2")
    splits = [None if table is None else _tagged_split(table, scheme, notes) for table in (train, validation, test)]
    assert splits[0] is not None
    types = sorted({parse_tag(tag)[1] for split in splits if split for tags in split.tags for tag in tags} - {""})
    names = ("O", *(f"{prefix}-{kind}" for kind in types for prefix in "BI"))
    if len(names) == 1:
        raise DataError(f"{train.source} has no entity: every tag is 'O'; is the tag in the last column?")
    return Source(names, splits[0], splits[1], splits[2], notes=tuple(notes))


def _tagged_split(table: Table, scheme: str, notes: list[str]) -> TaggedSplit:
    tokens, tags, mended = [], [], []
    for row, (words, raw_tags) in enumerate(zip(_rows(table, "tokens"), _rows(table, "tags"), strict=True)):
        if len(words) != len(raw_tags):
            raise DataError(f"{table.place(row)}: {len(words)} words and {len(raw_tags)} tags; give one tag per word")
        converted = to_iob2(raw_tags, scheme)
        repaired = repair_iob2(converted)
        if repaired != converted:
            mended.append(table.place(row))
        tokens.append(tuple(words))
        tags.append(tuple(repaired))
    if mended:
        notes.append(f"I- without B- in {len(mended)} sentences, read as B-: {list_places(mended)}")
    return TaggedSplit(tuple(tokens), tuple(tags))


def _rows(table: Table, column: str) -> Iterable[list[str]]:
    return ([str(value) for value in row] for row in table.column(column))  # pyright: ignore[reportGeneralTypeIssues]
