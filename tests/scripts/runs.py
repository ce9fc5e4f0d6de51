"""What runs leave in their folders."""

import json

LABELS = ("negative", "neutral", "positive")
TEST = {"accuracy": 0.875, "majority": 0.5, "active_words": 44.1, "identity_error": 2e-7, "texts": 872, "texts_cut": 0}
INTERVAL = {"mean": 0.875, "low": 0.86, "high": 0.89, "count": 2}
SHARE = {"share": 0.9, "count": 10}
NAMES = {"texts": 200, "active_words": 45.2, "delete": {"passed": {"share": 0.965, "count": 9}, "shuffled": SHARE}}
NAMES |= {"follow": {"passed": SHARE, "shuffled": {"share": None, "count": 0}}}
NAMES |= dict.fromkeys(["own_words", "neighbourhood", "neighbourhood_chance", "function_words"], SHARE)
NAMES |= dict.fromkeys(["word_pieces", "sign_stability"], SHARE)
BASELINES = {
    "test_texts": 872,
    "baselines": {"TF-IDF": {"accuracy": 0.8, "setting": "C=1"}},
    "model": {"folder": "x", "accuracy": 0.875},
    "difference": {"TF-IDF": {"mean": 0.075, "low": 0.05, "high": 0.1}},
}
SOME = {"mean": 0.625, "low": 0.6, "high": 0.65, "count": 500}
SAME = {"agreement": SOME}
EVALUATION = {
    **{"data": "texts.csv", "split": "test", "texts": 500, "masking": None, "probes": None},
    "performance": {"accuracy": SOME, "majority": 0.5, "active_words": SOME, "texts_without_words": 3},
    "calibration": {"ece": SOME, "ece_by_chance_high": 0.02, "overconfidence": SOME},
    "verification": {"texts_beyond_tolerance": 0, "worst_relative_error": 1e-7}
    | {"same_sign": SOME, "effect_error": SOME},
    "completeness": {"empty": SAME, "sizes": [{"fraction": 0.1, "words": SOME, "circuit": SAME, "random": SAME}]},
    "removability": {"removed": [{"words": 1, "orders": dict.fromkeys(["direct", "leave_one_out", "random"], SOME)}]},
    "separation": {"cosine": None, "jaccard": None},
    "stability": {"all_edits": {"top_words": SOME}, "other_texts": {"top_words": SOME}},
    "ablation_sparsity": {"contributions": SOME},
    "downstream": {"delta": SOME},
}
EVALUATION["performance"]["texts_at_limit"] = 0
EVALUATION["removability"]["everything"] = SOME


def write(folder, name, value) -> None:
    (folder / name).write_text(json.dumps(value))
