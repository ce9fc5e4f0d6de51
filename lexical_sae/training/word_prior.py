"""What an input embedding says of a word's state before any text was read.

Words of the vocabulary are read alone in the pretrained encoder, and a ridge regression predicts their states from
their input embeddings. Neither texts nor labels are needed, so a word that few training texts can say nothing of still
has a vector worth something. The regression depends on the encoder alone and is kept in the cache folder, under a hash
of the encoder's weights.
"""

import hashlib
import logging
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from lexical_sae.data.encoding import encode
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.downloads import made_once

logger = logging.getLogger(__name__)

WORDS = 4000
"""Words that are read alone, at most, drawn at random: seconds on a CPU."""
BATCH = 256
FRAME = 8
"""More tokens than the special ones of any text."""
FILE, MAP = "prior.safetensors", "map"


def prior_map(model: LexicalSAE, ridge: float) -> Float[Tensor, "D1 E"]:
    """From an input embedding, and a one for the bias, to the state of its word read alone; for a model that is in
    evaluation mode."""
    tokens = _words(model)
    if len(tokens) < WORDS:
        return _fitted(model, tokens, ridge)
    return _kept(f"word-prior-{_digest(model, tokens, ridge)}", lambda: _fitted(model, tokens, ridge))


def _fitted(model: LexicalSAE, tokens: Int[Tensor, " W"], ridge: float) -> Float[Tensor, "D1 E"]:
    embeddings = model.backbone.input_embeddings()[tokens].double().cpu()
    X = torch.cat([embeddings, torch.ones_like(embeddings[:, :1])], dim=1)
    A = X.T @ X + ridge * torch.eye(X.shape[1], dtype=X.dtype)
    return torch.linalg.solve(A, X.T @ _states_alone(model, tokens)).contiguous()


def _kept(name: str, make: Callable[[], Float[Tensor, "D1 E"]]) -> Float[Tensor, "D1 E"]:
    """The map in this folder of the cache, made the first time; without a usable cache, made every time."""
    try:
        folder = made_once(name, lambda folder: save_file({MAP: make()}, folder / FILE))
        # Not mapped into memory: a file that somebody damages meanwhile would end the process.
        return load_file(folder / FILE)[MAP].clone()
    except (OSError, SafetensorError, KeyError) as error:
        logger.warning("what words say alone is not kept in the cache (%s: %s)", type(error).__name__, error)
        return make()


def _digest(model: LexicalSAE, tokens: Int[Tensor, " W"], ridge: float) -> str:
    """A hash of all that the map depends on."""
    found, device = hashlib.sha256(), next(model.parameters()).device.type
    autocast = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    found.update(repr((_empty(model), tokens.tolist(), ridge, device, autocast)).encode())
    for name, weights in sorted(model.backbone.encoder.state_dict().items()):
        found.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
        found.update(weights.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return found.hexdigest()[:16]


def _empty(model: LexicalSAE) -> list[int]:
    """The special tokens of a text without words."""
    (found,) = encode(model.tokenizer, [""], FRAME)
    return found.ids


def _words(model: LexicalSAE) -> Int[Tensor, " W"]:
    """Tokens that are whole words, the same for the same vocabulary."""
    words = model.dimensions.vocabulary.word_mask.nonzero().flatten().cpu().numpy()
    return torch.from_numpy(np.sort(np.random.default_rng(0).permutation(words)[:WORDS]))


@torch.no_grad()
def _states_alone(model: LexicalSAE, tokens: Int[Tensor, " W"]) -> Float[Tensor, "W E"]:
    """The encoder's state of each token between the special tokens of an empty text."""
    empty = torch.tensor(_empty(model), dtype=torch.long)
    place = len(empty) // 2
    device, found = next(model.parameters()).device, []
    for some in tokens.split(BATCH):
        frame = empty.expand(len(some), -1)
        ids = torch.cat([frame[:, :place], some[:, None], frame[:, place:]], dim=1).to(device)
        states = model.encoder_states(ids, torch.ones_like(ids, dtype=torch.bool))
        found.append(states[:, place].double().cpu())
    return torch.cat(found)
