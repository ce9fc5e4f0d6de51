"""A lock on a folder: the system's where there is one, which goes with the process, else a file."""

import os
from pathlib import Path

from lexical_sae.utils.errors import SavedFileError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = ".lock"


class FolderLock:
    """A folder that one process at a time writes to; `release` lets another have it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK
        self._uses_flock = fcntl is not None
        flags = os.O_RDWR | os.O_CREAT | (0 if self._uses_flock else os.O_EXCL)
        try:
            self._handle: int | None = os.open(self.path, flags, 0o644)
        except FileExistsError as error:
            raise SavedFileError(
                f"{folder} is in use by process {_read_owner(self.path)}; wait, or choose another folder (--out). "
                f"If that process is gone, delete {self.path}"
            ) from error
        if fcntl is not None:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(self._handle)
                raise SavedFileError(
                    f"{folder} is in use by process {_read_owner(self.path)}; wait, or choose another folder (--out)"
                ) from error
        os.ftruncate(self._handle, 0)
        os.write(self._handle, str(os.getpid()).encode())

    def release(self) -> None:
        if self._handle is None:
            return
        os.close(self._handle)
        self._handle = None
        # A flock file stays: removing it could take it from under the next owner.
        if not self._uses_flock:
            self.path.unlink(missing_ok=True)


def _read_owner(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") or "unknown"
    except OSError:
        return "unknown"
