"""What an input embedding says of a word's state before any text was read.

Words of the vocabulary are read alone in the pretrained encoder, and a ridge regression predicts their states from
their input embeddings. Neither texts nor labels are needed, so a word that few training texts can say nothing of still
has a vector worth something.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lexical_sae.models.lexical_sae import LexicalSAE

WORDS = 4000
"""Words that are read alone, at most, drawn at random: seconds on a CPU."""
BATCH = 256


def prior_map(model: LexicalSAE, ridge: float) -> Float[Tensor, "D1 E"]:
    """From an input embedding, and a one for the bias, to the state of its word read alone."""
    tokens = _words(model)
    embeddings = model.backbone.input_embeddings()[tokens].double().cpu()
    X = torch.cat([embeddings, torch.ones_like(embeddings[:, :1])], dim=1)
    A = X.T @ X + ridge * torch.eye(X.shape[1], dtype=X.dtype)
    return torch.linalg.solve(A, X.T @ _states_alone(model, tokens))


def _words(model: LexicalSAE) -> Int[Tensor, " W"]:
    """Tokens that are whole words, the same for the same vocabulary."""
    words = model.dimensions.vocabulary.word_mask.nonzero().flatten().cpu().numpy()
    return torch.from_numpy(np.sort(np.random.default_rng(0).permutation(words)[:WORDS]))


@torch.no_grad()
def _states_alone(model: LexicalSAE, tokens: Int[Tensor, " W"]) -> Float[Tensor, "W E"]:
    """The encoder's state of each token between the special tokens of an empty text."""
    empty = torch.tensor(model.tokenizer("")["input_ids"], dtype=torch.long)
    place = len(empty) // 2
    device, found = next(model.parameters()).device, []
    for some in tokens.split(BATCH):
        frame = empty.expand(len(some), -1)
        ids = torch.cat([frame[:, :place], some[:, None], frame[:, place:]], dim=1).to(device)
        states = model.encoder_states(ids, torch.ones_like(ids, dtype=torch.bool))
        found.append(states[:, place].double().cpu())
    return torch.cat(found)
