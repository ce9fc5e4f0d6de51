"""Every figure of an evaluation in tables with its controls, for a page; plain data in, nothing computed."""

from collections.abc import Mapping, Sequence
from typing import Any

from splade.report.arena import compared_table
from splade.report.evaluation_charts import ORDERS
from splade.report.interval_text import number_text, share_text
from splade.report.tables import FigureTable

Data = Mapping[str, Any]
FIGURE = ("", "figure")
"""Columns of a table that is a list."""


def decision_tables(found: Data) -> list[FigureTable]:
    """Classes, calibration, and accuracy by the number of words."""
    return [
        *_class_tables(found["performance"], found["completeness"]),
        *_calibration_tables(found["calibration"]),
        *_coverage_tables(found.get("selective")),
        FigureTable(
            "Only the strongest words of each text",
            ("at most", "active words", "accuracy", "same label as from all"),
            [
                (
                    _words(point["most_words"]),
                    number_text(point["active_words"], 1),
                    share_text(point["accuracy"]),
                    share_text(point["agreement"]),
                )
                for point in found["frontier"]
            ],
            "Strength is that of the sparse layer; no label is looked at.",
        ),
    ]


def truth_tables(found: Data) -> list[FigureTable]:
    """What happens from a few words alone and without them, and the checks behind it."""
    tables = [
        _circuit_table(found["completeness"]),
        *_eraser_tables(found["eraser"]),
        _removal_table(found["removability"]),
        _check_table(found["verification"]),
    ]
    # Older evaluations did not compare methods.
    optional = ((found["masking"], _masking_table), (found.get("explainers"), compared_table))
    return [*tables, *(table(part) for part, table in optional if part is not None)]


def word_tables(found: Data) -> list[FigureTable]:
    """Classes, edits, spread, single words, what the gate costs, and the encoder's layers."""
    return [
        *([] if found["layers"] is None else [_layer_table(found["layers"])]),
        _downstream_table(found["downstream"], found["performance"]),
        _stability_table(found["stability"]),
        _separation_table(found["separation"]),
        *([] if found["probes"] is None else [_probe_table(found["probes"])]),
        FigureTable(
            "Over how many words is a decision spread?",
            FIGURE,
            [
                ("by contributions", number_text(found["ablation_sparsity"]["contributions"], 1)),
                ("by exact effects of removal", number_text(found["ablation_sparsity"]["effects"], 1)),
            ],
            "As if equal: (L1/L2)².",
        ),
    ]


def measuring_table(found: Data) -> FigureTable:
    """On what and how long it was measured."""
    known = [(name, str(found[key])) for key, name in _MEASURED.items() if found.get(key) is not None]
    return FigureTable(
        "How it was measured",
        FIGURE,
        [
            *known,
            ("labels", ", ".join(found["labels"])),
            *((f"seconds for {part}", f"{seconds:.2f}") for part, seconds in found["seconds"].items()),
        ],
    )


_MEASURED = {
    "data": "data",
    "split": "split",
    "texts": "texts",
    "most_texts": "at most",
    "seed": "seed of resampling and draws",
    "schema_version": "version of the file's layout",
}


def _class_tables(scores: Data, completeness: Data) -> list[FigureTable]:
    sizes = completeness["sizes"]
    predicted = list(dict.fromkeys(label for size in sizes for label in size["per_class"]))
    return [
        FigureTable(
            "Each class",
            ("class", "texts", "precision", "recall", "F1"),
            [
                (own["label"], str(own["texts"]), *(_share(own[key]) for key in ("precision", "recall", "f1")))
                for own in scores["classes"]
            ],
            f"Mean F1 of the classes that occur: {_share(scores['macro_f1'])}.",
        ),
        FigureTable(
            "Each predicted class: labels that stay, from its strongest words alone",
            ("class", *(f"{size['fraction']:.0%} of the words" for size in sizes)),
            [(label, *(share_text(size["per_class"].get(label, _NOTHING)) for size in sizes)) for label in predicted],
        ),
    ]


def _coverage_tables(selective: Data | None) -> list[FigureTable]:
    """Accuracy where the least confident texts are left undecided; nothing in older evaluations."""
    if selective is None:
        return []
    return [
        FigureTable(
            "Accuracy by coverage: only the most confident decisions",
            ("coverage", "texts", "confidence at least", "accuracy"),
            [
                (
                    f"{point['coverage']:.0%}",
                    f"{point['texts']:,}",
                    f"{point['least_confidence']:.1%}",
                    f"{point['accuracy']:.1%}",
                )
                for point in selective["points"]
            ],
            f"Area under the risk–coverage curve (AURC): {selective['aurc']:.3f}; the error rate is "
            f"{selective['error']:.3f}.",
        )
    ]


