"""An evaluation in the terminal: three questions, each answered by a table that says what its figures mean.

Everything is shown from plain data, as `EvaluationResults.as_dict` writes it.
"""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from splade.report.arena import compared_table
from splade.report.evaluation_figures import decision_rows, truth_rows, word_rows
from splade.report.interval_text import number_text, share_text
from splade.report.tables import TablesPage, tables_view
from splade.report.terminal import figures_table

Data = Mapping[str, Any]


def evaluation_view(found: Data) -> Group:
    """The whole evaluation."""
    parts: list[RenderableType] = [
        figures_table(f"How well does it decide? On {found['texts']} texts", decision_rows(found)),
        figures_table("Are its explanations true?", truth_rows(found)),
        _circuit_table(found["completeness"]),
        _removal_table(found["removability"], found["eraser"]),
        *_compared(found),
        figures_table("What are its words like?", word_rows(found)),
        *([] if found["layers"] is None else [_layer_table(found["layers"])]),
        Text("In brackets: 95 % intervals over texts. docs/evaluation.md says how each figure is made.", style="dim"),
    ]
    return Group(*parts)


def _circuit_table(completeness: Data) -> Table:
    table = _table("How many words are enough? The label from a few words alone, as from all")
    for column in ("share of words", "words", "same label", "random words", "evidence kept"):
        table.add_column(column, justify="right")
    empty = completeness["empty"]
    table.add_row("none", "0", share_text(empty["agreement"]), "", share_text({**empty["recovered"], "low": None}))
    for size in completeness["sizes"]:
        table.add_row(
            f"{size['fraction']:.0%}",
            f"{size['words']['mean']:.1f}",
            Text(share_text(size["circuit"]["agreement"]), style="bold"),
            share_text(size["random"]["agreement"]),
            share_text({**size["circuit"]["recovered"], "low": None}),
        )
    return table


def _removal_table(removability: Data, eraser: Data) -> Table:
    table = _table("What happens without the most telling words? Labels that change, by who picks the words")
    table.add_column("")
    for column in ("contributions", "exact effects", "random words"):
        table.add_column(column, justify="right")
    names = ("direct", "leave_one_out", "random")
    for rate in removability["removed"]:
        words = "1 word" if rate["words"] == 1 else f"{rate['words']} words"
        table.add_row(words, *(share_text(rate["orders"][name]) for name in names))
    everything = share_text({**removability["everything"], "low": None})
    table.add_row("all words", everything, everything, everything)
    for title, key in (("comprehensiveness", "comprehensiveness"), ("sufficiency (low is good)", "sufficiency")):
        table.add_row(title, *(number_text(eraser["orders"][name][key], 3) for name in names))
    return table


def _compared(found: Data) -> list[RenderableType]:
    """Attribution methods side by side, without intervals, which would make the table too wide."""
    if "explainers" not in found:  # an older evaluation
        return []
    if found["explainers"] is None:
        return [Text("Attribution methods not compared: switched off, or no short text has active words.", style="dim")]
    return [tables_view(TablesPage("", (), [compared_table(found["explainers"], with_intervals=False)]))]


def _layer_table(layers: Data) -> Table:
    table = _table(f"What does each layer of the encoder do? Over {layers['texts']} texts")
    for column in ("layer", "contribution", "label changes without it"):
        table.add_column(column, justify="right")
    table.add_row("embeddings alone", number_text(layers["without_layers"], 2), "")
    for layer in layers["layers"]:
        table.add_row(str(layer["layer"]), number_text(layer["contribution"], 2), share_text(layer["flips"]))
    table.add_row("not by one alone", number_text(layers["remainder"], 2), "")
    table.add_row("together", number_text(layers["full"], 2), "")
    return table


def _table(title: str) -> Table:
    return Table(title=Text(title, style="italic"), title_justify="left", box=None, padding=(0, 2, 0, 0))
