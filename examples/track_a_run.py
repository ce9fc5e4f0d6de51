"""Send the figures of a run elsewhere: MLflow and Weights & Biases, in ten lines each.

A callback that raises is left out from then on; the run goes on. TensorBoard is built in: `report_to: [tensorboard]`.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from lexical_sae import LexicalClassifier
from lexical_sae.training.callbacks import Begun, Callback, Record


def numbers(record: Record) -> dict[str, float]:
    """What a curve can be drawn of."""
    return {name: value for name, value in record.items() if isinstance(value, int | float)}


class MLflow(Callback):
    """Curves in MLflow: `pip install mlflow`."""

    def on_begin(self, begun: Begun) -> None:
        import mlflow

        mlflow.log_params({"seed": begun.seed, "learning_rate": begun.settings["learning_rate"]})

    def on_step(self, record: Record) -> None:
        import mlflow

        mlflow.log_metrics(numbers(record), step=record["step"])


class WeightsAndBiases(Callback):
    """Curves in Weights & Biases: `pip install wandb`."""

    run: Any = None

    def on_begin(self, begun: Begun) -> None:
        import wandb

        self.run = wandb.init(project="reviews", config=dict(begun.settings))

    def on_step(self, record: Record) -> None:
        self.run.log(numbers(record), step=record["step"])

    def on_end(self, record: Record) -> None:
        self.run.summary.update(numbers(record))
        self.run.finish()


class Losses(Callback):
    """Prints the cross-entropy of every step, and the accuracy of every epoch."""

    def on_step(self, record: Record) -> None:
        print(f"step {record['step']}: {record['ce']:.3f}")

    def on_epoch(self, record: Record) -> None:
        print(f"epoch {record['epoch']}: {record['accuracy']:.0%} of the validation texts")


frame = pd.read_csv(Path(__file__).parent / "reviews.csv")
clf = LexicalClassifier(max_epochs=1, random_state=0)
clf.fit(frame["text"], frame["label"], callbacks=[Losses()])  # or [MLflow()], or [WeightsAndBiases()]