def _calibration_tables(calibration: Data) -> list[FigureTable]:
    return [
        FigureTable(
            "Decisions by their confidence",
            ("confidence", "texts", "mean confidence", "accuracy"),
            [
                (
                    f"{one['low']:.1%} to {one['high']:.1%}",
                    f"{one['texts']:,}",
                    f"{one['confidence']:.1%}",
                    share_text(one["accuracy"]),
                )
                for one in calibration["curve"]
            ],
        ),
        FigureTable(
            "Calibration",
            FIGURE,
            [
                ("calibration error (ECE)", share_text(calibration["ece"])),
                ("the same of a perfectly calibrated model", f"{calibration['ece_by_chance']:.1%}"),
                ("what such a model exceeds in one case of twenty", f"{calibration['ece_by_chance_high']:.1%}"),
                ("confidence minus accuracy", share_text(calibration["overconfidence"])),
                ("Brier score: 0 is perfect, 2 the worst", number_text(calibration["brier"], 3)),
                ("log loss, in nats", number_text(calibration["log_loss"], 3)),
            ],
        ),
    ]


def _circuit_table(completeness: Data) -> FigureTable:
    rows = [("no words", "0", *_remaining(completeness["empty"]), "")]
    for size in completeness["sizes"]:
        name, words = f"{size['fraction']:.0%} of the words", number_text(size["words"], 1)
        rows.append((name, words, *_remaining(size["circuit"]), share_text(size["advantage"])))
        rows.append((f"{name}, by lot", words, *_remaining(size["random"]), ""))
    rows.append(("all words", "", "", share_text(completeness["full_accuracy"]), "", "", "", ""))
    columns = ("left", "words", "same label", "accuracy", "of all words' accuracy", "KL in nats", "evidence kept")
    return FigureTable(
        "The decision from a few words alone (completeness)",
        (*columns, "same label, above random"),
        rows,
        "The words with the largest contributions, beside as many drawn by lot and none. Evidence: the way from the "
        "empty text to the full one.",
    )


def _remaining(left: Data) -> tuple[str, ...]:
    return (
        share_text(left["agreement"]),
        share_text(left["accuracy"]),
        share_text(left["relative_accuracy"]),
        number_text(left["kl"], 3),
        share_text(left["recovered"]),
    )


def _eraser_tables(eraser: Data) -> list[FigureTable]:
    orders = [eraser["orders"][key] for key in ORDERS]
    advantage = number_text(eraser["comprehensiveness_advantage"], 3)
    told = {
        "comprehensiveness": "Probability lost without those words; high is good. AOPC of contributions above random "
        f"words: {advantage}.",
        "sufficiency": "Probability lost with those words alone; low is good.",
    }
    return [
        FigureTable(
            f"ERASER {key}, by who picks the words",
            ("share of the words", *ORDERS.values()),
            [
                *(
                    (f"{one[0]['fraction']:.0%}", *(number_text(budget[key], 3) for budget in one))
                    for one in zip(*(order["budgets"] for order in orders), strict=True)
                ),
                ("AOPC, the mean", *(number_text(order[key], 3) for order in orders)),
            ],
            note,
        )
        for key, note in told.items()
    ]


def _removal_table(removability: Data) -> FigureTable:
    rows = [
        (
            _words(rate["words"]),
            *(share_text(rate["orders"][key]) for key in ORDERS),
            share_text(rate["advantage"]),
        )
        for rate in removability["removed"]
    ]
    rows.append(("all words", share_text(removability["everything"]), "", "", ""))
    columns = ("taken away", *ORDERS.values(), "contributions above random")
    return FigureTable("Labels that change without the top words, by who picks them", columns, rows)


def _check_table(check: Data) -> FigureTable:
    return FigureTable(
        "Do contributions sum to the logit, and say what removal does?",
        FIGURE,
        [
            ("texts whose gap is above 1e-05 of the contributions", str(check["texts_beyond_tolerance"])),
            ("worst gap, as a share of the contributions", f"{check['worst_relative_error']:.1e}"),
            ("worst gap, in logits", f"{check['worst_absolute_error']:.1e}"),
            ("place of the text with the worst gap", str(check["worst_text"])),
            ("words that push the way their removal shows", share_text(check["same_sign"])),
            ("a contribution is off the effect of removal by", share_text(check["effect_error"])),
            ("removals that switch a hidden unit", share_text(check["region_changed"])),
        ],
    )


