"""The folder of one run: who may write there, and what lies where.

resolved_config.yaml   the settings of the run, every key
environment.json       versions and seed
plan.json              what `training.minutes` came to
history.jsonl          one record per line
tensorboard/           the same for TensorBoard, with report_to: [tensorboard]
checkpoint/            see `lexical_sae.training.resuming.checkpoint`
decisions.json         which test texts were got right
evaluation.json        see `lexical_sae.evaluation.suite`
names.json             see `lexical_sae.evaluation.names.tests`
results.json, report.html, explorer.html, model/
"""

import importlib.metadata
import json
import logging
import os
import platform
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
import yaml

import lexical_sae
from lexical_sae.training.callbacks import TENSORBOARD_FOLDER
from lexical_sae.training.resuming.checkpoint import Checkpoint, has_checkpoint, load_checkpoint, save_checkpoint
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.files import flush_file, strict, write_json, write_text
from lexical_sae.utils.lock import FolderLock

logger = logging.getLogger(__name__)

CONFIG, ENVIRONMENT, HISTORY = "resolved_config.yaml", "environment.json", "history.jsonl"
PLAN = "plan.json"
RESULTS, REPORT, MODEL, CHECKPOINT = "results.json", "report.html", "model", "checkpoint"
EXPLORER = "explorer.html"
DECISIONS, EVALUATION, NAMES, BASELINES = "decisions.json", "evaluation.json", "names.json", "baselines.json"
STUDIES = ("faithfulness", "sae", "long_context", "polysemy")
MEASURED = (
    *(DECISIONS, EVALUATION, NAMES, BASELINES),
    *(f"{study}.{ending}" for study in STUDIES for ending in ("json", "html")),
)
"""What is written about a trained model."""
OTHER_EVALUATIONS = "evaluation-*.json"
"""The same on other texts than a run's own, as `lexical-sae evaluate` names it."""
WRITTEN = (TENSORBOARD_FOLDER, HISTORY, PLAN, RESULTS, REPORT, EXPLORER, ENVIRONMENT, CONFIG)
"""What a run leaves beside its model."""
MAY_DIFFER = (
    "training.report_to",
    *("output_dir", "experiment_name"),
    *("evaluation.after_training", "evaluation.texts", "evaluation.explainer_texts", "evaluation.names_texts"),
    *("training.checkpoint_minutes", "mechanistic.sae_comparison"),
    *("datasets", "variants"),
)
"""Settings that change no training: names (a folder that was moved can be resumed), what is measured afterwards, and
what is trained beside."""
_HISTORY_LENGTH, _SECONDS = "history_length", "seconds"


