"""The bytes of a data file, unpacked, and its text, whatever encoding it is in.

1. `.gz`, `.bz2`, `.xz` and `.zip` (of one file) are unpacked as they are read.
2. UTF-8 is tried first; UTF-16 and UTF-32 show in the first bytes, Windows-1252 is the guess for Western text.
3. Any other encoding than UTF-8 is said in a note; what fits none is refused with the line of the first odd byte.
"""

import bz2
import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from io import TextIOBase
from pathlib import Path
from typing import IO, Any

from lexical_sae.data.tables.table import Table, quoted
from lexical_sae.utils.errors import DataError

UNPACKERS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
ZIP = ".zip"
HEAD = 400
"""Bytes in which NUL gives away UTF-16, or that a file is not text."""
SAMPLE = 2**20
LEAST_ASCII = 4
"""ASCII letters per other byte in text that is taken for Windows-1252: in Western languages the least is about ten."""
_MARKS = ((b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_ODD_WORD = re.compile(r"\w*[^\W\x00-\x7f]\w*|[^\x00-\x7f]")


@dataclass(frozen=True)
class DataFile:
    """A file of rows, or the one file inside a zip archive."""

    path: Path
    name: str
    """Its name without the ending of a packer: `reviews.csv`."""
    member: str | None = None
    """Its name inside a zip archive."""

    @property
    def source(self) -> str:
        """What errors call it: `reviews.csv`, or `reviews.zip/reviews.csv`."""
        return str(self.path) if self.member is None else f"{self.path}/{self.member}"

    @property
    def ending(self) -> str:
        """`.csv`; lower case, without the packer's."""
        return Path(self.name).suffix.lower()

    @contextmanager
    def open(self, packed: IO[bytes] | None = None) -> Iterator[IO[bytes]]:
        """The unpacked bytes; a damaged archive and an unreadable file are errors that name the file.

        `packed` are the file's own bytes, where the caller has them open to see how far they are read.
        """
        packer = self.path.suffix.lower()
        try:
            with ExitStack() as stack:
                own = stack.enter_context(self.path.open("rb")) if packed is None else packed
                if self.member is not None:
                    archive = stack.enter_context(zipfile.ZipFile(own))
                    yield stack.enter_context(archive.open(self.member))
                elif packer in UNPACKERS:
                    yield stack.enter_context(UNPACKERS[packer](own, "rb"))
                else:
                    yield own
        except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile) as error:
            kind = {".gz": "gzip"}.get(packer, packer.removeprefix("."))
            raise DataError(f"{self.path} is not a complete {kind} file ({error}); fetch it again") from error
        except OSError as error:
            if packer == ".bz2" and error.errno is None:
                raise DataError(f"{self.path} is not a complete bz2 file ({error}); fetch it again") from error
            reason = error.strerror or error
            raise type(error)(f"cannot read {self.path}: {reason}; check the path and its permissions") from error

    def bytes(self) -> bytes:
        """All of it."""
        with self.open() as stream:
            return stream.read()

    def parsed(self, parse: Callable[[str, TextIOBase], Table], newline: str) -> Table:
        """What `parse(source, lines)` makes of the text, read as a stream.

        Args:
            parse: Reads the lines to their end.
            newline: What ends a line, as for `open`.
        """
        encoding, note = self._encoding_of_head()
        try:
            return self._parsed(parse, newline, encoding, note)
        except UnicodeDecodeError as error:
            if encoding != "utf-8-sig":
                raise DataError(f"{self.source} is cut or damaged {encoding.upper()} text: {error}") from error
        encoding, note = _guess(self.source, self.bytes())
        return self._parsed(parse, newline, encoding, note)

    def _parsed(self, parse: Callable[[str, TextIOBase], Table], newline: str, encoding: str, note: str) -> Table:
        with self.open() as stream, io.TextIOWrapper(stream, encoding=encoding, newline=newline) as lines:
            table = parse(self.source, lines)
        return replace(table, notes=(note, *table.notes)) if note else table

    def sampled_encoding(self) -> tuple[str, str]:
        """The encoding by the first megabyte alone, and a note where it is not UTF-8."""
        found = self._encoding_of_head()
        if found[0] != "utf-8-sig":
            return found
        with self.open() as stream:
            sample = stream.read(SAMPLE)
        whole = sample if len(sample) < SAMPLE else sample[: sample.rfind(b"\n") + 1]
        try:
            whole.decode("utf-8-sig")
        except UnicodeDecodeError:
            # Not all UTF-8: another encoding, or UTF-8 with broken rows, which are the reader's business.
            with suppress(DataError):
                return _guess(self.source, whole)
        return found

    def _encoding_of_head(self) -> tuple[str, str]:
        """UTF-8, or what the first bytes show, and a note on it."""
        with self.open() as stream:
            head = stream.read(HEAD)
        found = next((name for mark, name in _MARKS if head.startswith(mark)), None) or _by_gaps(head)
        if found is None:
            return "utf-8-sig", ""
        if not found:
            raise DataError(f"{self.source} looks like a binary file, not text; save it as UTF-8 text")
        return found, f"{self.source} was read as {found.upper()}"


def data_file(path: Path, known: Callable[[str], bool]) -> DataFile:
    """The file at a path; for a zip archive the one file in it whose ending is `known`."""
    packer = path.suffix.lower()
    if packer in UNPACKERS:
        return DataFile(path, path.name[: -len(packer)])
    if packer != ZIP:
        return DataFile(path, path.name)
    with DataFile(path, path.name).open() as stream:
        if not zipfile.is_zipfile(stream):
            raise DataError(f"{path} is not a complete zip file; fetch it again")
        with zipfile.ZipFile(path) as archive:
            held = [entry for entry in archive.infolist() if not entry.is_dir()]
    # macOS adds a shadow of every file.
    fits = [entry for entry in held if known(entry.filename) and not entry.filename.startswith("__MACOSX/")]
    if len(fits) != 1:
        names = quoted(entry.filename for entry in held) or "nothing"
        raise DataError(
            f"{path} holds {len(fits)} data files, and one is needed; unpack it and give a file or the folder. "
            f"Found: {names}"
        )
    if fits[0].flag_bits & 1:
        raise DataError(f"{path} is encrypted; unpack it first")
    return DataFile(path, Path(fits[0].filename).name, fits[0].filename)


def read_text(path: Path) -> str:
    """A file that must be UTF-8, packed or not, without byte-order mark; anything else is an error with its place."""
    file = data_file(path, lambda _: True)
    data = file.bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or _by_gaps(data[:HEAD]) is not None:
        raise DataError(f"{path} looks like UTF-16 or a binary file, not UTF-8 text; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(str(path), data, error) from error


def split_lines(text: str) -> list[str]:
    """The lines of a text that ends them with `\\n`, `\\r\\n` or, where it has no line feed, `\\r`.

    Example: "a\\r\\nb\\n" -> ["a", "b"]; "a\\rb" -> ["a", "b"]; "a\\rb\\nc" -> ["a\\rb", "c"]
    """
    # Not splitlines(): it also cuts at U+2028, which texts and JSON strings may hold.
    text = text.replace("\r\n", "\n").rstrip("\r\n")
    return text.split("\n" if "\n" in text else "\r")


def lines_of(stream: TextIOBase) -> Iterator[str]:
    """The lines of `split_lines`, one at a time, of a stream that was opened with `newline="\\n"`."""
    for number, line in enumerate(stream):
        if number == 0 and not line.endswith("\n") and "\r" in line:
            yield from split_lines(line)
        else:
            yield line.removesuffix("\n").removesuffix("\r")


def _by_gaps(head: bytes) -> str | None:
    """UTF-16 without a mark, by where its NULs are; "" for a binary file, None for text of one byte a letter."""
    if head.count(0) <= len(head) // 4:
        return None
    even, odd = head[::2].count(0), head[1::2].count(0)
    if even and odd:
        return ""
    return "utf-16-le" if odd else "utf-16-be"


def _guess(source: str, data: bytes) -> tuple[str, str]:
    """Windows-1252 and a note, where bytes that are not UTF-8 look like Western text in it; else an error."""
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refusal = _not_utf8(source, data, error)
        place = _line(data, error.start)
    else:
        raise AssertionError("asked to guess the encoding of UTF-8")
    high = sum(byte > 0x7F for byte in data)
    letters = sum(data.count(bytes([byte])) for byte in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    # Characters that are whole in UTF-8 hardly occur by chance: such a file is UTF-8 with a damaged place.
    is_damaged_utf8 = not data.decode("utf-8", "ignore").isascii()
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        raise refusal from None
    if is_damaged_utf8 or letters < LEAST_ASCII * high:
        raise refusal
    shown = _ODD_WORD.search(text)
    assert shown is not None
    return "cp1252", (
        f"{source} is not UTF-8 (line {place}) and was read as Windows-1252, for example {shown[0]!r:.40}; "
        "if that is wrong, save it as UTF-8"
    )


def _not_utf8(source: str, data: bytes, error: UnicodeDecodeError) -> DataError:
    return DataError(
        f"{source}:{_line(data, error.start)} is not UTF-8: byte 0x{data[error.start]:02x} at position {error.start}; "
        "save it as UTF-8, for example `iconv -f cp1252 -t utf-8`"
    )


def _line(data: bytes, position: int) -> int:
    return data.count(b"\n" if b"\n" in data else b"\r", 0, position) + 1
