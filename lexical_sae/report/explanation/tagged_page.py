"""A page of tagged sentences: entities in colour, and for each the dimensions that decided. No script, all escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from lexical_sae.data.tagged_sentence import TaggedSentence
from lexical_sae.data.tagging import Entity
from lexical_sae.report.charts.curves import HEIGHT, WIDTH
from lexical_sae.report.charts.svg import Axis, Picture, Series, line_chart
from lexical_sae.report.explanation.entities import COLOURS, type_places
from lexical_sae.report.explanation.html import explained_text
from lexical_sae.report.explanation.shown import ShownExplanation
from lexical_sae.report.page import Figures, html_document
from lexical_sae.report.printable import shown

SHAPE_MEANINGS: dict[str, str] = {
    "is capitalised": "begins with a capital and is not all in capitals: Oslo",
    "all caps": "two letters or more, all of them capitals: EU, U.S.",
    "mixed case": "a capital after the beginning, and small letters too: McKay",
    "has digit": "a digit somewhere: 3rd",
    "is a number": "digits, and beside them only signs as numbers have them: 1,000 or 3-1",
    "has hyphen": "a hyphen between its letters: third-place",
    "has full stop": "a full stop, and a letter: U.S.",
    "opens the sentence": "it is the first word",
    "after a capital": "the word before it begins with a capital",
    "before a capital": "the word after it begins with a capital",
    "in a headline": "two thirds or more of the sentence's longer words are all in capitals",
}
"""By the name of the dimension, in the order of the dimensions; examples come after the colon."""


STYLES = ("report.css", "tagging.css")
WORDS = 8
"""Dimensions of an entity that are named; the others are summed."""


@dataclass(frozen=True)
class ShownSentence:
    """A tagged sentence with what there is to say about it."""

    sentence: TaggedSentence
    explanations: Sequence[ShownExplanation] = ()
    """Of the first word of each entity, in their order; or none."""
    gold: TaggedSentence | None = None
    """The true tags, if they are known."""

    @property
    def is_right(self) -> bool | None:
        """Whether all entities are the true ones; None where those are not known."""
        return None if self.gold is None else self.gold.entities == self.sentence.entities


@dataclass(frozen=True)
class RunParts:
    """What a run has to show beside its scores."""

    about: str = ""
    """What was trained on what."""
    seeds: Figures | None = None
    """The mean over several seeds."""
    scores: Sequence[tuple[str, str, str]] = ()
    """Of texts as a whole, and whether the constraint was satisfied (`document_rows`, `constraint_rows`)."""
    evaluation: Sequence[Figures] = ()
    """Whether its explanations are true, beside controls."""
    curves: Sequence[Picture] = ()
    """How training went."""
    shapes: Sequence[str] = ()
    """Names of the shape features that the model has."""
    encoder_gets_shapes: bool = False
    """Whether its encoder knows of them too."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """Settings and versions: the text of each file by its name."""
    missing: Sequence[str] = ()
    """What the page could have shown and why it does not, in sentences."""


def tagging_page(
    title: str,
    sentences: Sequence[ShownSentence],
    types: Sequence[str],
    *,
    notes: Sequence[str] = (),
    test: Mapping[str, Any] | None = None,
    lexicons: Sequence[Mapping[str, Any]] = (),
    compared: Sequence[tuple[str, float]] = (),
    run: RunParts = RunParts(),
) -> str:
    """The page; with `test` (the figures of `results.json`) also the scores, by type and by cap.

    `compared` are baselines: a name and its F1. Sections without data are left out.
    """
    found = [entity.type for shown_one in sentences for entity in shown_one.sentence.entities]
    places = type_places([*types, *found])
    style = "\n".join((files("lexical_sae.report") / "templates" / name).read_text(encoding="utf-8") for name in STYLES)
    return html_document(
        "tagging.html.j2",
        shown(title),
        style=style,
        colour_of=lambda name: places[name] % len(COLOURS),
        types=list(places),
        sentences=[_pieces(one) for one in sentences],
        notes=notes,
        test=test,
        curve=curve_picture(test) if test else None,
        lexicons=lexicons,
        compared=compared,
        run=run,
        shapes=[(name, SHAPE_MEANINGS[name]) for name in run.shapes],
    )


def curve_picture(test: Mapping[str, Any]) -> Picture:
    """F1 against the cap on words per position; what the model uses of itself is the last point."""
    points = test["topk_per_position"]
    x = [point["active_words"] for point in points]
    y = [100 * point["f1"] for point in points]
    title = "F1 against active words per position"
    axes = Axis("active words per position"), Axis("F1 in %")
    chart = line_chart(title, *axes, [Series("test", x, y)], width=WIDTH, height=HEIGHT)
    told = "; ".join(f"at most {p['k'] or 'any number of'} words: F1 {p['f1']:.1%}" for p in points)
    return Picture(title, chart, told)


def _pieces(one: ShownSentence) -> dict[str, Any]:
    """What the template needs to show a sentence: its text in pieces, and its entities with their reasons."""
    sentence, pieces, at = one.sentence, [], 0
    for entity in sentence.entities:
        first, last = sentence.characters(entity)
        pieces += [(shown(sentence.text[at:first]), None), (shown(sentence.text[first:last]), entity.type)]
        at = last
    pieces.append((shown(sentence.text[at:]), None))
    reasons = [
        (shown(sentence.written(entity)), entity.type, explained_text(why, WORDS))
        for entity, why in zip(sentence.entities, one.explanations, strict=bool(one.explanations))
    ]
    return {
        "pieces": [piece for piece in pieces if piece[0]],
        "reasons": reasons,
        "is_right": one.is_right,
        "missed": _listed(one.gold, sentence) if one.gold else [],
        "wrong": _listed(sentence, one.gold) if one.gold else [],
    }


def _listed(sentence: TaggedSentence, other: TaggedSentence) -> list[tuple[str, str]]:
    """Entities of one sentence that the other has not, as text and type."""
    theirs: set[Entity] = set(other.entities)
    return [(shown(sentence.written(entity)), entity.type) for entity in sentence.entities if entity not in theirs]
