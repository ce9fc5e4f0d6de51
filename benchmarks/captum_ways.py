"""Captum's sampled explanations of the same model, at the input: integrated gradients and LIME.

They answer another question (tokens and words of the text, not words of the vocabulary); what is compared is cost.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from splade.data.batches import tokenise
from splade.data.words import lay_out
from splade.models.lexical_sae import LexicalSAE

STEPS, SAMPLES, AT_ONCE = 50, 1000, 50


def captum_ways(model: LexicalSAE) -> dict[str, Callable[[str], Any]]:
    """By name, a function that explains the predicted class of one text."""
    from captum.attr import LayerIntegratedGradients, Lime

    def decide(ids: Tensor) -> Tensor:
        return model.classify_document(ids.long(), torch.ones_like(ids, dtype=torch.bool)).logits

    lime = Lime(lambda ids: decide(ids).detach())
    mask_id = int(model.tokenizer.mask_token_id)  # pyright: ignore[reportArgumentType]

    def by_gradients(text: str) -> Tensor:
        ids = _ids(model, text)
        embeddings = model.backbone.encoder.get_input_embeddings()  # pyright: ignore[reportCallIssue]
        integrated = LayerIntegratedGradients(decide, embeddings)
        return integrated.attribute(
            ids, baselines=torch.full_like(ids, mask_id), target=_predicted(decide, ids), n_steps=STEPS
        )

    def by_lime(text: str) -> Tensor:
        ids = _ids(model, text)
        # A word goes as a whole, and so does what belongs to no word.
        layout = lay_out(model.tokenizer, text, ids[0].tolist())
        words = torch.tensor([[0 if word is None else word + 1 for word in layout.token_words]])
        return lime.attribute(
            ids.float(),
            baselines=float(mask_id),
            feature_mask=words,
            target=_predicted(decide, ids),
            n_samples=SAMPLES,
            perturbations_per_eval=AT_ONCE,
        )

    return {f"captum IG-{STEPS} at the embedding": by_gradients, f"captum LIME-{SAMPLES} of input words": by_lime}


def _ids(model: LexicalSAE, text: str) -> Tensor:
    return tokenise(model.tokenizer, [text], model.max_length).batch([0]).input_ids


@torch.no_grad()
def _predicted(decide: Callable[[Tensor], Tensor], ids: Tensor) -> int:
    return int(decide(ids).argmax())
