"""From settings to results: experiments, what is measured of their models, and several experiments side by side.

`inputs` reads the texts, `experiment` trains and `scoring` scores; `evaluating`, `naming` and `yardsticks` measure what
was trained, and `over_seeds` averages it. `variants` makes several experiments of one file, `measuring` runs each,
`comparison` sets them side by side.
"""

from splade.pipelines.experiment import TrainedRun, run_experiment, setup_and_train
from splade.pipelines.inputs import documents, load_data, model_folder, require_same_experiment, require_same_labels
from splade.pipelines.naming import run_names
from splade.pipelines.scoring import Scores, require_same_rows, score
from splade.pipelines.yardsticks import compare_again, run_baselines

__all__ = [
    "Scores",
    "TrainedRun",
    "compare_again",
    "documents",
    "load_data",
    "model_folder",
    "require_same_experiment",
    "require_same_labels",
    "require_same_rows",
    "run_baselines",
    "run_experiment",
    "run_names",
    "score",
    "setup_and_train",
]
