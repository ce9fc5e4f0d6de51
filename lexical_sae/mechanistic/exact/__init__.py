"""Exact answers about a decision, from the hidden layer alone.

Direct logit attribution (`lexical_sae.mechanistic.attribution`) is what each word contributes *at this input*. Two
other questions have exact answers too, and they differ from it because removing a word may switch hidden units:

    remove, leave_one_out    what happens to every logit when words are taken away (`removal`)
    along_path               contributions averaged on the way from no words to all, with a fixed bias (`path`)

Each is asked in a direction over the classes: for one label, for a label against the average of all, for one label
rather than another (`directions`).
"""

from lexical_sae.mechanistic.exact.directions import (
    attribute_only,
    attribute_towards,
    class_centered,
    contrast,
    for_class,
    towards,
)
from lexical_sae.mechanistic.exact.forms import Head
from lexical_sae.mechanistic.exact.path import along_path
from lexical_sae.mechanistic.exact.removal import (
    ClassEffects,
    Removal,
    leave_one_out,
    predict_removal,
    remove,
)
from lexical_sae.mechanistic.exact.word_sets import WordSets, strongest

__all__ = [
    "ClassEffects",
    "Head",
    "Removal",
    "WordSets",
    "along_path",
    "attribute_only",
    "attribute_towards",
    "class_centered",
    "contrast",
    "for_class",
    "leave_one_out",
    "predict_removal",
    "remove",
    "strongest",
    "towards",
]
