"""Saving and loading a model: safetensors and JSON only, everything checked before anything is allocated.

A saved folder holds `model.safetensors`, `config.json`, the tokenizer's files and, if there is one, the calibration.
`config.json` names the format version, the parts, the backbone's architecture, the labels, and the SHA-256 of every
other file.
"""

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, ValidationError
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

import lexical_sae
from lexical_sae.models.bundled import bundled_origin
from lexical_sae.models.calibration import FIGURES, Calibration
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.pretrained import backbone_from_config, load_tokenizer, open_safetensors
from lexical_sae.outputs import CLASSES, AnyOutput
from lexical_sae.utils.downloads import sha256_of
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.part import PartConfig, first_complaint
from lexical_sae.utils.plugins import load_plugins

FORMAT_VERSION = 1
WEIGHTS, CONFIG = "model.safetensors", "config.json"
SAVED_DTYPES = {torch.float32: "F32", torch.bool: "BOOL", torch.int64: "I64"}
"""What a saved model is made of, by torch's name and safetensors'."""


class SavedModel(PartConfig):
    """The contents of a saved model's `config.json`."""

    format_version: int
    """Layout of the folder; a newer one than this package knows is refused."""
    written_by: str
    """Version of this package that wrote the folder."""
    parts: ModelConfig
    """Settings of every part."""
    backbone: dict[str, Any]
    """Architecture of the backbone, as transformers writes it."""
    labels: dict[str, tuple[str, ...]]
    """Label names of each head, in the order of its logits."""
    output: AnyOutput = CLASSES
    """What texts get: one of the labels, any of them, or a number. Models of earlier versions have classes."""
    encoder: dict[str, str] = {}
    """Of a bundled encoder: which model the weights started from, its licence, and the hash of the original."""
    sha256: dict[str, str] = Field(min_length=1)
    """Hash of every other file in the folder."""
    own_sha256: str = ""
    """Hash of the rest of this file, so that swapped labels or settings are noticed."""


