"""Saving and loading a model: safetensors and JSON only, everything checked before anything is allocated.

A saved folder holds `model.safetensors`, `config.json` and the tokenizer's files. `config.json` names the format
version, the parts, the backbone's architecture, the labels, and the SHA-256 of every other file.
"""

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, ValidationError
from safetensors.torch import save_file
from torch import Tensor, nn

import splade
from splade.fetch import sha256_of
from splade.models.backbone import backbone_from_config, load_tokenizer, open_safetensors
from splade.models.config import ModelConfig
from splade.models.lexical_sae import LexicalSAE
from splade.models.part import PartConfig

FORMAT_VERSION = 1
WEIGHTS, CONFIG = "model.safetensors", "config.json"


class SavedModel(PartConfig):
    """What `config.json` of a saved model says."""

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
    sha256: dict[str, str] = Field(min_length=1)
    """Hash of every other file in the folder."""


def save_pretrained(model: LexicalSAE, folder: str | Path) -> Path:
    """Write the model to a folder, whole or not at all; an older model in that place is replaced."""
    target = Path(folder)
    if target.exists() and any(target.iterdir()) and not (target / CONFIG).is_file():
        raise ValueError(f"{target} holds other files; choose an empty or new folder to save the model in")
    target.parent.mkdir(parents=True, exist_ok=True)
    work = _new_sibling(target)
    try:
        save_file(_named_tensors(model), work / WEIGHTS, metadata={"format": "pt"})
        model.tokenizer.save_pretrained(work)
        saved = SavedModel(
            format_version=FORMAT_VERSION,
            written_by=splade.__version__,
            parts=model.config,
            backbone=_portable_config(model),
            labels=model.labels,
            sha256={path.name: sha256_of(path) for path in sorted(work.iterdir()) if path.is_file()},
        )
        (work / CONFIG).write_text(saved.model_dump_json(indent=2) + "\n", encoding="utf-8")
        # safetensors writes for the owner alone; a model may be read like any other file here.
        (work / WEIGHTS).chmod((work / CONFIG).stat().st_mode)
        _flush(work)
        _swap_in(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def from_pretrained(folder: str | Path) -> LexicalSAE:
    """The saved model, in evaluation mode on the CPU; a damaged, mixed-up or foreign folder is refused."""
    source = Path(folder)
    saved = _read_config(source)
    for name, expected in saved.sha256.items():
        path = source / name
        if not path.is_file():
            raise ValueError(f"{path} is missing; the folder is incomplete, copy or save the model again")
        if (found := sha256_of(path)) != expected:
            raise ValueError(
                f"{path} is not the file that was saved (SHA-256 {found[:12]}…, expected {expected[:12]}…); "
                "it was changed, truncated or swapped: restore the folder"
            )
    tokenizer = load_tokenizer(source)
    with torch.device("meta"):
        outline = LexicalSAE(saved.parts, backbone_from_config(saved.backbone, tokenizer), saved.labels)
    _check_header(source / WEIGHTS, {name: tensor.shape for name, tensor in _named_tensors(outline).items()})
    model = LexicalSAE(saved.parts, backbone_from_config(saved.backbone, tokenizer), saved.labels)
    with open_safetensors(source / WEIGHTS) as file, torch.no_grad():
        for name, tensor in _named_tensors(model).items():
            tensor.copy_(file.get_tensor(name))
    return model.eval()


def _named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter and persistent buffer under one name; tied tensors appear once."""
    unique = {name for name, _ in model.named_parameters()} | {name for name, _ in model.named_buffers()}
    return {name: tensor.detach() for name, tensor in model.state_dict().items() if name in unique}


def _portable_config(model: LexicalSAE) -> dict[str, Any]:
    config = json.loads(model.backbone.config.to_json_string(use_diff=False))
    return {key: value for key, value in config.items() if key not in ("_name_or_path", "auto_map")}


def _read_config(folder: Path) -> SavedModel:
    path = folder / CONFIG
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{folder} is not a saved model: {path} cannot be read ({error})") from error
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not valid JSON ({error.msg}); restore the folder") from error
    version = raw.get("format_version") if isinstance(raw, dict) else None
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version!r}; this package reads version {FORMAT_VERSION}. "
            "Save the model again, or install the package version that wrote it"
        )
    try:
        return SavedModel.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{path}: {place}: {first['msg']}; restore the folder") from error


def _check_header(path: Path, expected: dict[str, torch.Size]) -> None:
    """Compare names and shapes in the file's header with the model's, reading no tensor."""
    with open_safetensors(path) as file:
        found = {name: torch.Size(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            shapes = [tuple(s) if s is not None else "absent" for s in (found.get(name), expected.get(name))]
            raise ValueError(f"{path}: tensor {name!r} is {shapes[0]}, but config.json asks for {shapes[1]}")


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
