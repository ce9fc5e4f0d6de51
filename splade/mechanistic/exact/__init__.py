"""Exact answers about a decision, from the hidden layer alone.

Direct logit attribution (`splade.mechanistic.attribution`) says what each word contributes *at this input*. Two other
questions have exact answers too, and they differ from it because removing a word may switch hidden units:

    remove, leave_one_out    what happens to every logit when words are taken away (`removal`)
    interactions             what two words say together beyond what each says alone (`removal`)
    along_path               contributions averaged on the way from no words to all, with a fixed bias (`path`)

Each is asked in a direction over the classes: for one label, for a label against the average of all, for one label
rather than another (`directions`).
"""

from splade.mechanistic.exact.directions import (
    attribute_only,
    attribute_towards,
    class_centred,
    contrast,
    for_class,
    towards,
)
from splade.mechanistic.exact.forms import Head, sparse_form
from splade.mechanistic.exact.path import along_path
from splade.mechanistic.exact.removal import (
    ClassEffects,
    Interactions,
    Removal,
    interactions,
    leave_one_out,
    predict_removal,
    remove,
)
from splade.mechanistic.exact.word_sets import WordSets, strongest

__all__ = [
    "ClassEffects",
    "Head",
    "Interactions",
    "Removal",
    "WordSets",
    "along_path",
    "attribute_only",
    "attribute_towards",
    "class_centred",
    "contrast",
    "for_class",
    "interactions",
    "leave_one_out",
    "predict_removal",
    "remove",
    "sparse_form",
    "strongest",
    "towards",
]
