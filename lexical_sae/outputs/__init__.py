"""What a model puts out for a text: one class of several, labels that are independent of one another, or a number.

    classes   one label per text         softmax          contributions to a class, against the mean of all
    labels    any number of labels       a sigmoid each   contributions to the label's own logit
    number    a number                   one logit        contributions to the number, in its own units

A model has one output kind (`LexicalSAE.output`), which is saved with it; models of earlier versions have classes. The
kind says what is learned (`loss`, `table_loss`), how it is decided (`probabilities`, `decided`), what is explained
(`direction`, `offset`) and what is reported (`figures`). Nothing else branches on it.
"""

from typing import Annotated

from pydantic import Field

from lexical_sae.outputs.classes import Classes
from lexical_sae.outputs.figures import Figure, LabelFigures, TaskScores
from lexical_sae.outputs.kind import OutputKind, Scored
from lexical_sae.outputs.labels import Labels
from lexical_sae.outputs.number import Number

CLASSES = Classes()
"""One label per text."""
OUTPUTS: dict[str, OutputKind] = {kind.kind: kind for kind in (CLASSES, Labels(), Number())}
"""Every output kind by its name, as it is before anything was fitted."""
AnyOutput = Annotated[Classes | Labels | Number, Field(discriminator="kind")]

__all__ = [
    "CLASSES",
    "OUTPUTS",
    "AnyOutput",
    "Classes",
    "Figure",
    "LabelFigures",
    "Labels",
    "Number",
    "OutputKind",
    "Scored",
    "TaskScores",
]
