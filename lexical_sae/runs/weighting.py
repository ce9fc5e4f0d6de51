"""Class weights: rare classes may count as much as frequent ones."""

from collections import Counter
from dataclasses import replace
from typing import Literal

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.outputs import CLASSES, OUTPUTS
from lexical_sae.utils.errors import SettingsError

ClassWeight = Literal["balanced"] | dict[str, float] | None


def with_class_weights(dataset: TextDataset, class_weight: ClassWeight) -> TextDataset:
    """The same texts, each counting as its class does; training and validation alike, with a mean of one.

    Example: 90 texts of one class and 10 of another, balanced -> weights of 0.56 and 5
    """
    if class_weight is None:
        return dataset
    if dataset.output != CLASSES.kind:
        raise SettingsError(
            f"training.class_weight is for texts with {CLASSES.title}, and {dataset.name} has "
            f"{OUTPUTS[dataset.output].title}; leave it out"
        )
    names = dataset.label_names
    if class_weight == "balanced":
        counts = Counter(dataset.train.labels)
        weights = [1 / counts[label] if counts[label] else 0.0 for label in range(len(names))]
    else:
        if unknown := sorted(class_weight.keys() - set(names)):
            raise SettingsError(
                f"training.class_weight names {', '.join(map(repr, unknown))}, but the classes of {dataset.name} are "
                f"{', '.join(names)}"
            )
        weights = [class_weight.get(name, 1.0) for name in names]
    mean = sum(weights[label] for label in dataset.train.labels) / len(dataset.train)

    def weighted(split: TextSplit) -> TextSplit:
        given = split.weights or (1.0,) * len(split)
        found = (weight * weights[label] / mean for weight, label in zip(given, split.labels, strict=True))
        return replace(split, weights=tuple(found))

    return replace(dataset, train=weighted(dataset.train), validation=weighted(dataset.validation))
