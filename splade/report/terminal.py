"""Plain data in the terminal, in colour. Text from outside is shown, never interpreted."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from splade.report.printable import shown


def figures_table(title: str, rows: Sequence[tuple[str, str, str]]) -> Table:
    """Named figures with a remark each."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value, remark in rows:
        table.add_row(Text(name), Text(value, style="bold"), Text(remark, style="dim"))
    return table


def score_figures(run: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table for one seed's results."""
    test = run["test"]
    rows = [
        ("accuracy", f"{test['accuracy']:.1%}", f"always naming the commonest label: {test['majority']:.1%}"),
        ("active words", f"{test['active_words']:.0f}", "per text"),
        ("identity error", f"{test['identity_error']:.0e}", "contributions and bias sum to the logit"),
    ]
    if test["texts_cut"]:
        rows.append(("texts cut", str(test["texts_cut"]), "longer than the model reads (model.max_length)"))
    return f"On {test['texts']} texts it has never seen (seed {run['seed']})", rows


def mean_figures(results: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table over seeds."""
    accuracy, active = results["mean"]["accuracy"], results["mean"]["active_words"]
    rows = [
        ("accuracy", f"{accuracy['mean']:.1%}", f"95 % interval {accuracy['low']:.1%} to {accuracy['high']:.1%}"),
        ("active words", f"{active['mean']:.0f}", f"95 % interval {active['low']:.0f} to {active['high']:.0f}"),
    ]
    return f"Mean of {accuracy['count']} seeds", rows


def baseline_figures(found: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table of yardsticks; the difference is the model's accuracy minus the yardstick's."""
    rows = []
    if "model" in found:
        rows.append(("this model", f"{found['model']['accuracy']:.1%}", ""))
    for name, baseline in found["baselines"].items():
        difference = found.get("difference", {}).get(name)
        note = f"chosen on validation: {baseline['setting']}"
        if difference:
            note += f"; model {difference['mean']:+.1%} ({difference['low']:+.1%} to {difference['high']:+.1%})"
        rows.append((name, f"{baseline['accuracy']:.1%}", note))
    return f"On {found['test_texts']} test texts", rows


def name_figures(title: str, scores: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table of name scores, each beside its control."""
    delete, follow = scores["delete"], scores["follow"]
    rows = [
        ("delete test", _share(delete["passed"]), f"other word deleted: {_share(delete['shuffled'])}"),
        ("follow test", _share(follow["passed"]), f"other word swapped: {_share(follow['shuffled'])}"),
        ("own words", _share(scores["own_words"]), "of the contributions, on words of the text"),
        ("neighbourhood", _share(scores["neighbourhood"]), f"by chance: {_share(scores['neighbourhood_chance'])}"),
        ("function words", _share(scores["function_words"]), "of the contributions"),
        ("word pieces", _share(scores["word_pieces"]), "of the contributions"),
        ("sign stability", _share(scores["sign_stability"]), "hardly discriminates"),
    ]
    return f"Names of the {title}, {scores['texts']} texts, {scores['active_words']:.0f} active words", rows


def _share(rate: dict[str, Any]) -> str:
    return "–" if rate["share"] is None else f"{rate['share']:.1%}"


def strongest_words_table(strongest: dict[str, list[dict[str, Any]]]) -> Table:
    """The words that speak most for each class."""
    table = Table("class", "strongest words, by mean contribution", show_lines=True)
    for name, words in strongest.items():
        table.add_row(Text(shown(name)), Text(shown(", ".join(word["name"] for word in words))))
    return table
