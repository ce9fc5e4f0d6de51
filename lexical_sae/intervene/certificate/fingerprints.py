"""Hashes in a certificate: files, tensors, rows."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.downloads import sha256_of

CLOSED = "gate.closed"
"""Name of the suppression mask among a model's tensors."""


def hash_files(folder: str | Path) -> dict[str, str]:
    """SHA-256 of every file in a folder, by name."""
    return {path.name: sha256_of(path) for path in sorted(Path(folder).expanduser().iterdir()) if path.is_file()}


def hash_tensors(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and bytes."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def hash_closed(model: LexicalSAE) -> str:
    """SHA-256 of the suppression mask."""
    return hash_tensors({CLOSED: model.gate.closed})


def hash_input_embedding(model: LexicalSAE) -> str:
    """SHA-256 of the encoder's input embedding."""
    embedding: nn.Module = model.backbone.encoder.get_input_embeddings()  # pyright: ignore[reportCallIssue, reportAssignmentType]
    return hash_tensors(dict(embedding.named_parameters()))


def hash_others(model: LexicalSAE) -> str:
    """SHA-256 of every tensor but the suppression mask."""
    return hash_tensors({name: tensor for name, tensor in model.state_dict().items() if name != CLOSED})


def hash_rows(texts: Sequence[str], labels: Sequence[int] | None) -> str:
    """SHA-256 of texts, and labels if any, in their order."""
    found = hashlib.sha256()
    for row in zip(texts, labels, strict=True) if labels is not None else ((text,) for text in texts):
        found.update(json.dumps(row).encode() + b"\n")
    return found.hexdigest()