def _masking_table(masking: Data) -> FigureTable:
    trained = "with" if masking["trained_with_masking"] else "without"
    rows = [("whole", share_text(masking["whole"]), "")]
    rows += [
        (f"without {one['fraction']:.0%} of the words", share_text(one["strongest"]), share_text(one["random"]))
        for one in masking["masked"]
    ]
    rows += [
        ("as in training", share_text(masking["as_trained"]), ""),
        ("two texts at once", share_text(masking["merged"]), ""),
        ("the same strengths on scattered words", share_text(masking["scattered"]), ""),
    ]
    return FigureTable(
        "Texts that are unusual for the head when words are gone",
        ("texts", "strongest words", "random words"),
        rows,
        f"Of {masking['texts']} texts; 5 % is no shift. The model was trained {trained} masking.",
    )


def _layer_table(layers: Data) -> FigureTable:
    rows = [("embeddings alone", number_text(layers["without_layers"], 2), "")]
    rows += [
        (f"layer {one['layer']}", number_text(one["contribution"], 2), share_text(one["flips"]))
        for one in layers["layers"]
    ]
    rows += [
        ("remainder: not by one layer alone", number_text(layers["remainder"], 2), ""),
        ("together: the decision", number_text(layers["full"], 2), ""),
    ]
    return FigureTable(
        "What does each layer of the encoder do?",
        ("", "contribution to the decision", "label changes without it"),
        rows,
        f"Over {layers['texts']} texts: the predicted class's centred logit with a layer minus that without it. The "
        "remainder is negative where several layers say the same.",
    )


def _downstream_table(downstream: Data, scores: Data) -> FigureTable:
    rows = [
        ("cross-entropy as it is", number_text(downstream["loss"], 3)),
        ("cross-entropy without a gate", number_text(downstream["ungated_loss"], 3)),
        ("what the gate costs; negative where it helps", number_text(downstream["delta"], 4)),
        ("KL of decisions without and with the gate", number_text(downstream["kl"], 4)),
        ("words per text as it is", number_text(scores["active_words"], 1)),
        ("words per text without a gate", number_text(downstream["ungated_words"], 1)),
    ]
    if (language := downstream["language"]) is not None:
        rows += [
            (f"guessing {language['tokens']} hidden tokens, before the gate", number_text(language["raw"], 2)),
            ("after the gate", number_text(language["gated"], 2)),
            ("knowing nothing", f"{language['uniform']:.2f}"),
        ]
    note = f"On {downstream['texts']} texts; losses in nats."
    return FigureTable("What does the gate cost? (downstream loss)", FIGURE, rows, note)


def _stability_table(stability: Data) -> FigureTable:
    rows: list[Sequence[str]] = [("all edits", str(stability["texts"]), *_likeness(stability["all_edits"]))]
    rows += [(one["edit"], str(one["texts"]), *_likeness(one["likeness"])) for one in stability["edits"]]
    rows.append(("another text with the same label", "", *_likeness(stability["other_texts"])))
    return FigureTable(
        "Does an explanation stay after harmless edits?",
        ("edit", "texts", "same label", "ten top words shared", "cosine of contributions"),
        rows,
    )


def _likeness(likeness: Data) -> tuple[str, ...]:
    return (
        share_text(likeness["same_label"]),
        share_text(likeness["top_words"]),
        number_text(likeness["contributions"], 3),
    )


def _separation_table(separation: Data) -> FigureTable:
    return FigureTable(
        "Do classes use different words?",
        FIGURE,
        [
            ("1 − cosine of the classes' words", number_text(separation["cosine"] or _NOTHING, 3)),
            ("the same of classes by lot", number_text(_alone(separation["cosine_by_chance"]), 3)),
            ("overlap of circuits within a class", number_text(separation["jaccard_within"] or _NOTHING, 3)),
            ("overlap of circuits across classes", number_text(separation["jaccard_across"] or _NOTHING, 3)),
            ("within minus across", number_text(separation["jaccard"] or _NOTHING, 3)),
        ],
        f"Circuits are {separation['fraction']:.0%} of a text's active words.",
    )


def _probe_table(probes: Data) -> FigureTable:
    rows = [(one["label"], one["word"], f"{one['loss']:.3f}", f"{one['base_loss']:.3f}") for one in probes["classes"]]
    return FigureTable(
        "How much of a class does its best word tell?",
        ("class", "word", "loss of its probe", "loss of the class's frequency"),
        [*rows, ("mean", "", f"{probes['loss']:.3f}", f"{probes['base_loss']:.3f}")],
        f"On {probes['texts']} texts that did not choose the word, in nats.",
    )


def _alone(value: float | None) -> Data:
    """A figure without an interval."""
    return {"mean": value, "low": None, "high": None}


_NOTHING = _alone(None)


def _share(value: float | None) -> str:
    return share_text(_alone(value))


def _words(count: int) -> str:
    return "1 word" if count == 1 else f"{count} words"
