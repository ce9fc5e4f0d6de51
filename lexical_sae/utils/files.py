"""Files that are written whole or not at all, and texts that people wrote."""

import json
import math
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lexical_sae.utils.errors import SettingsError


def write_text(path: Path, text: str) -> Path:
    """Write a file, whole or not at all."""
    return write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> Path:
    """Write plain data as strict JSON, whole or not at all; numbers that are none (NaN, infinity) become null."""
    return write_text(path, json.dumps(strict(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file, whole or not at all: beside its place, put on disk, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with publish_file(path, path.parent) as work:
        work.write_bytes(content)
    return path


@contextmanager
def publish_file(path: Path, folder: Path) -> Iterator[Path]:
    """A place to write a file that gets its name when it is whole and on disk: in a folder of the same disk."""
    work = folder / f".{path.name}-{uuid.uuid4().hex[:8]}"
    try:
        yield work
        flush_file(work)
        work.replace(path)
    finally:
        work.unlink(missing_ok=True)
    flush_folder(path.parent)


def require_writable_target(path: Path, reads: Iterable[Path] = (), option: str = "--out") -> None:
    """Refuse a place where no file can be written, or where one of those lies that the work `reads`.

    For the start of long work, which would otherwise learn it at its end. `option` is how the place was given.
    """
    if path.is_dir():
        raise SettingsError(f"cannot write to {path}: it is a folder; give the file to write in it as {option}")
    if path.exists() and any(one.exists() and path.samefile(one) for one in reads):
        raise SettingsError(f"cannot write to {path}: it is read, and would be lost; give another file as {option}")
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not nearest.is_dir():
        raise SettingsError(
            f"cannot write to {path}: {nearest} is a file, not a folder; give another place as {option}"
        )
    if not os.access(nearest, os.W_OK):
        raise PermissionError(f"cannot write to {path}: {nearest} may only be read; give another place as {option}")


def read_written(path: Path, kind: str, remedy: str) -> str:
    """The text of a file written by hand; errors name its `kind` and the `remedy`."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise SettingsError(f"there is no {kind} {path}; {remedy}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the {kind} {path}: {error}") from error


def flush_file(path: Path) -> None:
    """Have the system put the file's bytes on disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Have the system put the folder's names on disk, where systems can (Windows cannot)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def strict(value: Any) -> Any:
    """Plain data that strict JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
