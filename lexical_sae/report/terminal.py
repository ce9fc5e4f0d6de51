"""Plain data in the terminal, in colour. Text from outside is shown, never interpreted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group

from lexical_sae.circuits.geco import FEASIBLE_WITHIN, beats_guessing
from lexical_sae.report.tables import FigureTable, figures_list, table_view
from lexical_sae.report.task import difference_text, figure_text, task_rows

NAME = "cross-entropy kept"
REMEDY = (
    "Raise training.controller.tau_ce (training.short_first takes it from short texts, which are easier), "
    "train longer (training.max_epochs), "
    "or keep the cross-entropy of a training.target_accuracy within reach"
)
GUESSING_REMEDY = "Lower training.learning_rate, or train longer (training.max_epochs)"


def constraint_rows(run: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The row for one seed's results; none where no cross-entropy was to be kept, or an older file does not say.

    Example: `("cross-entropy kept", "yes", "validation 0.412, tau 0.400; up to 1.05 tau is kept")`
    """
    tau, epoch = run.get("tau_ce"), run.get("validation")
    if tau is None or epoch is None:
        return []
    figures = f"validation {epoch['ce']:.3f}, tau {tau:.3f}"
    if epoch["is_feasible"]:
        return [(NAME, "yes", f"{figures}; up to {FEASIBLE_WITHIN:g} tau is kept")]
    guessing = epoch.get("guessing_ce")
    if guessing is not None and not beats_guessing(epoch["ce"], guessing):
        why = f"no better than always giving the same answer ({guessing:.3f}), so the model has learned nothing"
        return [(NAME, "no", f"{figures}: {why}. {GUESSING_REMEDY}.")]
    # A feasible epoch would have been chosen before this one.
    why = f"no epoch after the warm-up came to {FEASIBLE_WITHIN:g} tau or less"
    ended = f", and lambda ended at {run['lambda']:.3g}" if "lambda" in run else ""
    return [(NAME, "no", f"{figures}: {why}{ended}. {REMEDY}.")]


