"""Checkpoints: whole or not at all, hashed, the last two kept.

A checkpoint folder holds `generation-00000007/` with `tensors.safetensors`, `state.json` and `manifest.json` (the
SHA-256 of the other two). A new generation is written under a hidden name, flushed to disk, and renamed; only then is
the one before the last removed. Whatever moment a process is killed at, the last generation whose saving returned is
still there.
"""

import errno
import json
import logging
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

import lexical_sae
from lexical_sae.utils.downloads import sha256_of
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.files import flush_file, flush_folder

logger = logging.getLogger(__name__)

FORMAT_VERSION = 1
KEPT = 2
"""Generations that stay."""
TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"
_WHOLE, _WRITING, _DAMAGED = "generation-", ".writing-", "damaged-"


@dataclass(frozen=True)
class Checkpoint:
    """What was loaded, and from where."""

    state: dict[str, Any]
    generation: int
    """Counts up from 1 with every save in the folder."""
    warning: str | None = None
    """Why it is not the latest, if it is not."""


def save_checkpoint(folder: str | Path, state: Mapping[str, Any]) -> int:
    """Write the next generation and return its number; see `flatten.pack` for what a state may hold.

    On a full disk or any other trouble an `OSError` is raised and all that was saved before is as it was.
    """
    folder = Path(folder)
    packed, tensors = pack(state)
    last = max(_numbers(folder, _WHOLE), default=0)
    generation = max(last, *_numbers(folder, _DAMAGED), 0) + 1
    work = folder / f"{_WRITING}{generation:08d}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove(folder, _WRITING)
        work.mkdir()
        save_file(storable(tensors), work / TENSORS)
        (work / STATE).write_text(json.dumps(packed, allow_nan=False), encoding="utf-8")
        manifest = {
            "format_version": FORMAT_VERSION,
            "written_by": lexical_sae.__version__,
            "sha256": {name: sha256_of(work / name) for name in (TENSORS, STATE)},
        }
        (work / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        for name in (TENSORS, STATE, MANIFEST):
            flush_file(work / name)
        flush_folder(work)
        work.rename(_place(folder, generation))
        flush_folder(folder)
    except (OSError, SafetensorError) as error:
        still = f"generation {last} is still whole" if last else "none was saved before"
        message = f"the checkpoint could not be written to {folder} ({error}); {still}. Free space there and resume"
        raise OSError(_system_code(error), message) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for old in sorted(_numbers(folder, _WHOLE))[:-KEPT]:
        shutil.rmtree(_place(folder, old), ignore_errors=True)
    _remove(folder, _DAMAGED)
    return generation


def has_checkpoint(folder: str | Path) -> bool:
    """Whether the folder holds a generation, be it whole or damaged."""
    return bool(_numbers(Path(folder), _WHOLE))


def load_checkpoint(folder: str | Path) -> Checkpoint:
    """The last generation or, with a warning, the one before if the last is damaged.

    A damaged generation is renamed, so that the next save does not count it among those that stay. Tensors are on the
    CPU.
    """
    folder = Path(folder)
    problems: dict[int, str] = {}
    for generation in sorted(_numbers(folder, _WHOLE), reverse=True):
        try:
            state = _read(_place(folder, generation))
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            problems[generation] = f"generation {generation} is damaged: {error}"
            continue
        if not problems:
            return Checkpoint(state, generation)
        warning = f"{folder}: {'; '.join(problems.values())}. Going back to generation {generation}"
        logger.warning("%s", warning)
        for number in problems:
            _set_aside(folder, number)
        return Checkpoint(state, generation, warning)
    if not problems:
        raise FileNotFoundError(f"{folder} holds no checkpoint")
    raise SavedFileError(
        f"{folder} holds no whole checkpoint ({'; '.join(problems.values())}); "
        "restore it from a copy, or start again in another folder (--out)"
    )


def _read(source: Path) -> dict[str, Any]:
    manifest = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
    version = manifest.get("format_version") if isinstance(manifest, dict) else None
    if version != FORMAT_VERSION:
        raise SavedFileError(f"{source / MANIFEST} has format version {version!r}, this package reads {FORMAT_VERSION}")
    for name in (TENSORS, STATE):
        if sha256_of(source / name) != manifest["sha256"][name]:
            raise SavedFileError(f"{source / name} is not the file that was saved (SHA-256 differs)")
    packed = json.loads((source / STATE).read_text(encoding="utf-8"))
    return unpack(packed, load_file(source / TENSORS))


def _system_code(error: Exception) -> int:
    """The system's number for an error; safetensors gives it in its text only."""
    found = re.search(r"os error (\d+)", str(error))
    return getattr(error, "errno", None) or (int(found[1]) if found else errno.EIO)


def _place(folder: Path, generation: int) -> Path:
    return folder / f"{_WHOLE}{generation:08d}"


def _numbers(folder: Path, prefix: str) -> list[int]:
    """Numbers of the entries with a prefix; what is not ours is passed over."""
    if not folder.is_dir():
        return []
    tails = [path.name.removeprefix(prefix) for path in folder.iterdir() if path.name.startswith(prefix)]
    return [int(tail) for tail in tails if tail.isdecimal()]


def _remove(folder: Path, prefix: str) -> None:
    for number in _numbers(folder, prefix):
        shutil.rmtree(folder / f"{prefix}{number:08d}", ignore_errors=True)


def _set_aside(folder: Path, generation: int) -> None:
    try:
        _place(folder, generation).rename(folder / f"{_DAMAGED}{generation:08d}")
    except OSError as error:
        logger.warning("the damaged generation %d could not be renamed (%s)", generation, error)


MARK = "$"
"""Key of a JSON object that stands for something JSON has no word for."""


def pack(state: Any) -> tuple[Any, dict[str, Tensor]]:
    """The state as JSON, with tensors replaced by their names, and the tensors by name.

    Holds None, booleans, numbers (NaN and infinities too), text, lists, tuples, dicts with any of these as keys,
    tensors and NumPy arrays. A tensor that occurs twice, as tied weights do, is kept once. Other things are refused
    with their place.

    Example: `{"w": tensor, "k": (1, inf)}` -> `{"w": {"$": "tensor", "name": "0"}, "k": {"$": "tuple", ...}}`
    """
    packer = _Packer()
    return packer.pack(state, "state"), packer.tensors


def unpack(packed: Any, tensors: Mapping[str, Tensor]) -> Any:
    """What `pack` was given; tensors are copies on the CPU, one per stored tensor."""
    own = {name: tensor.clone() for name, tensor in tensors.items()}
    return _unpack(packed, own)


class _Packer:
    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        # Held, so that no memory address is used twice while packing.
        self._held: list[Tensor] = []

    def pack(self, value: Any, place: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or type(value) in (bool, int, str):
            return value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {MARK: "float", "value": repr(float(value))}
        if isinstance(value, Tensor):
            return {MARK: "tensor", "name": self._name(value, place)}
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            data = torch.from_numpy(np.frombuffer(value.tobytes(), np.uint8).copy())
            name = self._name(data, place)
            return {MARK: "array", "name": name, "dtype": value.dtype.str, "shape": list(value.shape)}
        if isinstance(value, Mapping):
            return self._pack_mapping(value, place)
        if isinstance(value, list | tuple):
            items = [self.pack(item, f"{place}[{i}]") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {MARK: "tuple", "items": items}
        raise TypeError(
            f"{place} is of type {type(value).__name__}, which a checkpoint cannot hold; "
            "make it numbers, text, tensors, lists or dicts"
        )

    def _pack_mapping(self, value: Mapping[Any, Any], place: str) -> Any:
        if all(type(key) is str for key in value) and MARK not in value:
            return {key: self.pack(item, f"{place}.{key}") for key, item in value.items()}
        items = [[self.pack(key, place), self.pack(item, f"{place}[{key!r}]")] for key, item in value.items()]
        return {MARK: "dict", "items": items}

    def _name(self, tensor: Tensor, place: str) -> str:
        tensor = tensor.detach()
        if tensor.layout is not torch.strided or tensor.is_meta:
            raise TypeError(f"{place} is a {tensor.layout} tensor on {tensor.device}, which a checkpoint cannot hold")
        where = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        # Empty tensors all have address 0.
        if tensor.numel() and where in self._names:
            return self._names[where]
        self._held.append(tensor)
        name = str(len(self.tensors))
        self._names[where] = name
        self.tensors[name] = tensor
        return name


def storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors on the CPU, each with memory of its own and in order, as safetensors wants them."""
    stored, seen = {}, set()
    for name, tensor in tensors.items():
        ready = tensor.cpu().contiguous()
        storage = ready.untyped_storage()
        is_view = storage.data_ptr() in seen or storage.nbytes() != ready.numel() * ready.element_size()
        seen.add(storage.data_ptr())
        stored[name] = ready.clone() if is_view else ready
    return stored


def _unpack(packed: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(packed, list):
        return [_unpack(item, tensors) for item in packed]
    if not isinstance(packed, dict):
        return packed
    match packed.get(MARK):
        case None:
            return {key: _unpack(item, tensors) for key, item in packed.items()}
        case "float":
            return float(packed["value"])
        case "tensor":
            return tensors[packed["name"]]
        case "array":
            data = tensors[packed["name"]].numpy().tobytes()
            return np.frombuffer(data, np.dtype(packed["dtype"])).reshape(packed["shape"]).copy()
        case "tuple":
            return tuple(_unpack(item, tensors) for item in packed["items"])
        case "dict":
            return {_unpack(key, tensors): _unpack(item, tensors) for key, item in packed["items"]}
        case kind:
            raise SavedFileError(f"a checkpoint of this version knows no {kind!r}")
