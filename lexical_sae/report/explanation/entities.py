"""Sentences with their entities, and a tagger's scores, in the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from lexical_sae.data.tagged_sentence import TaggedSentence
from lexical_sae.report.printable import shown
from lexical_sae.report.tables import FigureTable, table_view
from lexical_sae.report.terminal import constraint_rows

COLOURS = ("blue", "magenta", "green", "dark_orange3", "cyan", "red")
"""One for each type, in alphabetical order, from the start again when there are more."""


def type_places(types: Sequence[str]) -> dict[str, int]:
    """The place of each type among all, in alphabetical order: what its colour is chosen by, the same everywhere."""
    return {name: place for place, name in enumerate(sorted(set(types)))}


def entities_text(sentence: TaggedSentence, types: Sequence[str]) -> Text:
    """The sentence, each entity in the colour of its type with the type after it in brackets.

    The type is written out, so that nothing hangs on colour. `types` are all that the model knows.

    Example: `Acme [ORG] moved to Oslo [LOC]`
    """
    places = type_places([*types, *(entity.type for entity in sentence.entities)])
    text, at = Text(), 0
    for entity in sentence.entities:
        first, last = sentence.characters(entity)
        colour = COLOURS[places[entity.type] % len(COLOURS)]
        text.append(shown(sentence.text[at:first]))
        text.append(shown(sentence.text[first:last]), style=f"bold {colour}")
        text.append(f" [{shown(entity.type)}]", style=colour)
        at = last
    return text.append(shown(sentence.text[at:]))


def tagger_figures(run: Mapping[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table of one seed's scores."""
    test = run["test"]
    shapes = f", {test['active_shapes']:.1f} of them shape features" if test["active_shapes"] else ""
    rows = [
        ("entity F1", f"{test['f1']:.2%}", f"precision {test['precision']:.2%}, recall {test['recall']:.2%}, strict"),
        ("token accuracy", f"{test['token_accuracy']:.2%}", "words with exactly the right tag"),
        ("active words", f"{test['active_words']:.1f}", f"per position{shapes}; sparsity {test['sparsity']:.2%}"),
        ("identity error", f"{test['identity_error']:.0e}", "contributions and bias sum to the logit, per position"),
        ("seconds", f"{test['seconds']:.0f}", f"to tag {test['words']} words"),
        *document_rows(run),
        *constraint_rows(run),
    ]
    if test["sentences_in_windows"]:
        rows.append(("in windows", str(test["sentences_in_windows"]), "sentences longer than the model reads at once"))
    if test["words_unread"]:
        rows.append(("unread", str(test["words_unread"]), "words that tokenise to nothing"))
    return f"On {test['sentences']} test sentences (seed {run['seed']})", rows


def document_rows(run: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """How the same model classifies whole texts, where it does."""
    if (found := run.get("documents")) is None:
        return []
    majority = f"of {found['texts']} test texts; {found['majority']:.2%} have the most frequent label"
    identity = "contributions and bias sum to the logit, per text"
    return [
        ("accuracy, texts", f"{found['accuracy']:.2%}", majority),
        ("active words, texts", f"{found['active_words']:.1f}", "per text"),
        ("identity error, texts", f"{found['identity_error']:.0e}", identity),
    ]


def seeds_figures(mean: Mapping[str, Any]) -> tuple[str, list[tuple[str, str, str]]]:
    """Heading and rows of the table over seeds, from the `mean` of their results."""
    f1, active = mean["f1"], mean["active_words"]
    rows = [
        ("entity F1", f"{f1['mean']:.2%}", f"95 % CI {f1['low']:.2%} to {f1['high']:.2%}"),
        (
            "active words",
            f"{active['mean']:.1f}",
            f"95 % CI {active['low']:.1f} to {active['high']:.1f}",
        ),
    ]
    return f"Mean of {f1['count']} seeds", rows


def types_table(test: Mapping[str, Any]) -> Group:
    """Precision, recall and F1 of each type."""
    rows = [
        (
            name,
            *(f"{own[key]:.1%}" for key in ("precision", "recall", "f1")),
            *(str(own[key]) for key in ("gold", "predicted", "correct")),
        )
        for name, own in test["types"].items()
    ]
    columns = ("type", "precision", "recall", "F1", "true", "predicted", "correct")
    return table_view(FigureTable("By type", columns, rows))


def caps_table(test: Mapping[str, Any]) -> Group:
    """F1 under each cap on words per position."""
    rows = [
        (str(point["k"] or "all"), f"{point['f1']:.2%}", f"{point['active_words']:.1f}")
        for point in test["topk_per_position"]
    ]
    return table_view(FigureTable("With at most k words per position", ("k", "F1", "active"), rows, left=0))