def seeds_constraint_rows(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """The row for several seeds: in how many it was kept."""
    kept = [value == "yes" for run in runs for _, value, _ in constraint_rows(run)]
    if not kept:
        return []
    return [(NAME, f"{sum(kept)} of {len(kept)}", f"seeds; within {FEASIBLE_WITHIN:g} tau on validation")]


def figures_table(title: str, rows: Sequence[tuple[str, str, str]]) -> Group:
    """Named figures with a remark each."""
    return table_view(figures_list(title, rows))


def score_figures(run: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table for one seed's results."""
    test = run["test"]
    rows = [
        *(task_rows(test["figures"]) if "figures" in test else _class_rows(test)),
        ("active words", f"{test['active_words']:.0f}", "per text"),
        ("identity error", f"{test['identity_error']:.0e}", "contributions and bias sum to the logit"),
        *constraint_rows(run),
    ]
    if test["texts_cut"]:
        rows.append(("texts cut", str(test["texts_cut"]), "longer than the model reads (model.max_length)"))
    return f"On {test['texts']} test texts (seed {run['seed']})", rows


def _class_rows(test: dict[str, Any]) -> list[tuple[str, str, str]]:
    rows = [("accuracy", f"{test['accuracy']:.1%}", f"always predicting the commonest label: {test['majority']:.1%}")]
    # Older runs did not measure it.
    if "macro_f1" in test:
        rows.append(("macro F1", f"{test['macro_f1']:.1%}", "mean over classes, rare ones too"))
    return rows


def _mean_task_rows(results: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The first figures over seeds: the accuracy of classes, or those of the output kind."""
    shown = next((run["test"]["figures"] for run in results.get("runs", ()) if "figures" in run["test"]), None)
    figures = shown or [{"key": "accuracy", "title": "accuracy", "is_share": True}]
    rows = []
    for figure in figures:
        if (found := results["mean"].get(figure["key"])) is None:
            continue
        form = "{:.1%}".format if figure["is_share"] else "{:.3g}".format
        ends = f"95 % CI {form(found['low'])} to {form(found['high'])}"
        rows.append((figure["title"], form(found["mean"]), ends))
    return rows


def mean_figures(results: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table over seeds."""
    active = results["mean"]["active_words"]
    rows = [
        *_mean_task_rows(results),
        (
            "active words",
            f"{active['mean']:.0f}",
            f"95 % CI {active['low']:.0f} to {active['high']:.0f}",
        ),
        *seeds_constraint_rows(results.get("runs", ())),
    ]
    return f"Mean of {active['count']} seeds", [*rows, *_measured_rows(results.get("measured", {}))]


def _measured_rows(measured: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The first figures of the evaluation and of the names over seeds, as far as known; results.json has them all."""
    evaluation, names = measured.get("evaluation", {}), measured.get("names", {}).get("model", {})
    sizes = evaluation.get("completeness", {}).get("sizes", [])
    enough = [(f"strongest {size['fraction']:.0%}", size["circuit"].get("agreement")) for size in sizes]
    figures = [
        ("calibration error", evaluation.get("calibration", {}).get("ece"), ""),
        *((name, figure, "keep the label, alone; ") for name, figure in enough if name == "strongest 10%"),
        ("deletion test", names.get("delete", {}).get("passed"), "names; "),
        ("substitution test", names.get("follow", {}).get("passed"), "names; "),
        (
            "context-free",
            names.get("context", {}).get("accuracy", {}).get("context_free"),
            "every word at its default; ",
        ),
    ]
    return [
        (name, f"{figure['mean']:.1%}", f"{told}95 % CI {figure['low']:.1%} to {figure['high']:.1%}")
        for name, figure, told in figures
        if figure and figure["low"] is not None
    ]


def baseline_figures(found: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table of baselines; the difference is the model's accuracy minus the baseline's."""
    if "output" in found:
        return f"On {found['test_texts']} test texts", list(_task_baseline_rows(found))
    rows = []
    seeds = found.get("model", {}).get("seeds", ())
    if "model" in found:
        rows.append(("this model", f"{found['model']['accuracy']:.1%}", _of_seeds(len(seeds))))
    for name, baseline in found["baselines"].items():
        difference = found.get("difference", {}).get(name)
        of_seeds = _of_seeds(len(baseline.get("runs", ())))
        macro_f1 = baseline.get("macro_f1")
        f1 = "" if macro_f1 is None else f"macro F1 {macro_f1:.1%}"
        note = "; ".join(filter(None, (of_seeds, f1, f"chosen: {baseline['setting']}")))
        if difference:
            note += f"; model {difference['mean']:+.1%} ({difference['low']:+.1%} to {difference['high']:+.1%})"
            # Of seeds that are not on the baseline's texts nothing can be said.
            paired = difference.get("seeds", seeds)
            note += f", seed {', '.join(map(str, paired))} only" if len(paired) < len(seeds) else ""
        rows.append((name, f"{baseline['accuracy']:.1%}", note + _cost_text(baseline)))
    return f"On {found['test_texts']} test texts", rows


def _task_baseline_rows(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The model and its baselines by the first figure of the output kind, the others as remarks."""
    for name, measured in (("this model", found["model"]), *found["baselines"].items()):
        first, *others = measured["figures"]
        told = "; ".join(f"{one['title']} {figure_text(one)}" for one in others if one["key"] in found["keys"])
        difference = found["difference"].get(name, {}).get(first["key"])
        if difference is not None:
            told += f"; model {difference_text(difference, is_share=first['is_share'])}"
        chosen = f"; chosen: {measured['setting']}" if "setting" in measured else ""
        yield f"{name}: {first['title']}", figure_text(first), told + chosen + _cost_text(measured)


def _of_seeds(count: int) -> str:
    """That a figure is a mean, where it is."""
    return f"mean of {count} seeds" if count > 1 else ""


def _cost_text(measured: dict[str, Any]) -> str:
    """What a baseline took, all its settings and seeds together; nothing of what older files do not say."""
    seconds, megabytes = measured.get("seconds"), measured.get("peak_megabytes")
    time = "" if seconds is None else f"; {seconds / 60:.1f} minutes"
    return time + ("" if megabytes is None else f", {megabytes:,.0f} MB at the peak")


def name_figures(title: str, scores: dict[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table of name scores, each beside its control; all are shares of the contributions."""
    delete, follow, by_chance = scores["delete"], scores["follow"], _share(scores["lexical_neighbours_chance"])

    def another(test: dict[str, Any]) -> str:
        return f"with another: {_share(test['shuffled'])}"

    rows = [
        ("deletion test", _share(delete["passed"]), f"of contributions fall with their word; {another(delete)}"),
        ("substitution test", _share(follow["passed"]), f"follow when it is swapped; {another(follow)}"),
        ("literal words", _share(scores["own_words"]), "are on words that stand in the text"),
        ("lexical neighbours", _share(scores["lexical_neighbours"]), f"are on or near these; by chance: {by_chance}"),
        ("function words", _share(scores["function_words"]), "are on words such as 'the' and 'of'"),
        ("word pieces", _share(scores["word_pieces"]), "are on pieces of words"),
        ("sign stability", _share(scores["sign_stability"]), "push the way that their word mostly does"),
        *_presence_rows(scores.get("presence")),
        *_random_head_rows(scores.get("random_head")),
    ]
    return f"Do the names hold? The {title} on {scores['texts']} texts", rows


def _presence_rows(presence: dict[str, Any] | None) -> list[tuple[str, str, str]]:
    """Whether words fire where they are written; nothing where that was not measured, as in older files."""
    if presence is None:
        return []
    told = f"AUC over {presence['auc']['count']} words: high where they, or their forms, are written (0.5 is chance)"
    return [("presence", _auc(presence["auc"]), f"{told}; names shuffled: {_auc(presence['shuffled'])}")]


def _random_head_rows(control: dict[str, Any] | None) -> list[tuple[str, str, str]]:
    """The same tests on the model with its words in each other's place."""
    if control is None:
        return []
    others = ", ".join(f"{name} {_share(control[key])}" for name, key in _CONTROL_SHARES)
    told = f"substitution test with words in each other's place; {others}, presence {_auc(control['presence'])}"
    return [("random lexical head", _share(control["follow"]), told)]


_CONTROL_SHARES = (
    ("own words", "own_words"),
    ("lexical neighbours", "lexical_neighbours"),
    ("delete (no test of names)", "delete"),
)


def _auc(rate: dict[str, Any]) -> str:
    if rate["share"] is None:
        return "–"
    ends = "" if rate.get("low") is None else f" ({rate['low']:.2f} to {rate['high']:.2f})"
    return f"{rate['share']:.2f}{ends}"


def _share(rate: dict[str, Any]) -> str:
    """A share with its 95 % confidence interval over texts, where that is known."""
    if rate["share"] is None:
        return "–"
    has_interval = rate.get("low") is not None
    return f"{rate['share']:.1%}" + (f" ({rate['low']:.1%} to {rate['high']:.1%})" if has_interval else "")


def strongest_words_table(strongest: dict[str, list[dict[str, Any]]]) -> Group:
    """The words that contribute most to each class."""
    rows = [(name, ", ".join(word["name"] for word in words)) for name, words in strongest.items()]
    return table_view(FigureTable("", ("class", "top-attributed words, by mean contribution"), rows, left=2))
