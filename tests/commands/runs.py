"""What runs leave in their folders."""

import json

LABELS = ("negative", "neutral", "positive")
TEST = {"accuracy": 0.875, "majority": 0.5, "active_words": 44.1, "identity_error": 2e-7, "texts": 872, "texts_cut": 0}
INTERVAL = {"mean": 0.875, "low": 0.86, "high": 0.89, "count": 2}
SHARE = {"share": 0.9, "count": 10}
NAMES = {"texts": 200, "active_words": 45.2, "delete": {"passed": {"share": 0.965, "count": 9}, "shuffled": SHARE}}
NAMES |= {"follow": {"passed": SHARE, "shuffled": {"share": None, "count": 0}}}
NAMES |= dict.fromkeys(["own_words", "lexical_neighbours", "lexical_neighbours_chance", "function_words"], SHARE)
NAMES |= dict.fromkeys(["word_pieces", "sign_stability"], SHARE)
BASELINES = {
    "test_texts": 872,
    "baselines": {"TF-IDF": {"accuracy": 0.8, "setting": "C=1"}},
    "model": {"folder": "x", "accuracy": 0.875},
    "difference": {"TF-IDF": {"mean": 0.075, "low": 0.05, "high": 0.1}},
}


def write(folder, name, value) -> None:
    (folder / name).write_text(json.dumps(value))
