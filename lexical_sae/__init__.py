"""Lexical-SAE: text classification and tagging through a sparse layer of words.

    text > backbone > (expander) > gate > saturation > pool > head > CircuitState > attribution > explanation

Public names, loaded on first use:

    LexicalSAE                        the model; `from_pretrained(folder)`, `save_pretrained(folder)`
    load_config, setup_and_train      a model trained as an experiment file describes
    predict, predict_proba, explain   labels of texts, and the words behind them (an `Explanation` each)
    tag, explain_tags                 the same for the words of sentences
    find_reasons                      the fewest words that change the decision, or are enough for it
    SuppressedModel, suppress_token_globally   the model without some words
    CircuitState                      a decision with everything it is computed from
    compute_attribution_tensor, identity_error   contributions, and how exactly they add up
    load_text_dataset, read_text_dataset, load_tagged_dataset
    evaluate                          every metric of a model on labelled texts
    LexicalClassifier, LexicalRegressor, LexicalVectorizer, LexicalTagger   scikit-learn estimators
    find_label_issues                 labels that are probably wrong, by rows and by words
    certify, verify                   what an edit changed, in a file that others can check
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lexical_sae.config.load import load_config
    from lexical_sae.data import load_tagged_dataset, load_text_dataset, read_text_dataset
    from lexical_sae.evaluation.suite import evaluate
    from lexical_sae.explanation import Explanation
    from lexical_sae.inference import explain, find_reasons, predict, predict_proba
    from lexical_sae.inference.tag_explaining import explain_tags
    from lexical_sae.inference.tagging import tag
    from lexical_sae.intervene import SuppressedModel, suppress_token_globally
    from lexical_sae.intervene.certificate import certify, verify
    from lexical_sae.mechanistic.attribution import compute_attribution_tensor, identity_error
    from lexical_sae.models.circuit_state import CircuitState
    from lexical_sae.models.lexical_sae import LexicalSAE
    from lexical_sae.runs import setup_and_train
    from lexical_sae.sklearn import (
        LexicalClassifier,
        LexicalRegressor,
        LexicalTagger,
        LexicalVectorizer,
        find_label_issues,
    )

__version__ = "0.1.0"

__all__ = [
    "CircuitState",
    "Explanation",
    "LexicalClassifier",
    "LexicalRegressor",
    "LexicalSAE",
    "LexicalTagger",
    "LexicalVectorizer",
    "SuppressedModel",
    "__version__",
    "certify",
    "compute_attribution_tensor",
    "evaluate",
    "explain",
    "explain_tags",
    "find_label_issues",
    "find_reasons",
    "identity_error",
    "load_config",
    "load_tagged_dataset",
    "load_text_dataset",
    "predict",
    "predict_proba",
    "read_text_dataset",
    "setup_and_train",
    "suppress_token_globally",
    "tag",
    "verify",
]

# The same imports again, for run time: importing the package must not wait for torch.
_HOMES = {
    "CircuitState": "models.circuit_state",
    "Explanation": "explanation",
    "LexicalClassifier": "sklearn",
    "LexicalRegressor": "sklearn",
    "LexicalSAE": "models.lexical_sae",
    "LexicalTagger": "sklearn",
    "LexicalVectorizer": "sklearn",
    "SuppressedModel": "intervene",
    "certify": "intervene.certificate",
    "compute_attribution_tensor": "mechanistic.attribution",
    "evaluate": "evaluation.suite",
    "explain": "inference",
    "explain_tags": "inference.tag_explaining",
    "find_label_issues": "sklearn",
    "find_reasons": "inference",
    "identity_error": "mechanistic.attribution",
    "load_config": "config.load",
    "load_tagged_dataset": "data",
    "load_text_dataset": "data",
    "predict": "inference",
    "predict_proba": "inference",
    "read_text_dataset": "data",
    "setup_and_train": "runs",
    "suppress_token_globally": "intervene",
    "tag": "inference.tagging",
    "verify": "intervene.certificate",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"lexical_sae.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'lexical_sae' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
