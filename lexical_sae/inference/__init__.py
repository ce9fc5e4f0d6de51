"""Predictions and their explanations, text by text.

    predict, predict_proba, score    labels, probabilities, accuracy
    explain, explain_stream          why: every active word, where it stands, what would happen without it
    explain_decided                  the same for every label that a text gets, where it may get several
    explain_windows                  the same for texts that are longer than the model reads
    explain_model_spans              words of the text with their scores
    find_reasons                     the fewest words that the decision hangs on, with proof

One text gives one answer, an iterable of texts a list in its order. Texts come from lists, generators, arrays or
columns, and are read in batches of similar length.
"""

from lexical_sae.inference.explaining import explain, explain_decided, explain_stream
from lexical_sae.inference.predicting import predict, predict_proba, score
from lexical_sae.inference.reasons import find_reasons
from lexical_sae.inference.spans import explain_model_spans
from lexical_sae.inference.windows import Window, explain_windows

__all__ = [
    "Window",
    "explain",
    "explain_decided",
    "explain_model_spans",
    "explain_stream",
    "explain_windows",
    "find_reasons",
    "predict",
    "predict_proba",
    "score",
]
