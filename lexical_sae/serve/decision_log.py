"""The decision log: a line of JSON per decision, each holding the hash of the one before.

    {"number": 7, "time": "…", "request_id": "…", "model": "quickstart", "model_sha256": "…", "asked": "explain",
     "text_hmac": "…", "label": "positive", "probability": 0.99, "previous": "…", "hash": "…"}

A line that is changed, removed or moved breaks the chain (`verify`); lines that are cut off the end do not, so write
the last hash down elsewhere from time to time. Texts are not written, only their HMAC-SHA256 with a key that lies in
`<log>.key` beside it: who has the key can show that a text was decided on, and nobody can guess texts from the log
alone. Several workers write to one log, one at a time.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from lexical_sae.utils.errors import SavedFileError, SettingsError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

START = "0" * 64
"""What the first line has for the hash of the one before."""


@dataclass(frozen=True)
class Decision:
    """What is written of a decision."""

    text: str
    label: str
    probability: float | None


class DecisionLog:
    """A log that decisions are added to."""

    def __init__(self, path: Path, *, with_texts: bool = False) -> None:
        if fcntl is None:
            raise SettingsError("the decision log needs a system with file locks (flock), which this one has not")
        self.path, self.with_texts = path, with_texts
        self.key = _key_of(path)
        # The log names labels and request ids: it is its owner's.
        os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))

    def add(self, model: str, model_sha256: str, request_id: str, asked: str, decisions: Sequence[Decision]) -> None:
        """Write decisions down, all of them or, where the disk is full, an error."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with _locked(self.path) as file:
            last = _last_line(file)
            count, previous = (last["number"], last["hash"]) if last else (0, START)
            lines = []
            for number, decision in enumerate(decisions, start=count + 1):
                body: dict[str, Any] = {
                    "number": number,
                    "time": now,
                    "request_id": request_id,
                    "model": model,
                    "model_sha256": model_sha256,
                    "asked": asked,
                    "text_hmac": self.hmac_of(decision.text),
                    **({"text": decision.text} if self.with_texts else {}),
                    "label": decision.label,
                    "probability": decision.probability,
                    "previous": previous,
                }
                previous = _hash(body)
                lines.append(json.dumps(body | {"hash": previous}))
            file.write(("\n".join(lines) + "\n").encode())
            file.flush()

    def hmac_of(self, text: str) -> str:
        """What stands for a text in the log."""
        return hmac.new(self.key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def verify(path: Path) -> int:
    """How many lines a log has, every one of them in its place and as it was written; a broken chain is refused."""
    previous, count = START, 0
    with path.open("rb") as file:
        for count, line in enumerate(file, start=1):
            try:
                body = json.loads(line)
                found = body.pop("hash")
                is_whole = (body["number"], body["previous"], _hash(body)) == (count, previous, found)
            except (ValueError, KeyError, TypeError, AttributeError):
                is_whole, found = False, ""
            if not is_whole:
                raise SavedFileError(f"{path}:{count} is not the line that was written there, or one before it is gone")
            previous = found
    return count


def _hash(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _key_of(path: Path) -> bytes:
    place = path.with_name(path.name + ".key")
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return bytes.fromhex(place.read_text(encoding="ascii"))
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32))
    return bytes.fromhex(place.read_text(encoding="ascii"))


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    with path.open("r+b") as file:
        assert fcntl is not None
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _last_line(file: BinaryIO) -> dict[str, Any] | None:
    """The last line; afterwards the file stands at its end. Half a line of a process that died is cut off."""
    end = file.seek(0, os.SEEK_END)
    size, tail = 4096, b""
    while end:
        start = max(0, end - size)
        file.seek(start)
        tail = file.read(end - start)
        whole = tail.rfind(b"\n")
        before = tail.rfind(b"\n", 0, max(whole, 0))
        if start == 0 or (whole >= 0 and before >= 0):
            file.truncate(start + whole + 1)
            file.seek(start + whole + 1)
            line = tail[before + 1 : whole] if whole >= 0 else b""
            return _read(file.name, line) if line else None
        size *= 2
    return None


def _read(name: Any, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
        return {"number": int(found["number"]), "hash": str(found["hash"])}
    except (ValueError, KeyError, TypeError) as error:
        raise SavedFileError(f"{name} does not end with a line of a decision log; move it elsewhere") from error
