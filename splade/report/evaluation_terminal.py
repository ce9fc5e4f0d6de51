"""An evaluation in the terminal: three questions, each answered by a table that says what its figures mean.

Everything is shown from plain data, as `EvaluationResults.as_dict` writes it.
"""

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from splade.report.printable import shown
from splade.report.terminal import figures_table

Data = Mapping[str, Any]
Rows = list[tuple[str, str, str]]


def evaluation_view(found: Data) -> Group:
    """The whole evaluation."""
    parts: list[RenderableType] = [
        figures_table(f"How well does it decide? On {found['texts']} texts", _decision_rows(found)),
        figures_table("Are its explanations true?", _truth_rows(found)),
        _circuit_table(found["completeness"]),
        _removal_table(found["removability"], found["eraser"]),
        figures_table("What are its words like?", _word_rows(found)),
        _layer_table(found["layers"]),
        Text("In brackets: 95 % intervals over texts. docs/evaluation.md says how each figure is made.", style="dim"),
    ]
    return Group(*parts)


def _decision_rows(found: Data) -> Rows:
    scores, calibration = found["performance"], found["calibration"]
    chance = f"up to {calibration['ece_by_chance_high']:.1%} is chance"
    rows = [
        ("accuracy", _share(scores["accuracy"]), f"always naming the commonest label: {scores['majority']:.1%}"),
        ("active words", _number(scores["active_words"], 0), "per text"),
        ("calibration error", _share(calibration["ece"]), f"gap between confidence and accuracy; {chance}"),
        ("overconfidence", _share(calibration["overconfidence"]), "mean confidence minus accuracy"),
    ]
    if scores["texts_without_words"]:
        rows.append(("no words", str(scores["texts_without_words"]), "texts; the bias alone decides"))
    if scores["texts_at_limit"]:
        rows.append(("texts cut", f"at most {scores['texts_at_limit']}", "fill all that the model reads"))
    return rows


def _truth_rows(found: Data) -> Rows:
    check, masking = found["verification"], found["masking"]
    beyond = check["texts_beyond_tolerance"]
    rows = [
        (
            "sums to the logit",
            "in every text" if not beyond else f"not in {beyond} texts",
            f"worst gap {check['worst_relative_error']:.0e} of the contributions; 1e-05 is allowed",
        ),
        ("same sign", _share(check["same_sign"]), "of words push the way that their removal shows"),
        ("off by", _share(check["effect_error"]), "of its size, a contribution from the effect of removal"),
    ]
    if masking is not None:
        half = masking["masked"][-1]
        rows.append(
            (
                "out of the usual",
                _share(half["strongest"]),
                f"of texts without their strongest {half['fraction']:.0%} of words; 5 % is no shift, "
                f"two texts at once give {_share(masking['merged'], plain=True)}",
            )
        )
    return rows


def _circuit_table(completeness: Data) -> Table:
    table = _table("How many words are enough? The label from a few words alone, as from all")
    for column in ("share of words", "words", "same label", "random words", "evidence kept"):
        table.add_column(column, justify="right")
    empty = completeness["empty"]
    table.add_row("none", "0", _share(empty["agreement"]), "", _share(empty["recovered"], plain=True))
    for size in completeness["sizes"]:
        table.add_row(
            f"{size['fraction']:.0%}",
            f"{size['words']['mean']:.1f}",
            Text(_share(size["circuit"]["agreement"]), style="bold"),
            _share(size["random"]["agreement"]),
            _share(size["circuit"]["recovered"], plain=True),
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
        table.add_row(words, *(_share(rate["orders"][name]) for name in names))
    everything = _share(removability["everything"], plain=True)
    table.add_row("all words", everything, everything, everything)
    for title, key in (("comprehensiveness", "comprehensiveness"), ("sufficiency (low is good)", "sufficiency")):
        table.add_row(title, *(_number(eraser["orders"][name][key], 3) for name in names))
    return table


def _word_rows(found: Data) -> Rows:
    separation, stability, downstream = found["separation"], found["stability"], found["downstream"]
    other = stability["other_texts"]
    rows = [
        (
            "spread",
            f"{_number(found['ablation_sparsity']['contributions'], 1)} words",
            "carry a decision, as if equal ((L1/L2)² of the contributions)",
        ),
        (
            "stays the same",
            _share(stability["all_edits"]["top_words"]),
            f"of the ten top words after harmless edits; another text shares {_share(other['top_words'], plain=True)}",
        ),
    ]
    if separation["cosine"] is not None:
        chance = separation["cosine_by_chance"]
        beside = "" if chance is None else f"; classes by lot: {chance:.2f}"
        rows.append(("separation", _number(separation["cosine"], 2), f"of the classes' words, 0 to 1{beside}"))
    if separation["jaccard"] is not None:
        rows.append(("overlap", _number(separation["jaccard"], 2), "of circuits within a class minus across"))
    if found["probes"] is not None:
        probes = found["probes"]
        words = ", ".join(f"{one['label']}: {one['word']}" for one in probes["classes"][:4])
        rows.append(
            ("best single word", f"{probes['loss']:.3f}", f"loss; {probes['base_loss']:.3f} without ({shown(words)})")
        )
    rows.append(("cost of the gate", _number(downstream["delta"], 3), "of cross-entropy; negative where it helps"))
    return rows


def _layer_table(layers: Data) -> Table:
    table = _table(f"What does each layer of the encoder do? Over {layers['texts']} texts")
    for column in ("layer", "contribution", "label changes without it"):
        table.add_column(column, justify="right")
    for layer in layers["layers"]:
        table.add_row(str(layer["layer"]), _number(layer["contribution"], 2), _share(layer["flips"]))
    table.add_row("not by one alone", _number(layers["remainder"], 2), "")
    return table


def _table(title: str) -> Table:
    return Table(title=Text(title, style="italic"), title_justify="left", box=None, padding=(0, 2, 0, 0))


def _share(interval: Data, *, plain: bool = False) -> str:
    return _written(interval, lambda value: f"{value:.1%}", plain)


def _number(interval: Data, digits: int) -> str:
    return _written(interval, lambda value: f"{value:.{digits}f}", False)


def _written(interval: Data, write: Any, plain: bool) -> str:
    """The mean with its interval in brackets; a dash where nothing was measured."""
    mean, low, high = interval["mean"], interval["low"], interval["high"]
    if mean is None or math.isnan(mean):
        return "–"
    return write(mean) if plain or low is None else f"{write(mean)} ({write(low)} to {write(high)})"
