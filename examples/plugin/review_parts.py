"""A part of each kind, from a package of one's own: `pip install ./examples/plugin`.

    recipe: neighbours
    data: {dataset_name: invented_reviews, path: examples}
    model: {gate: {kind: square, initial_threshold: 0.5}}
    training: {objective: {terms: [mean_square]}, report_to: [printed]}

Without installing, `import review_parts` registers the same parts in Python.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import Tensor, nn

from lexical_sae.circuits.objective import register_term
from lexical_sae.circuits.term import CommonConfig, StepView, Term
from lexical_sae.data.sources.layouts import Tables
from lexical_sae.data.sources.registry import TextSpec, register_dataset
from lexical_sae.data.tables.formats import read_table
from lexical_sae.evaluation.explainers.explainer import ByFunction
from lexical_sae.evaluation.explainers.methods import register_explainer
from lexical_sae.evaluation.metrics.metric import Subject, sampled
from lexical_sae.evaluation.metrics.registry import register_metric
from lexical_sae.models.config import register_gate
from lexical_sae.models.layers.activation import Gate, GateOutput
from lexical_sae.training.callbacks import Callback, Record, register_tracker
from lexical_sae.utils.part import PartConfig


@register_term
class MeanSquare(Term):
    """Words stay weak: the mean square of their activations."""

    class Config(CommonConfig):
        kind: Literal["mean_square"] = "mean_square"

        def build(self, size: int, num_labels: int) -> "MeanSquare":
            del size, num_labels
            return MeanSquare()

    def forward(self, view: StepView) -> Tensor:
        return view.state.sparse_vector.square().mean()


@register_gate
class SquareGate(Gate):
    """The square of what lies above the threshold of a word."""

    class Config(PartConfig):
        kind: Literal["square"] = "square"
        initial_threshold: float = 0.0
        """Threshold of every word before training, in logits."""
        offset: bool = False
        """Whether each word also gets a learned offset."""

        def build(self, size: int) -> "SquareGate":
            return SquareGate(size, self)

    def __init__(self, size: int, config: Config) -> None:
        super().__init__(size, use_offset=config.offset)
        self.theta = nn.Parameter(self.closed.float() + config.initial_threshold)
        # A word may be active at a logit below zero.
        self.lowest_opening = -float("inf")

    def thresholds(self) -> Tensor:
        return self.theta

    def activate(self, z: Tensor, theta: Tensor) -> GateOutput:
        excess = (z - theta).relu()
        return GateOutput(excess.square(), (excess > 0).to(z.dtype), (z - theta).sigmoid())


@dataclass(frozen=True)
class TextLength:
    """How long the texts are."""

    characters: float
    """Mean number of characters."""


def _measure(subject: Subject) -> TextLength:
    lengths = [len(text) for text in subject.sample.texts]
    return TextLength(sum(lengths) / len(lengths))


register_metric(sampled("text_length", TextLength, _measure))

register_explainer(
    ByFunction(
        "activation alone",
        "how active a word is, whatever its weight",
        lambda case, _: case.state.code.values,
        is_in_logits=False,
    )
)


def _open(folder: Path) -> Tables:
    return Tables(read_table(folder / "reviews.csv"))


register_dataset(
    TextSpec(
        name="invented_reviews",
        files="reviews.csv: text, label",
        open_folder=_open,
        licence="MIT",
        reference="examples/reviews.csv of Lexical-SAE",
        label_names=("negative", "positive"),
    )
)


class Printed(Callback):
    """Prints the cross-entropy of every step."""

    def on_step(self, record: Record) -> None:
        print(f"step {record['step']}: {record['ce']:.3f}")


register_tracker("printed", Printed)
