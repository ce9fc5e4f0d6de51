"""A made-up evaluation with every field, as `evaluation.json` has it."""

from typing import Any

from lexical_sae.evaluation.results import EvaluationResults


def interval(mean: float | None = 0.5) -> dict[str, Any]:
    ends = {"low": None, "high": None} if mean is None else {"low": mean - 0.05, "high": mean + 0.05}
    return {"mean": mean, **ends, "count": 500}


def remaining(agreement: float) -> dict[str, Any]:
    names = ("accuracy", "relative_accuracy", "kl", "recovered")
    return {"agreement": interval(agreement), **{name: interval() for name in names}}


def likeness() -> dict[str, Any]:
    return {name: interval() for name in ("same_label", "top_words", "contributions")}


def eraser_scores() -> dict[str, Any]:
    return {"comprehensiveness": interval(), "sufficiency": interval()}


def erasure(mean: float) -> dict[str, Any]:
    parts = ("comprehensiveness", "sufficiency", "flips", "advantage")
    return {**{part: interval(mean) for part in parts}, "between_seeds": None, "budgets": []}


def compared(name: str) -> dict[str, Any]:
    """A comparison of attribution methods; of it an evaluation's page shows the most important figures."""
    methods = ("direct", "input_lime")
    ranks = ("error", "spearman", "kendall", "top_word")
    return {
        **{"texts": 10, "texts_without_words": 1, "labels": [name], "seed": 3, "seeds": 1, "seconds": 1.5},
        **{"explainers": {method: {"about": name, "is_drawn": False} for method in methods}},
        **{"left_out": [name], "prediction_milliseconds": interval(5.0), "rationales": {}, "schema_version": 1},
        "removal": {"direct": {**{rank: interval(0.9) for rank in ranks}, "erasure": erasure(0.5)}},
        "deletion": {method: {"erasure": erasure(0.3)} for method in methods},
        "cost": {method: {"milliseconds": interval(1.5), "megabytes": interval(None)} for method in methods},
        "checks": {
            **{"leave_one_out_is_first": True, "random_is_last": True},
            "direct_minus_gradient_times_activation": 2e-8,
        },
    }


def evaluation(name: str = "ordinary") -> dict[str, Any]:
    """Everything that is measured; `name` stands wherever a string from outside can stand."""
    orders = ("direct", "leave_one_out", "random")
    return {
        **{"model": "a folder", "data": name, "split": "test", "most_texts": 500, "texts": 490},
        **{"labels": [name, "positive"], "seed": 3, "schema_version": 1, "seconds": {"reading": 1.5}},
        "performance": {
            **{"accuracy": interval(0.8), "active_words": interval(31.0)},
            **{"majority": 0.51, "macro_f1": 0.79, "texts_without_words": 3, "texts_at_limit": 4},
            "classes": [{"label": name, "texts": 240, "precision": 0.81, "recall": 0.82, "f1": 0.83}],
        },
        "context": {key: interval(0.7) for key in ("context_free", "shifts", "texts_without")},
        "calibration": {
            **{key: interval(0.1) for key in ("ece", "overconfidence", "brier", "log_loss")},
            **{"ece_by_chance": 0.03, "ece_by_chance_high": 0.04},
            "curve": [
                {"low": low, "high": low + 0.1, "texts": texts, "confidence": low + 0.06, "accuracy": interval(low)}
                for low, texts in ((0.6, 13), (0.9, 1234))
            ],
        },
        "selective": {
            "points": [
                {
                    "coverage": share,
                    "texts": round(1070 * share),
                    "least_confidence": 1.2 - share,
                    "accuracy": 1 - share / 5,
                }
                for share in (0.9, 0.5)
            ],
            **{"aurc": 0.061, "error": 0.2, "warned": 0.012, "warnings": {"unknown_words": 0.012}},
            "is_calibrated": True,
        },
        "frontier": [
            {"most_words": k, "active_words": interval(words), "accuracy": interval(), "agreement": interval()}
            for k, words in ((1, 1.0), (10, 9.5))
        ],
        "verification": {
            **{"worst_relative_error": 2e-7, "worst_absolute_error": 3e-7, "worst_text": 7},
            **{"texts_beyond_tolerance": 0},
            **{key: interval() for key in ("same_sign", "effect_error", "region_changed")},
        },
        "completeness": {
            "full_accuracy": interval(0.8),
            "empty": remaining(0.4),
            "sizes": [
                {
                    **{"fraction": fraction, "words": interval(4.0), "advantage": interval(0.3)},
                    **{"circuit": remaining(0.9), "random": remaining(0.6), "per_class": {name: interval(0.95)}},
                }
                for fraction in (0.05, 0.1)
            ],
        },
        "eraser": {
            "orders": {
                order: eraser_scores() | {"budgets": [eraser_scores() | {"fraction": f} for f in (0.05, 0.1)]}
                for order in orders
            },
            "comprehensiveness_advantage": interval(),
        },
        "removability": {
            "removed": [
                {"words": words, "orders": {order: interval() for order in orders}, "advantage": interval()}
                for words in (1, 3)
            ],
            "everything": interval(),
        },
        "masking": {
            **{"texts": 250, "trained_with_masking": False},
            **{key: interval() for key in ("as_trained", "whole", "merged", "scattered")},
            "masked": [{"fraction": 0.5, "strongest": interval(), "random": interval()}],
        },
        "explainers": compared(name),
        "separation": {"fraction": 0.1, "cosine_by_chance": 0.01}
        | {key: interval() for key in ("cosine", "jaccard_within", "jaccard_across", "jaccard")},
        "stability": {
            **{"texts": 200, "all_edits": likeness(), "other_texts": likeness()},
            "edits": [{"edit": name, "texts": 190, "likeness": likeness()}],
        },
        "ablation_sparsity": {"contributions": interval(10.0), "effects": interval(11.0)},
        "probes": {
            **{"texts": 240, "loss": 0.3, "base_loss": 0.69},
            "classes": [{"label": name, "word": name, "loss": 0.31, "base_loss": 0.68}],
            "gain": interval(0.38),
        },
        "downstream": {
            **{key: interval() for key in ("loss", "ungated_loss", "delta", "kl", "ungated_words")},
            **{"texts": 180, "language": {"tokens": 729, "raw": interval(), "gated": interval(), "uniform": 10.3}},
        },
        "layers": {
            **{"full": interval(2.62), "without_layers": interval(1.68), "remainder": interval(0.44)},
            **{"texts": 100, "layers": [{"layer": 1, "contribution": interval(), "flips": interval()}]},
        },
    }


def results(name: str = "ordinary") -> EvaluationResults:
    """The same as its reader gives it."""
    return EvaluationResults.from_dict(evaluation(name))