def digest(config: Mapping[str, Any]) -> str:
    """What `own_sha256` must be: of the settings as they stand in the file, so that later versions may know more."""
    body = {key: value for key, value in config.items() if key != "own_sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def require_saveable(folder: str | Path) -> Path:
    """The folder with links followed, if a model may be saved there: new, empty, or holding a saved model alone.

    Worth calling before a long training, so that the place is known to be good.
    """
    target = Path(folder).expanduser().resolve()
    if target.exists() and not target.is_dir():
        raise SavedFileError(f"{target} is a file; choose a folder to save the model in")
    if target.is_dir():
        names = {path.name for path in target.iterdir()}
        known = {CONFIG, *_read_config(target).sha256} if CONFIG in names else set()
        if strangers := sorted(names - known):
            raise SavedFileError(f"{target} holds other files ({strangers[0]}); choose an empty or new folder")
    existing = next(path for path in (target, *target.parents) if path.exists())
    if not existing.is_dir():
        raise SavedFileError(
            f"{existing} is a file, so {target} cannot be a folder; choose another place for the model"
        )
    if not os.access(existing, os.W_OK):
        raise PermissionError(f"cannot write to {existing}; choose another folder to save the model in")
    return target


def save_pretrained(model: LexicalSAE, folder: str | Path, attached: Mapping[str, str] | None = None) -> Path:
    """Write the model to a folder, whole or not at all; an older model in that place is replaced.

    `attached` are texts to keep beside the weights, by file name, hashed like them.
    """
    target = require_saveable(folder)
    if odd := next((n for n, t in _named_tensors(model).items() if t.dtype not in SAVED_DTYPES), None):
        raise SavedFileError(f"tensor {odd!r} is not in single precision; call model.float() before saving")
    target.parent.mkdir(parents=True, exist_ok=True)
    work = _new_sibling(target)
    try:
        save_file(_named_tensors(model), work / WEIGHTS, metadata={"format": "pt"})
        model.tokenizer.save_pretrained(work)
        if model.calibration is not None:
            model.calibration.save(work)
        for name, text in (attached or {}).items():
            with (work / name).open("x", encoding="utf-8") as file:
                file.write(text)
        saved = SavedModel(
            format_version=FORMAT_VERSION,
            written_by=lexical_sae.__version__,
            parts=model.config,
            backbone=_portable_config(model),
            labels=model.labels,
            output=model.output,  # pyright: ignore[reportArgumentType] - one of the registered kinds
            encoder=bundled_origin(model.config.name),
            sha256={path.name: sha256_of(path) for path in sorted(work.iterdir()) if path.is_file()},
        )
        signed = saved.model_copy(update={"own_sha256": digest(saved.model_dump(mode="json"))})
        (work / CONFIG).write_text(signed.model_dump_json(indent=2) + "\n", encoding="utf-8")
        # safetensors writes for the owner alone; a model may be read like any other file here.
        (work / WEIGHTS).chmod((work / CONFIG).stat().st_mode)
        _flush(work)
        _swap_in(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def saved_sha256(folder: str | Path) -> str:
    """The hash that stands for a saved model: of its settings, labels, and the hashes of all its other files."""
    load_plugins()
    return _read_config(Path(folder).expanduser()).own_sha256


def from_pretrained(folder: str | Path, *, mapped: bool = False) -> LexicalSAE:
    """The saved model, in evaluation mode on the CPU; a damaged, mixed-up or foreign folder is refused.

    With `mapped`, weights stay in the file, which the system maps into memory: processes that load the same model share
    it. Writing to a weight makes a private copy of its page, and never changes the file.
    """
    load_plugins()
    source = Path(folder).expanduser()
    saved = _read_config(source)
    _check_files(source, saved.sha256)
    _check_vocabulary(source / WEIGHTS, saved.backbone.get("vocab_size"))
    tokenizer = load_tokenizer(source)
    with torch.device("meta"):
        outline = _build(source, saved, tokenizer)
    _check_header(source / WEIGHTS, _named_tensors(outline))
    model = _build(source, saved, tokenizer)
    with open_safetensors(source / WEIGHTS) as file, torch.no_grad():
        for name, tensor in _named_tensors(model, detach=not mapped).items():
            if mapped:
                tensor.data = file.get_tensor(name)
            else:
                tensor.copy_(file.get_tensor(name))
    # Models saved by earlier versions have none.
    model.calibration = Calibration.load(source) if FIGURES in saved.sha256 else None
    return model.eval()


def _build(source: Path, saved: SavedModel, tokenizer: PreTrainedTokenizerBase) -> LexicalSAE:
    try:
        return LexicalSAE(saved.parts, backbone_from_config(saved.backbone, tokenizer), saved.labels, saved.output)
    # What transformers raises for a senseless architecture is of many kinds, and all mean the same here.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise SavedFileError(f"{source / CONFIG} describes no model that can be built ({reason})") from error


def _check_files(source: Path, expected: dict[str, str]) -> None:
    """The folder holds the saved files, each unchanged, and no other."""
    found = {path.name for path in source.iterdir()} - {CONFIG}
    for name in sorted(found | expected.keys() | {WEIGHTS}):
        path = source / name
        if name not in found:
            raise SavedFileError(f"{path} is missing; the folder is incomplete, copy or save the model again")
        if name not in expected:
            raise SavedFileError(f"{path} was not saved with this model; move it elsewhere")
        if (digest := sha256_of(path)) != expected[name]:
            raise SavedFileError(
                f"{path} is not the file that was saved (SHA-256 {digest[:12]}…, expected {expected[name][:12]}…); "
                "it was changed, truncated or swapped: restore the folder"
            )


def _check_vocabulary(path: Path, size: Any) -> None:
    """Some tensor must have a row per word: a made-up vocabulary size is refused before it costs memory."""
    with open_safetensors(path) as file:
        rows = {file.get_slice(name).get_shape()[0] for name in file.keys() if file.get_slice(name).get_shape()}  # noqa: SIM118
    if size not in rows:
        raise SavedFileError(f"config.json has {size!r} words, but no tensor in {path} has that many rows")


def _named_tensors(model: nn.Module, *, detach: bool = True) -> dict[str, Tensor]:
    """Every parameter and persistent buffer under one name; tied tensors appear once."""
    unique = {name for name, _ in model.named_parameters()} | {name for name, _ in model.named_buffers()}
    tensors = model.state_dict(keep_vars=True)
    return {name: tensor.detach() if detach else tensor for name, tensor in tensors.items() if name in unique}


def _portable_config(model: LexicalSAE) -> dict[str, Any]:
    config = json.loads(model.backbone.config.to_json_string(use_diff=False))
    return {key: value for key, value in config.items() if key not in ("_name_or_path", "auto_map")}


def _read_config(folder: Path) -> SavedModel:
    path = folder / CONFIG
    if not path.is_file():
        hint = f"; did you mean {folder / 'model'}?" if (folder / "model" / CONFIG).is_file() else ""
        raise SavedFileError(f"{folder} is not a saved model: it holds no {CONFIG}{hint}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SavedFileError(f"{folder} is not a saved model: {path} cannot be read ({error})") from error
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise SavedFileError(
            f"{path}, line {error.lineno}: not valid JSON ({error.msg}); restore the folder"
        ) from error
    version = raw.get("format_version") if isinstance(raw, dict) else None
    if version != FORMAT_VERSION:
        raise SavedFileError(
            f"{path} has format version {version!r}; this package reads version {FORMAT_VERSION}. "
            "Save the model again, or install the package version that wrote it"
        )
    try:
        saved = SavedModel.model_validate(raw)
    except ValidationError as error:
        raise SavedFileError(f"{path}: {first_complaint(error)}; restore the folder") from error
    if digest(raw) != saved.own_sha256:
        raise SavedFileError(f"{path} was changed after it was saved (SHA-256 differs); restore the folder")
    return saved


def _check_header(path: Path, outline: dict[str, Tensor]) -> None:
    """Compare names, shapes and types in the file's header with the model's, reading no tensor."""
    with open_safetensors(path) as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        found = {name: f"{piece.get_dtype()} {tuple(piece.get_shape())}" for name, piece in slices.items()}
    expected = {name: f"{SAVED_DTYPES[tensor.dtype]} {tuple(tensor.shape)}" for name, tensor in outline.items()}
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            wanted = expected.get(name, "absent")
            raise SavedFileError(
                f"{path}: tensor {name!r} is {found.get(name, 'absent')}, but config.json implies {wanted}"
            )


def _flush(folder: Path) -> None:
    """Ask the system to put every file on disk before the rename makes them visible."""
    for path in folder.iterdir():
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _new_sibling(target: Path) -> Path:
    """A new hidden folder beside the target, on the same disk, so that a rename can publish it."""
    folder = target.parent / f".{target.name}-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    return folder


def _swap_in(work: Path, target: Path) -> None:
    """Rename the finished folder into place; the model that stood there survives until the new one does."""
    if not target.exists():
        work.rename(target)
        return
    old = _new_sibling(target)
    target.rename(old / target.name)
    try:
        work.rename(target)
    except OSError:
        (old / target.name).rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
