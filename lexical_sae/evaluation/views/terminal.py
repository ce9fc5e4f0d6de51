"""An evaluation in the terminal: three questions, each answered by tables that say what their figures mean."""

from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.text import Text

from lexical_sae.evaluation.metrics.attribution_methods import ATTRIBUTION_METHODS
from lexical_sae.evaluation.metrics.completeness import COMPLETENESS, CompletenessResult
from lexical_sae.evaluation.metrics.eraser import ERASER, EraserResult
from lexical_sae.evaluation.metrics.layerwise import LAYERS, LayerwiseResult
from lexical_sae.evaluation.metrics.removability import REMOVABILITY, RemovabilityResult
from lexical_sae.evaluation.metrics.task import TASK
from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.views.decisions import decision_rows
from lexical_sae.evaluation.views.faithfulness import faithfulness_rows
from lexical_sae.evaluation.views.methods import compared_table
from lexical_sae.evaluation.views.page import UNREADABLE, skipped_lines
from lexical_sae.evaluation.views.rows import ORDERS, word_count
from lexical_sae.evaluation.views.words import word_rows
from lexical_sae.report.interval_text import number_text, share_text
from lexical_sae.report.tables import FigureTable, table_view
from lexical_sae.report.task import label_tables
from lexical_sae.report.terminal import figures_table


def evaluation_view(found: EvaluationResults) -> Group:
    """The whole evaluation."""
    footnote = "In brackets: 95 % confidence intervals over texts. docs/evaluation.md explains each figure."
    parts: list[RenderableType] = [
        figures_table(f"How well does it decide? On {found.texts} texts", decision_rows(found)),
        *found.views(TASK, lambda task: [table_view(t) for t in label_tables([asdict(row) for row in task.per_label])]),
        *([] if found.skipped else [figures_table("Are its explanations true?", faithfulness_rows(found))]),
        *found.views(COMPLETENESS, lambda completeness: [table_view(_circuit_table(completeness))]),
        *found.views(REMOVABILITY, lambda removed: [table_view(_removal_table(removed, found.get(ERASER)))]),
        *_compared(found),
        *([] if found.skipped else [figures_table("What are its words like?", word_rows(found))]),
        *found.views(LAYERS, lambda layers: [table_view(_layer_table(layers))]),
        *(Text(UNREADABLE.format(key), style="dim") for key in found.unreadable),
        *(Text(line, style="dim") for line in skipped_lines(found)),
        Text(footnote, style="dim"),
    ]
    return Group(*parts)


def _circuit_table(completeness: CompletenessResult) -> FigureTable:
    empty = completeness.empty
    rows = [
        ("none", "0", share_text(empty.agreement), "", share_text(empty.recovered, limits=False)),
        *(
            (
                f"{size.fraction:.0%}",
                f"{size.words.mean:.1f}",
                share_text(size.circuit.agreement),
                share_text(size.random.agreement),
                share_text(size.circuit.recovered, limits=False),
            )
            for size in completeness.sizes
        ),
    ]
    columns = ("share of words", "words", "same label", "random words", "evidence kept")
    return FigureTable("How many words are enough? The label from a few words alone, as from all", columns, rows)


def _removal_table(removability: RemovabilityResult, eraser: EraserResult | None) -> FigureTable:
    everything = share_text(removability.everything, limits=False)
    rows = [
        *(
            (word_count(rate.words), *(share_text(rate.orders[name]) for name in ORDERS))
            for rate in removability.removed
        ),
        ("all words", *(everything for _ in ORDERS)),
    ]
    if eraser is not None:
        scores = [eraser.orders[name] for name in ORDERS]
        rows += [
            ("comprehensiveness", *(number_text(one.comprehensiveness, 3) for one in scores)),
            ("sufficiency (low is good)", *(number_text(one.sufficiency, 3) for one in scores)),
        ]
    title = "What happens without the top-attributed words? Labels that change, by what chooses the words"
    return FigureTable(title, ("", *ORDERS.values()), rows)


def _compared(found: EvaluationResults) -> list[RenderableType]:
    """Attribution methods side by side, without intervals, which would make the table too wide."""
    if ATTRIBUTION_METHODS.key not in found.measured:
        return []
    compared = found.get(ATTRIBUTION_METHODS)
    if compared is None:
        return [Text("Attribution methods not compared: switched off, or no short text has active words.", style="dim")]
    return [table_view(compared_table(compared, with_intervals=False))]


def _layer_table(layers: LayerwiseResult) -> FigureTable:
    rows = [
        ("embeddings alone", number_text(layers.without_layers, 2), ""),
        *((str(one.layer), number_text(one.contribution, 2), share_text(one.flips)) for one in layers.layers),
        ("joint remainder", number_text(layers.remainder, 2), ""),
        ("together", number_text(layers.full, 2), ""),
    ]
    title = f"What does each layer of the encoder do? Over {layers.texts} texts"
    return FigureTable(title, ("layer", "contribution", "label changes without it"), rows)
