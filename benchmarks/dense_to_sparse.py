"""From dense to sparse: `python -m benchmarks.dense_to_sparse FOLDER [RECIPE ...] [--rows N]`.

Each of the papers' four recipes is trained on SST-2 with the bundled encoder for one pass over N rows, three ways:
- from the recipe's own calibrated start, with the recipe's own pressure;
- from the plain start of the papers (every threshold at one constant, no offset), with the pressure of the second paper
  on: a sparsity-aware tau, and gates that learn five times faster than the encoder;
- from the plain start with both off. The plain runs use the learning rate of the calibrated one.

Active words, validation accuracy, tau and lambda are recorded along the way. The folder gets one JSON file per run,
`dense_to_sparse.json`, a table in Markdown (`.md`) and a figure (`.svg`). Runs that are finished are not repeated.
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch

from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.recipes import recipe_by_name
from lexical_sae.report.charts.svg import LINES, STYLE, Axis, Series, line_chart
from lexical_sae.runs import documents, load_data
from lexical_sae.runs.measuring.scoring import score
from lexical_sae.training.callbacks import Callbacks, Record
from lexical_sae.training.loop import Trainer
from lexical_sae.utils.device import set_seed
from lexical_sae.utils.files import write_text

RECIPES = ("cis", "lexical_sae", "transcoder", "cajt")
WAYS = (("calibrated", "as in the recipe"), ("plain", "on"), ("plain", "off"))
"""Start and pressure of each run."""
BOOST = 5.0
"""How much faster gates learn than the encoder while pressure is on."""
EVERY = 25
"""Steps between two looks at the validation texts."""
CURVES = dict(zip(WAYS, ("calibrated", "plain, on", "plain, off"), strict=True))
"""What the figure calls each."""
WIDTH, HEIGHT = 300, 240
"""Of a panel of the figure."""
Run = dict[str, Any]


class Quantity(NamedTuple):
    """What a row of the figure shows, and where a run has it."""

    title: str
    source: str
    key: str
    log: bool = False


QUANTITIES = (
    Quantity("active words", "steps", "active_words", log=True),
    Quantity("accuracy", "looks", "accuracy"),
    Quantity("tau", "steps", "tau", log=True),
    Quantity("lambda", "steps", "lambda"),
)


def main() -> None:
    asked = _arguments()
    asked.folder.mkdir(parents=True, exist_ok=True)
    runs: list[Run] = []
    for recipe, (start, pressure) in product(asked.recipe, WAYS):
        place = asked.folder / f"{recipe}-{start}-{pressure.replace(' ', '-')}.json"
        if not place.is_file():
            rate = None if start == "calibrated" else runs[-1]["learning rate"]
            write_text(place, json.dumps(measure(settings(recipe, start, pressure, asked.rows, rate))))
        named = {"recipe": recipe, "start": start, "pressure": pressure}
        runs.append({**named, **json.loads(place.read_text())})
        print(_row(runs[-1]), flush=True)
        write_text(asked.folder / "dense_to_sparse.json", json.dumps(runs))
        write_text(asked.folder / "dense_to_sparse.md", table(runs))
        write_text(asked.folder / "dense_to_sparse.svg", figure(runs))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The seed recipes from their plain and calibrated starts on SST-2.")
    parser.add_argument("folder", type=Path, help="where the figures go; what is finished there is not done again")
    parser.add_argument("recipe", nargs="*", default=RECIPES, help="by default all four")
    parser.add_argument("--rows", type=int, default=3200, help="training rows, one pass (default 3,200)")
    return parser.parse_args()


def settings(recipe: str, start: str, pressure: str, rows: int, rate: float | None) -> ExperimentConfig:
    """The recipe as it stands but for what is compared, at a given rate or the recipe's."""
    full = recipe_by_name(recipe)
    changes: dict[str, Any] = {"max_epochs": 1}
    model: dict[str, Any] = {"max_length": 64}
    if start == "plain":
        is_on = pressure == "on"
        controller = full.training.controller.model_copy(update={"sparsity_aware": is_on})
        changes |= {"calibrated_start": None, "controller": controller, "gate_rate": BOOST if is_on else 1.0}
        changes["learning_rate"] = rate
        model["gate"] = full.model.gate.model_copy(update={"offset": False})
    base = ExperimentConfig(recipe=recipe, model=full.model, training=full.training)
    return base.model_copy(
        update={
            "data": base.data.model_copy(update={"dataset_name": "sst2", "train_samples": rows}),
            "model": full.model.model_copy(update=model),
            "training": full.training.model_copy(update=changes),
        }
    )


