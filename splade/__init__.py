"""Lexical-SAE: text classification and tagging through a sparse layer of words.

    text > backbone > (expander) > gate > saturation > pool > head > CircuitState > attribution > explanation

Public names, loaded when first used:

    LexicalSAE        the model; `LexicalSAE.from_pretrained(folder)`, `model.save_pretrained(folder)`
    predict, predict_proba, explain   labels of texts, and the words behind them
    SuppressedModel, suppress_token_globally   the model without some words
    CircuitState      a decision, taken apart exactly
    compute_attribution_tensor, identity_error
    load_text_dataset, load_tagged_dataset
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "LexicalSAE": "splade.models.lexical_sae",
    "explain": "splade.inference",
    "predict": "splade.inference",
    "predict_proba": "splade.inference",
    "SuppressedModel": "splade.intervene",
    "suppress_token_globally": "splade.intervene",
    "CircuitState": "splade.circuits.core",
    "compute_attribution_tensor": "splade.mechanistic.attribution",
    "identity_error": "splade.mechanistic.attribution",
    "load_text_dataset": "splade.data",
    "load_tagged_dataset": "splade.data",
}
__all__ = ["__version__", *_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    # Importing the package must not wait for torch.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'splade' has no attribute {name!r}")
