"""What a model's words are like: rows and tables of an evaluation's third topic."""

from collections.abc import Sequence

from lexical_sae.evaluation.metrics.layerwise import LAYERS, LayerwiseResult
from lexical_sae.evaluation.metrics.performance import PERFORMANCE
from lexical_sae.evaluation.metrics.probe_loss import PROBES, ProbeResult
from lexical_sae.evaluation.metrics.scaling_metrics import (
    ABLATION_SPARSITY,
    DOWNSTREAM,
    AblationSparsity,
    DownstreamLoss,
)
from lexical_sae.evaluation.metrics.separation import SEPARATION, SeparationResult
from lexical_sae.evaluation.metrics.stability import STABILITY, Likeness, StabilityResult
from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.views.rows import Rows, separation_rows
from lexical_sae.report.interval_text import NOT_MEASURED, number_text, share_text
from lexical_sae.report.printable import shown
from lexical_sae.report.tables import FIGURE, FigureTable


def word_rows(found: EvaluationResults) -> Rows:
    """Spread, stability, separation, the best single words, and the cost of the gate."""
    return [
        *found.views(ABLATION_SPARSITY, _spread_rows),
        *found.views(STABILITY, _stability_rows),
        *found.views(SEPARATION, lambda separation: separation_rows(separation, "class", "classes")),
        *found.views(PROBES, _probe_rows),
        *found.views(DOWNSTREAM, _gate_rows),
    ]


def word_tables(found: EvaluationResults) -> list[FigureTable]:
    """The encoder's layers, the cost of the gate, edits, classes, single words, and spread."""
    scores = found.get(PERFORMANCE)
    active = number_text(scores.active_words if scores else None, 1)
    return [
        *found.views(LAYERS, _layer_tables),
        *found.views(DOWNSTREAM, lambda downstream: _downstream_tables(downstream, active)),
        *found.views(STABILITY, _stability_tables),
        *found.views(SEPARATION, _separation_tables),
        *found.views(PROBES, _probe_tables),
        *found.views(ABLATION_SPARSITY, _spread_tables),
    ]


def _spread_rows(spread: AblationSparsity) -> Rows:
    words = f"{number_text(spread.contributions, 1)} words"
    return [("spread", words, "carry a decision, as if equal ((L1/L2)² of the contributions)")]


def _stability_rows(stability: StabilityResult) -> Rows:
    other = share_text(stability.other_texts.top_words, limits=False)
    remark = f"of the ten top-attributed words after harmless edits; another text shares {other}"
    return [("stability", share_text(stability.all_edits.top_words), remark)]


def _probe_rows(probes: ProbeResult) -> Rows:
    words = ", ".join(f"{one.label}: {one.word}" for one in probes.classes[:4])
    gain = "" if probes.gain is None else f", gain {number_text(probes.gain, 3)}"
    remark = f"log loss; of the class frequencies {probes.base_loss:.3f}{gain} ({shown(words)})"
    return [("best single-word probe", f"{probes.loss:.3f}", remark)]


def _gate_rows(downstream: DownstreamLoss) -> Rows:
    return [("cost of the gate", number_text(downstream.delta, 3), "of cross-entropy; negative where it helps")]


def _layer_tables(layers: LayerwiseResult) -> list[FigureTable]:
    rows = [("embeddings alone", number_text(layers.without_layers, 2), "")]
    rows += [(f"layer {one.layer}", number_text(one.contribution, 2), share_text(one.flips)) for one in layers.layers]
    rows += [
        ("joint remainder", number_text(layers.remainder, 2), ""),
        ("together: the decision", number_text(layers.full, 2), ""),
    ]
    return [
        FigureTable(
            "What does each layer of the encoder do?",
            ("", "contribution to the decision", "label changes without it"),
            rows,
            f"Over {layers.texts} texts: the predicted class's centred logit with a layer minus that without it. The "
            "remainder is negative where several layers say the same.",
        )
    ]


def _downstream_tables(downstream: DownstreamLoss, active: str) -> list[FigureTable]:
    rows = [
        ("cross-entropy as it is", number_text(downstream.loss, 3)),
        ("cross-entropy without a gate", number_text(downstream.ungated_loss, 3)),
        ("what the gate costs; negative where it helps", number_text(downstream.delta, 4)),
        ("KL of decisions without and with the gate", number_text(downstream.kl, 4)),
        ("words per text as it is", active),
        ("words per text without a gate", number_text(downstream.ungated_words, 1)),
    ]
    if (language := downstream.language) is not None:
        rows += [
            (f"guessing {language.tokens} hidden tokens, before the gate", number_text(language.raw, 2)),
            ("after the gate", number_text(language.gated, 2)),
            ("knowing nothing", f"{language.uniform:.2f}"),
        ]
    note = f"On {downstream.texts} texts; losses in nats."
    return [FigureTable("What does the gate cost? (downstream loss)", FIGURE, rows, note)]


def _stability_tables(stability: StabilityResult) -> list[FigureTable]:
    rows: list[Sequence[str]] = [("all edits", str(stability.texts), *_likeness(stability.all_edits))]
    rows += [(one.edit, str(one.texts), *_likeness(one.likeness)) for one in stability.edits]
    rows.append(("another text with the same label", "", *_likeness(stability.other_texts)))
    return [
        FigureTable(
            "Does an explanation stay after harmless edits?",
            ("edit", "texts", "same label", "ten top-attributed words shared", "cosine of contributions"),
            rows,
        )
    ]


def _likeness(likeness: Likeness) -> tuple[str, ...]:
    return (
        share_text(likeness.same_label),
        share_text(likeness.top_words),
        number_text(likeness.contributions, 3),
    )


def _separation_tables(separation: SeparationResult) -> list[FigureTable]:
    chance = separation.cosine_by_chance
    return [
        FigureTable(
            "Do classes use different words?",
            FIGURE,
            [
                ("1 − cosine of the classes' words", number_text(separation.cosine, 3)),
                ("the same of classes at random", NOT_MEASURED if chance is None else f"{chance:.3f}"),
                ("overlap of circuits within a class", number_text(separation.jaccard_within, 3)),
                ("overlap of circuits across classes", number_text(separation.jaccard_across, 3)),
                ("within minus across", number_text(separation.jaccard, 3)),
            ],
            f"Circuits are {separation.fraction:.0%} of a text's active words.",
        )
    ]


def _probe_tables(probes: ProbeResult) -> list[FigureTable]:
    rows = [(one.label, one.word, f"{one.loss:.3f}", f"{one.base_loss:.3f}") for one in probes.classes]
    return [
        FigureTable(
            "How much of a class does its best word tell?",
            ("class", "word", "loss of its probe", "loss of the class's frequency"),
            [*rows, ("mean", "", f"{probes.loss:.3f}", f"{probes.base_loss:.3f}")],
            f"On {probes.texts} texts that did not choose the word, in nats.",
        )
    ]


def _spread_tables(spread: AblationSparsity) -> list[FigureTable]:
    rows = [
        ("by contributions", number_text(spread.contributions, 1)),
        ("by leave-one-out effects", number_text(spread.effects, 1)),
    ]
    return [FigureTable("Over how many words is a decision spread?", FIGURE, rows, "As if equal: (L1/L2)².")]