def measure(config: ExperimentConfig) -> Run:
    """Train once and return the curve, with the figures of the model that was kept."""
    dataset = load_data(config, seed=0)
    set_seed(0)
    model = LexicalSAE.from_backbone(config.model, {CLASSIFY: dataset.label_names}, dataset.train.texts)
    train, validation = (documents(model, split) for split in (dataset.train, dataset.validation))
    steps: list[Record] = []
    looks: list[Record] = []
    rate: list[float] = []

    def on_record(record: Record) -> None:
        if record.get("event") == "learning rate found":
            rate.append(record["lr"])
        if "step" not in record:
            return
        steps.append({key: record.get(key) for key in ("step", "active_words", "ce", "lambda", "tau")})
        if record["step"] % EVERY == 0:
            with trainer.optimizer.averaged_weights():
                looks.append({"step": record["step"], **trainer.criterion.validate(model, validation)})
            model.train()
            trainer.criterion.train()

    started = time.process_time()
    first = model.gate.thresholds().detach().clone()
    trainer = Trainer(model, train, validation, config.training, seed=0, callbacks=Callbacks(on_record=on_record))
    reach = _needed_shift(trainer)
    best = trainer.run()
    tested = score(model, dataset.test)
    return {
        "rows": len(dataset.train.texts),
        "learning rate": rate[0] if rate else config.training.learning_rate,
        "shift needed": reach,
        "shift made": float((model.gate.thresholds().detach() - first).mean()),
        "validation": best.accuracy,
        "dev": tested.accuracy,
        "active words": tested.active_words,
        "seconds": time.process_time() - started,
        "steps": steps,
        "looks": looks,
    }


@torch.no_grad()
def _needed_shift(trainer: Trainer, words: int = 2000, texts: int = 64) -> float:
    """How far all thresholds must rise for `words` of a text's words to stay active, in logits."""
    model = trainer.model.eval()
    logits = trainer.train.encode(model, list(range(texts))).logits.masked_fill(model.gate.closed, -torch.inf)
    kth = logits.topk(words, dim=1).values[:, -1].mean()
    return float(kth - model.gate.thresholds().mean())


def table(runs: list[Run]) -> str:
    """One row per run, in Markdown."""
    head = (
        "| recipe | start | pressure | active words: first step | after warm-up | at the end | dev accuracy | "
        "tau, last step | lambda, last step | learning rate | thresholds rose by | needed for 2,000 words |"
    )
    return "\n".join([head, "|---" * 12 + "|", *map(_row, runs)]) + "\n"


def _row(run: Run) -> str:
    steps, constrained = run["steps"], [step for step in run["steps"] if step["tau"] is not None]
    last = constrained[-1]
    cells = (
        f"`{run['recipe']}`",
        run["start"],
        run["pressure"],
        f"{steps[0]['active_words']:,.0f}",
        f"{constrained[0]['active_words']:,.0f}",
        f"{run['active words']:,.0f}",
        f"{run['dev']:.1%}",
        f"{last['tau']:.3f}",
        f"{last['lambda']:.2f}",
        f"{run['learning rate']:.1e}",
        f"{run['shift made']:+.2f}",
        f"{run['shift needed']:+.2f}" if run["start"] == "plain" else "–",
    )
    return f"| {' | '.join(cells)} |"


def figure(runs: list[Run]) -> str:
    """One SVG: a column per recipe, a row per quantity, and in each panel a line per run of the recipe.

    Accuracy is that on validation texts.
    """
    recipes = list(dict.fromkeys(run["recipe"] for run in runs))
    panels = [
        f'<svg x="{WIDTH * column}" y="{HEIGHT * row}" width="{WIDTH}" height="{HEIGHT}">\n{drawn}</svg>'
        for row, quantity in enumerate(QUANTITIES)
        for column, recipe in enumerate(recipes)
        if (drawn := _panel(recipe, quantity, [run for run in runs if run["recipe"] == recipe]))
    ]
    size = f"{WIDTH * len(recipes)} {HEIGHT * len(QUANTITIES)}"
    # One style serves all panels.
    style = f"<style>{STYLE}{LINES}</style>"
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">'
    return "\n".join([opening, style, *(panel.replace(f"{style}\n", "") for panel in panels), "</svg>"]) + "\n"


def _panel(recipe: str, quantity: Quantity, runs: list[Run]) -> str:
    """The curves of one quantity; nothing before the first run has a value of it."""
    lines = [
        Series(CURVES[run["start"], run["pressure"]], *_points(run[quantity.source], quantity.key))
        for run in runs
        if any(record[quantity.key] is not None for record in run[quantity.source])
    ]
    axis = Axis("", log=quantity.log, from_zero=False)
    title = f"{recipe}: {quantity.title}"
    return line_chart(title, Axis("step"), axis, lines, width=WIDTH, height=HEIGHT) if lines else ""


def _points(records: list[Record], key: str, most: int = 12) -> tuple[list[float], list[float]]:
    """Steps and values, thinned to means over about equally many steps."""
    known = [(record["step"], record[key]) for record in records if record[key] is not None]
    count = min(most, len(known))
    groups = [known[i * len(known) // count : (i + 1) * len(known) // count] for i in range(count)]
    return tuple([sum(pair[axis] for pair in group) / len(group) for group in groups] for axis in (0, 1))  # pyright: ignore[reportReturnType]


if __name__ == "__main__":
    main()
