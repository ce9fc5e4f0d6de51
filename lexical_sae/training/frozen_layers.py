"""Lower layers that do not learn: frozen, and while a run goes on their states are kept for every text it reads.

A base-size encoder fits a CPU this way: only the top layers have a backward pass, and only texts that were changed (a
masked word) go through the lower ones again. States are kept as they are, in single precision: in memory if they take
at most a quarter of what is free, else in a temporary file; where neither has room they are computed anew.
"""

import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lexical_sae.models.kept_states import CutEncoder, KeptStates, tokens_to_keep
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.training.preparation.batch_size import available_memory

logger = logging.getLogger(__name__)

MEMORY_SHARE, DISK_SHARE = 0.25, 0.5
"""Share of free memory, and of the free disk space of the temporary folder, that kept states may take."""


def freeze_lower(model: LexicalSAE, depth: int) -> None:
    """Fix the encoder's embeddings and so many of its layers, from the lowest; 0 fixes none."""
    if depth:
        CutEncoder(model.backbone.encoder, depth).freeze()


def freeze_embeddings(model: LexicalSAE) -> None:
    """Input embedding and decoder, one tensor in most models, stay as they are."""
    embedding: nn.Module = model.backbone.encoder.get_input_embeddings()  # pyright: ignore[reportCallIssue, reportAssignmentType]
    for weight in (embedding.weight, model.backbone.decoder.weight):
        weight.requires_grad_(False)  # pyright: ignore[reportCallIssue]


@contextmanager
def kept_lower_states(model: LexicalSAE, depth: int, texts: Sequence[Sequence[int]]) -> Iterator[None]:
    """Within, these texts go through the frozen layers once; with a depth of 0 nothing is kept.

    Args:
        model: Its lower layers are frozen (`freeze_lower`).
        depth: How many.
        texts: Token ids of the texts.
    """
    if not depth:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="lexical-sae-states-") as folder:
        store = _store(tokens_to_keep(texts), model, Path(folder))
        if store is not None:
            model.backbone.kept_states = KeptStates(CutEncoder(model.backbone.encoder, depth), texts, store)
        try:
            yield
        finally:
            model.backbone.kept_states = None


def _store(tokens: int, model: LexicalSAE, folder: Path) -> Float[Tensor, "T E"] | None:
    """Room for the states of so many tokens, in memory or in a file of this folder; None if there is none."""
    like = next(model.backbone.parameters())
    shape = tokens, model.backbone.encoder_width
    size = shape[0] * shape[1] * like.element_size()
    memory = available_memory(torch.device("cpu"))
    if memory is None or size <= MEMORY_SHARE * memory:
        return torch.empty(shape, dtype=like.dtype)
    if size <= DISK_SHARE * shutil.disk_usage(folder).free:
        return torch.from_file(str(folder / "states"), shared=True, size=shape[0] * shape[1], dtype=like.dtype).view(
            shape
        )
    logger.warning("no room for %.1f GB of states of frozen layers: they are computed anew in every pass", size / 1e9)
    return None
