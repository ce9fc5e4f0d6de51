"""Runs: an experiment's settings, what training leaves on disk, and everything that is measured of it.

`run` is a run on disk; `folder` writes one. `inputs` loads its texts, `experiment` trains and measures it, `seeds` runs
every seed. `evaluating`, `name_tests`, `calibrating`, `baselines` and `post_hoc_sae` measure, `report` writes the page,
`unseen` keeps training texts out of measurements on other texts (`texts`). `variants` makes several experiments of one
file, `summary` runs each, `comparison` and `sweep` compare them.
"""

from lexical_sae.runs.baselines import baselines_beside, compare_again, run_baselines
from lexical_sae.runs.experiment import TrainedRun, run_experiment, setup_and_train, train_run
from lexical_sae.runs.inputs import documents, load_data, require_same_labels
from lexical_sae.runs.name_tests import run_names
from lexical_sae.runs.run import Run
from lexical_sae.runs.scoring import Scores, require_same_rows, score
from lexical_sae.runs.unseen import UnseenTexts, unseen_texts

__all__ = [
    "Run",
    "Scores",
    "TrainedRun",
    "UnseenTexts",
    "compare_again",
    "documents",
    "load_data",
    "require_same_labels",
    "require_same_rows",
    "baselines_beside",
    "run_baselines",
    "run_experiment",
    "run_names",
    "score",
    "setup_and_train",
    "train_run",
    "unseen_texts",
]
