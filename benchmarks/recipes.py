"""The recipes compared on 20,000 rows of SST-2: `python -m benchmarks.recipes FOLDER [RECIPE ...] [--seed N]`.

Each is trained with and without its terms (`objective.terms` empty). Then every term of the recipe is measured on the
validation texts of both models, with trackers that saw the same random training texts, and so are accuracy, active
words, the constrained cross-entropy and feature names. Finished runs are not repeated.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from lexical_sae.circuits.geco import FEASIBLE_WITHIN
from lexical_sae.circuits.objective import Objective
from lexical_sae.config.load import load_config
from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.data.batches import length_buckets, shuffled_buckets
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.models.persistence import from_pretrained
from lexical_sae.runs import Run, documents, load_data, run_experiment, run_names
from lexical_sae.runs.folder import CONFIG, write_json
from lexical_sae.training.loss.criterion import Criterion
from lexical_sae.training.settings import TrainingConfig
from lexical_sae.training.tasks import Documents

EXPERIMENTS = Path(__file__).parent.parent / "experiments" / "cpu"
RECIPES = ("cis", "lexical_sae", "transcoder", "cajt", "neighbours")
TRACKED_BATCHES = 64
"""Of training texts: more than the steps before `frequency` starts."""


def main() -> None:
    asked = _arguments()
    configs = {
        recipe: _with_seed(load_config(EXPERIMENTS / f"sst2_{recipe}.yaml"), asked.seed) for recipe in asked.recipe
    }
    rows = []
    for name, vary in (("as it is", lambda training: training), ("nothing asked", _nothing_asked)):
        for recipe, config in configs.items():
            folder = asked.folder / name.replace(" ", "-") / recipe
            varied = config.model_copy(update={"training": vary(config.training), "output_dir": str(folder)})
            rows.append({"recipe": recipe, "terms": name, **measure(varied, asked=config.training)})
            print(json.dumps(rows[-1]), flush=True)
            write_json(asked.folder / "recipes.json", rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The recipes side by side on 20,000 rows of SST-2.")
    parser.add_argument("folder", type=Path, help="models and recipes.json go there; another folder for another seed")
    parser.add_argument("recipe", nargs="*", default=RECIPES, help="by default all five")
    parser.add_argument("--seed", type=int, default=0, help="of the rows, of the order and of the head's first weights")
    return parser.parse_args()


def _with_seed(config: ExperimentConfig, seed: int) -> ExperimentConfig:
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update={"seeds": (seed,)})})


def _nothing_asked(training: TrainingConfig) -> TrainingConfig:
    return training.model_copy(update={"objective": Objective.Config()})


def measure(config: ExperimentConfig, asked: TrainingConfig) -> dict[str, float | str | None]:
    """Figures of one model, trained first if it is not there; `asked` says which terms to measure."""
    place = Path(config.output_dir)
    results = run_experiment(config, resume=(place / CONFIG).is_file())
    names_file = place / "names.json"
    names = json.loads(names_file.read_text()) if names_file.is_file() else run_names(Run.of(config), texts=100)
    tau, ce = results["tau_ce"], results["validation"]["ce"]
    return {
        "dev": results["test"]["accuracy"],
        "active words": results["test"]["active_words"],
        "validation ce": ce,
        "tau": tau,
        "kept": None if tau is None else ce <= FEASIBLE_WITHIN * tau,
        "seconds": results["seconds"],
        "delete": names["model"]["delete"]["passed"]["share"],
        "follow": names["model"]["follow"]["passed"]["share"],
        "function words": names["model"]["function_words"]["share"],
        **terms(config, asked),
    }


@torch.no_grad()
def terms(config: ExperimentConfig, asked: TrainingConfig) -> dict[str, float]:
    """The terms on validation texts, once the trackers saw some training texts."""
    dataset = load_data(config, config.evaluation.seeds[0])
    model = from_pretrained(Path(config.output_dir) / "model")
    criterion = Criterion(model, CLASSIFY, asked, steps=(1, 1, 1)).train()
    train = documents(model, dataset.train)
    # By lot: centroids remember their last batches best, which must not be the shortest texts.
    for rows in shuffled_buckets(train.texts, 64, np.random.default_rng(0))[:TRACKED_BATCHES]:
        criterion.ask(model, train.encode(model, rows))
    validation = documents(model, dataset.validation)
    found = criterion.validate(model, validation)
    values = {term.kind: found[term.kind] for term in asked.objective.terms}
    return values | completeness_as_trained(criterion, model, validation)


def completeness_as_trained(criterion: Criterion, model: LexicalSAE, task: Documents) -> dict[str, float]:
    """Completeness as it is asked for in training: of the true label's circuit, unless the term says `of_prediction`.

    Evaluation always takes that of the predicted class: the circuit of a wrong prediction speaks for the wrong class,
    and the better circuits are, the more loudly.
    """
    kinds = [kind for kind in criterion.objective.terms if kind.startswith("completeness")]
    for kind in kinds:
        criterion.objective.terms[kind].train()
    sums = dict.fromkeys(kinds, 0.0)
    for rows in length_buckets(task.texts, 64):
        values = criterion.ask(model, task.encode(model, rows)).values
        for kind in kinds:
            sums[kind] += len(rows) * values[kind].item()
    return {f"{kind} as trained": total / len(task.texts) for kind, total in sums.items()}


if __name__ == "__main__":
    main()
