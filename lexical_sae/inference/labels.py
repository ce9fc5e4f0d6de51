"""Labels and methods as people name them."""

from collections.abc import Iterable, Sequence
from typing import Any

from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.outputs import Classes
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.suggest import did_you_mean


def names_of(model: LexicalSAE) -> tuple[str, ...]:
    """What texts may get, in the model's order, whatever its output kind; a model without a head for texts is
    refused."""
    model.head(CLASSIFY)
    return model.labels[CLASSIFY]


def labels_of(model: LexicalSAE, what: str = "this") -> tuple[str, ...]:
    """The classes of texts in the model's order; models of other output kinds are refused, as what is asked has no
    meaning for them."""
    names = names_of(model)
    if not isinstance(model.output, Classes):
        raise SettingsError(
            f"{what} is for models that give a text one of several labels; this model has {model.output.title} "
            f"({', '.join(names)}), which predict, explain, evaluate and report are for"
        )
    return names


def label_index(labels: Sequence[str], label: Any, role: str) -> int:
    """Place of a label given by its name or its place; an unknown one is refused with the labels there are.

    Example: `label_index(("negative", "positive"), "positive", "target")` -> 1
    """
    known = ", ".join(map(repr, labels))
    if isinstance(label, str):
        if label not in labels:
            raise SettingsError(
                f"{role} {label!r} is not a label of this model{did_you_mean(label, labels)} It has: {known}"
            )
        return labels.index(label)
    # True would count as 1; arrays give their own kinds of whole numbers.
    if isinstance(label, bool) or not hasattr(label, "__index__"):
        raise SettingsError(f"{role} is {type(label).__name__} {label!r}; name a label ({known}) or give its place")
    if not 0 <= int(label) < len(labels):
        raise SettingsError(f"{role} {int(label)} is not the place of a label; there are {len(labels)}: {known}")
    return int(label)


def check_method(method: Any, methods: Iterable[str]) -> None:
    """Refuse a method that is none of these, with the nearest."""
    names = list(methods)
    if method not in names:
        raise SettingsError(f"method {method!r} is unknown{did_you_mean(str(method), names)} Choose {', '.join(names)}")