class RunFolder:
    """An open run folder; use it in a `with` statement, which gives up its lock at the end.

    The lock is the system's (`flock`): it goes with the process, however that ends. Where there is none (Windows), a
    file stands in for it, which a killed process leaves behind; the message then names the file to delete.
    """

    @classmethod
    def open(
        cls, path: str | Path, config: Mapping[str, Any], *, seed: int | None = None, resume: bool = False
    ) -> "RunFolder":
        """A new run's folder or, with `resume`, the folder of an interrupted run with the same settings.

        `config` holds the resolved settings as plain data (`model_dump(mode="json")`). A run that was killed before
        its first checkpoint can be resumed too: it starts from the beginning.
        """
        folder = Path(path).expanduser().resolve()
        if resume and not (folder / CONFIG).is_file():
            raise SavedFileError(f"there is no run to resume in {folder}; start it without --resume")
        _make(folder)
        lock = FolderLock(folder)
        try:
            run = cls(folder, lock)
            if resume:
                run._require_same(config)
                run._compare_environment(_environment(seed))
            else:
                run._require_new()
                run.write_json(ENVIRONMENT, _environment(seed))
                # Last: from here on the folder holds a run.
                run.write_text(CONFIG, yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True))
        except BaseException:
            lock.release()
            raise
        return run

    def __init__(self, path: Path, lock: FolderLock) -> None:
        self.path = path
        self._lock = lock
        self._opened = time.monotonic()
        self._seconds_before = 0.0

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let another process use the folder."""
        self._lock.release()

    @property
    def seconds(self) -> float:
        """How long the run has taken, all its parts together; what a kill lost was not part of it."""
        return self._seconds_before + time.monotonic() - self._opened

    @property
    def model(self) -> Path:
        """Where the finished model is saved."""
        return self.path / MODEL

    @property
    def checkpoint(self) -> Path:
        """Where the generations of checkpoints are."""
        return self.path / CHECKPOINT

    @property
    def results(self) -> Path:
        """Where the results are written; there when the run is finished."""
        return self.path / RESULTS

    @property
    def report(self) -> Path:
        return self.path / REPORT

    @property
    def history(self) -> Path:
        return self.path / HISTORY

    def write_text(self, name: str, text: str) -> Path:
        """Write a file of this folder, whole or not at all."""
        if name in ("", ".", "..") or Path(name).name != name:
            raise SavedFileError(f"{name!r} is not a plain file name")
        return write_text(self.path / name, text)

    def write_json(self, name: str, value: Any) -> Path:
        """Write plain data of this folder as strict JSON, whole or not at all."""
        return write_json(self.path / name, value)

    def append_history(self, record: Mapping[str, Any]) -> None:
        """Add a record to the history; it survives the process, and a power cut from the next checkpoint on."""
        with self.history.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(strict(record), allow_nan=False) + "\n")

    def read_history(self) -> list[dict[str, Any]]:
        """Every whole record, in order."""
        return whole_records(self._history_bytes())

    def truncate_history(self, length: int) -> None:
        """Keep the first records only; a line that was being written when the process died goes too."""
        lines = _whole_lines(self._history_bytes())
        if len(lines) < length:
            logger.warning("%s has %d records, the checkpoint counts %d", self.history, len(lines), length)
        if self.history.exists():
            self.write_text(HISTORY, b"".join(lines[:length]).decode())

    def save_checkpoint(self, state: Mapping[str, Any]) -> int:
        """Save the next generation, with the length of the history and the run's seconds at this moment."""
        if self.history.exists():
            flush_file(self.history)
        own = {_HISTORY_LENGTH: len(_whole_lines(self._history_bytes())), _SECONDS: self.seconds}
        return save_checkpoint(self.checkpoint, {**state, **own})

    def load_checkpoint(self) -> Checkpoint | None:
        """The last whole checkpoint, or None before the first; history and seconds go back to what they were at it."""
        if not has_checkpoint(self.checkpoint):
            self.truncate_history(0)
            return None
        loaded = load_checkpoint(self.checkpoint)
        state = dict(loaded.state)
        self.truncate_history(state.pop(_HISTORY_LENGTH))
        # Older checkpoints lack it.
        self._seconds_before = state.pop(_SECONDS, 0.0)
        return replace(loaded, state=state)

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to resume from, or to look at."""
        return self.history.exists() or has_checkpoint(self.checkpoint)

    def withdraw(self) -> None:
        """Leave the folder as if no run had been tried: for one that failed before it began."""
        for name in (CONFIG, ENVIRONMENT, PLAN):
            (self.path / name).unlink(missing_ok=True)

    def drop_checkpoints(self) -> None:
        """A finished run needs none."""
        shutil.rmtree(self.checkpoint, ignore_errors=True)

    def _history_bytes(self) -> bytes:
        return self.history.read_bytes() if self.history.exists() else b""

    def _require_new(self) -> None:
        taken = [name for name in (CONFIG, CHECKPOINT, HISTORY, RESULTS, MODEL) if (self.path / name).exists()]
        if taken:
            raise SavedFileError(
                f"{self.path} already holds a run ({taken[0]}); continue with --resume, or choose another folder "
                "(--out)"
            )

    def _require_same(self, config: Mapping[str, Any]) -> None:
        saved = read_settings(self.path)
        given = yaml.safe_load(yaml.safe_dump(dict(config)))
        differing = [line for line in _differences(saved, given) if not _may_differ(line.split(":")[0])]
        if differing:
            raise SavedFileError(
                f"{self.path} holds a run with other settings: {'; '.join(differing)}. "
                "Resume with the same settings, or choose another folder (--out)"
            )

    def _compare_environment(self, now: dict[str, Any]) -> None:
        try:
            then = json.loads((self.path / ENVIRONMENT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            then = {}
        if changed := _differences(then, now):
            logger.warning("resumed where not all is as it was, so weights may differ in bits: %s", "; ".join(changed))


def read_settings(folder: Path) -> Any:
    """What `resolved_config.yaml` of a run's folder holds; a damaged one is refused."""
    try:
        return yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SavedFileError(
            f"{folder / CONFIG} cannot be read ({error}); restore it, or train in another folder (--out)"
        ) from error


def clear_run(path: str | Path, *, only: str) -> None:
    """Remove what a run of the experiment named `only` left in a folder, its settings last.

    Other files stay, and so do a folder without a run and the run of another experiment. A run that is still going on
    is not touched: its lock is respected.
    """
    folder = Path(path).expanduser().resolve()
    if not (folder / CONFIG).is_file():
        return
    saved = read_settings(folder)
    if not isinstance(saved, dict) or saved.get("experiment_name") != only:
        return
    lock = FolderLock(folder)
    try:
        others = (path.name for path in folder.glob(OTHER_EVALUATIONS))
        for name in (*MEASURED, *others, MODEL, CHECKPOINT, *WRITTEN):
            left = folder / name
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink(missing_ok=True)
    finally:
        lock.release()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise SavedFileError(
            f"{folder} cannot be a folder: a file is in the way; choose another folder (--out)"
        ) from error
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"cannot write to {folder}; choose another folder (--out)")


def _environment(seed: int | None) -> dict[str, Any]:
    packages = ("torch", "transformers", "safetensors", "schedulefree", "numpy")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return {
        "seed": seed,
        "versions": {"lexical_sae": lexical_sae.__version__, "python": platform.python_version(), **versions},
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
    }


def _differences(saved: Any, given: Any, place: str = "") -> list[str]:
    """One line per key that differs, as `place: saved -> given`."""
    if isinstance(saved, dict) and isinstance(given, dict):
        keys = [*saved, *(key for key in given if key not in saved)]
        prefix = f"{place}." if place else ""
        absent = "(absent)"
        return [
            line
            for key in keys
            for line in _differences(saved.get(key, absent), given.get(key, absent), f"{prefix}{key}")
        ]
    return [] if saved == given else [f"{place}: {saved!r} -> {given!r}"]


def _may_differ(place: str) -> bool:
    return any(place == name or place.startswith(f"{name}.") for name in MAY_DIFFER)


def whole_records(history: bytes) -> list[dict[str, Any]]:
    """The records of a history, up to a line that was being written when the process died."""
    return [json.loads(line) for line in _whole_lines(history)]


def _whole_lines(history: bytes) -> list[bytes]:
    whole = []
    for line in history.splitlines(keepends=True):
        if not line.endswith(b"\n") or not _is_record(line):
            break
        whole.append(line)
    return whole


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
