"""Runs: an experiment's settings, what training leaves on disk, and everything that is measured of it.

run, folder         a run on disk: read, written
inputs, texts       the texts that an experiment names; those of a file for a model that is there already
unseen              keeps training texts out of measurements
experiment, seeds   trains and measures; a folder per seed
in_memory           trains without a folder
planning, weighting, joining, calibrating    what training settles before the first step, and after the last
measuring           scores, metrics, name tests, baselines
comparing           several experiments side by side, and sweeps
pages               report and explorer
tagging             the same for taggers
"""

from lexical_sae.runs.experiment import TrainedRun, run_experiment, setup_and_train, train_run
from lexical_sae.runs.inputs import documents, load_data, require_same_labels
from lexical_sae.runs.measuring.baselines import baselines_beside, compare_again, run_baselines
from lexical_sae.runs.measuring.name_tests import run_names
from lexical_sae.runs.measuring.paired import require_same_rows
from lexical_sae.runs.measuring.scoring import Scores, score
from lexical_sae.runs.run import Run
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
