"""A page of tagged sentences, with something in every section."""

from typing import Any

from lexical_sae.data.tagged_sentence import TaggedSentence
from lexical_sae.report.charts.svg import Axis, Picture, Series, line_chart
from lexical_sae.report.explanation.tagged_page import RunParts, ShownSentence, tagging_page
from lexical_sae.report.page import Figures
from tests.report.explanations import named_explanation

COUNTS = {"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "gold": 2, "predicted": 1, "correct": 1}
PICTURE = Picture("Cross-entropy", line_chart("t", Axis("x"), Axis("y"), [Series("a", [1, 2], [3, 4])]), "fell")


def scores(name: str) -> dict[str, Any]:
    """What `results.json` says of the test split."""
    points = [{"k": 5, "f1": 0.5, "active_words": 6.0}, {"k": 0, "f1": 2 / 3, "active_words": 31.4}]
    counts = {"sentences": 7, "words": 70, "active_words": 31.4, "active_shapes": 1.5}
    types = {"LOC": COUNTS, name: COUNTS}
    return {"f1": 2 / 3, "token_accuracy": 0.9, "identity_error": 2e-7, "topk_per_position": points} | {
        "types": types,
        **counts,
    }


def said(name: str) -> TaggedSentence:
    return TaggedSentence.of_words(["Oslo", "is", name], ["B-LOC", "O", "O"])


def run_parts(name: str) -> RunParts:
    return RunParts(
        about=name,
        seeds=Figures("Mean of 2 seeds", [("entity F1", "90%", name)]),
        evaluation=[Figures("Are its explanations true?", [("same sign", "97%", name)])],
        curves=[PICTURE],
        shapes=["all caps"],
        documents={name: f"key: {name}"},
        missing=[name],
    )


def full_tagging_page(name: str = "ordinary") -> str:
    """The page with every section; `name` stands wherever a string from outside can stand."""
    gold = TaggedSentence.of_words(["Oslo", "is", name], ["B-LOC", "O", "B-PER"])
    word = {"word": name, "kind": "word", "contribution": 1.0, "active": 1.0}
    return tagging_page(
        name,
        [ShownSentence(said(name), [named_explanation(name)], gold)],
        ["LOC", name],
        notes=[name],
        test=scores(name),
        lexicons=[{"type": "LOC", "positions": 3, "words": [word]}],
        compared=[(name, 0.5)],
        run=run_parts(name),
    )
