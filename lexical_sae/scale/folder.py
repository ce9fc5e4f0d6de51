"""The folder of a scored table: which parts are done, and whether it may be gone on with.

part-00000-000000.parquet   rows of the first file; one file per part
rejected/part-….parquet     rows of that part without a usable text, where it has any
manifest.json               settings and input; totals when all is done
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow.parquet as pq

from lexical_sae.scale.inputs import Input
from lexical_sae.scale.parts import PartKey
from lexical_sae.scale.scorer import REJECTED_FOLDER, WORK_FOLDER, PartDone, ScoreSettings
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.files import write_json
from lexical_sae.utils.lock import FolderLock

MANIFEST = "manifest.json"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Totals:
    """What a finished table holds."""

    rows: int = 0
    rejected: int = 0
    parts: int = 0

    def with_part(self, done: PartDone) -> "Totals":
        """The same and one part more."""
        return Totals(self.rows + done.rows, self.rejected + done.rejected, self.parts + 1)


class ScoredFolder:
    """An open folder of a scored table; used in a `with` statement, which gives up its lock at the end."""

    def __init__(
        self, path: str | Path, settings: ScoreSettings, inputs: Sequence[Input], *, resume: bool = False
    ) -> None:
        """A new folder or, with `resume`, one that was begun with the same settings and input."""
        self.path = Path(path).expanduser().resolve()
        self._body = {
            "format_version": FORMAT_VERSION,
            "settings": settings.model_dump(mode="json"),
            "inputs": [each.model_dump(mode="json") for each in inputs],
        }
        if not resume and self.path.is_dir() and any(not each.name.startswith(".") for each in self.path.iterdir()):
            raise SavedFileError(f"{self.path} is not empty; go on with --resume, or choose another folder (--out)")
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(self.path)
        try:
            if resume:
                self._require_same()
            # What was being written when a run was killed.
            shutil.rmtree(self.path / WORK_FOLDER, ignore_errors=True)
            (self.path / WORK_FOLDER).mkdir()
            (self.path / REJECTED_FOLDER).mkdir(exist_ok=True)
            if not resume:
                write_json(self.path / MANIFEST, {**self._body, "totals": None})
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> "ScoredFolder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.path / WORK_FOLDER, ignore_errors=True)
        self._lock.release()

    def done(self) -> dict[PartKey, PartDone]:
        """The parts that are written. Their files are whole: they got their names after that."""
        found = {}
        for path in sorted(self.path.glob("part-*.parquet")):
            key = PartKey(*map(int, path.stem.split("-")[1:]))
            found[key] = PartDone(key, _rows(path), _rows(self.path / REJECTED_FOLDER / path.name), 0.0)
        return found

    def finish(self, totals: Totals) -> None:
        """Write down that all is done."""
        write_json(self.path / MANIFEST, {**self._body, "totals": vars(totals)})

    def _require_same(self) -> None:
        path = self.path / MANIFEST
        try:
            saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise SavedFileError(f"there is nothing to resume in {self.path}; start without --resume") from error
        except ValueError as error:
            raise SavedFileError(f"{path} is damaged ({error}); choose another folder (--out)") from error
        given = json.loads(json.dumps(self._body))
        for name, value in given.items():
            if saved.get(name) != value:
                what = _first_difference(saved.get(name), value)
                raise SavedFileError(
                    f"{self.path} was begun with other {name} ({what}); resume with the same model, files and options, "
                    "or choose another folder (--out)"
                )


def _rows(path: Path) -> int:
    return pq.read_metadata(path).num_rows if path.exists() else 0


def _first_difference(saved: Any, given: Any) -> str:
    if isinstance(saved, dict) and isinstance(given, dict):
        name = next(key for key in (*given, *saved) if saved.get(key) != given.get(key))
        return f"{name}: {_first_difference(saved.get(name), given.get(name))}"
    return f"{saved!r:.80} then, {given!r:.80} now"
