"""The payload of the corpus view: made once for each model and all workers, in the background, and kept in a file.

The worker that gets the lock makes it, and writes how far it is; the others look at the file. If that worker dies, the
system frees the lock, and the next one takes over.
"""

import gzip
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from lexical_sae.data.sources.registry import TEXT_DATASETS
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.runs.texts import Columns, Corpus, load_corpus
from lexical_sae.serve.served import ServedModel
from lexical_sae.serve.settings import Data
from lexical_sae.utils.errors import LexicalSAEError, SavedFileError
from lexical_sae.utils.files import write_bytes, write_json
from lexical_sae.utils.lock import FolderLock
from lexical_sae.utils.progress import OnStep, Step

logger = logging.getLogger(__name__)

Make = Callable[[LexicalSAE, Corpus, OnStep], dict[str, Any]]
"""From a model and its texts to plain data for strict JSON."""
LOOK_AGAIN = 1.0
"""Seconds between two looks at whether another worker is done."""


def read_corpus(model: LexicalSAE, data: Data) -> Corpus:
    """The texts that the service was given, with their classes as this model numbers them."""
    columns = Columns(data.text_column, data.label_column, data.is_labelled, data.skip_bad_rows)
    is_named = data.source in TEXT_DATASETS
    file, name = (None, data.source) if is_named else (Path(data.source).expanduser(), None)
    return load_corpus(model, file, name, columns)


class CorpusFile:
    """The payload of one model, in the folder that workers share."""

    def __init__(self, served: ServedModel, data: Data, spool: Path, make: Make) -> None:
        self.served, self.data, self.make = served, data, make
        self.folder = spool / f"corpus-{served.name}"
        self.folder.mkdir(exist_ok=True)
        self.payload, self._state = self.folder / "payload.json.gz", self.folder / "state.json"
        self._closing = threading.Event()
        threading.Thread(target=self._run, name=f"corpus {served.name}", daemon=True).start()

    def state(self) -> dict[str, Any]:
        """How far it is, for clients."""
        known = {"name": self.data.name, "state": "waiting", "done": 0.0, "texts": None, "labelled": None}
        try:
            found = json.loads(self._state.read_text(encoding="utf-8"))
        except FileNotFoundError:
            found = {}
        return known | {"detail": None} | found

    def close(self) -> None:
        """Stop waiting for another worker; work under way ends with the process."""
        self._closing.set()

    @cached_property
    def etag(self) -> str:
        """Changes with the payload; to be read when that is ready."""
        return hashlib.sha256(self.payload.read_bytes()).hexdigest()[:32]

    def unpacked(self) -> bytes:
        """The payload for clients that read no gzip."""
        return gzip.decompress(self.payload.read_bytes())

    def _run(self) -> None:
        while not self._closing.wait(LOOK_AGAIN if self.folder.joinpath(".lock").exists() else 0):
            if self.state()["state"] in ("ready", "failed"):
                return
            try:
                lock = FolderLock(self.folder)
            except SavedFileError:
                continue
            try:
                self._make()
            finally:
                lock.release()

    def _make(self) -> None:
        last, about = 0.0, {}

        def on_step(step: Step) -> None:
            nonlocal last
            if self._closing.is_set():
                raise _Stopped
            if time.monotonic() - last > LOOK_AGAIN / 4:
                last = time.monotonic()
                self._write("making", step.done / max(step.total, 1), **about)

        self._write("making", 0.0)
        try:
            corpus = read_corpus(self.served.model, self.data)
            about = {"texts": len(corpus.texts), "labelled": corpus.labels is not None}
            found = self.make(self.served.model, corpus, on_step)
            content = json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
        except _Stopped:
            return
        except LexicalSAEError as error:
            self._write("failed", 0.0, detail=str(error), **about)
        except Exception as error:
            # Its message may quote a text.
            logger.error("the corpus view of %s failed: %s", self.served.name, type(error).__name__)
            self._write("failed", 0.0, detail=f"a bug in lexical-sae: {type(error).__name__}", **about)
        else:
            write_bytes(self.payload, gzip.compress(content, 6, mtime=0))
            self._write("ready", 1.0, **about)

    def _write(self, state: str, done: float, **others: Any) -> None:
        if self.folder.exists():
            write_json(self._state, {"state": state, "done": done, **others})


class _Stopped(Exception):
    """The service ends while the payload is being made."""
