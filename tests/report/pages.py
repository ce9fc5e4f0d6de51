"""Pages to look at, with something in every section."""

from lexical_sae.evaluation.corpus.table_words import TableWord
from lexical_sae.evaluation.views.page import evaluation_part
from lexical_sae.report.charts.svg import Axis, Picture, Series, line_chart
from lexical_sae.report.page import Confusion, Example, Figures, Lead, Page, Study
from tests.report.evaluations import results
from tests.report.explanations import explanation, literal_explanation, named_explanation


def lexicon_word(name: str, contribution: float, **changes) -> dict:
    interval = {"low": contribution - 0.1, "high": contribution + 0.1}
    figures = {"frequency": 0.25, "count": 9, "activation": 1.0, "is_rare": False, "dimension": 3}
    return {"name": name, "contribution": contribution, **interval, **figures, **changes}


def full_page(name: str = "ordinary") -> Page:
    """A page with every section; `name` stands wherever a string from outside can stand."""
    chart = line_chart(name, Axis(name), Axis(name), [Series(name, [1, 2], [3, 4])])
    sides = {"contributes_to": [lexicon_word(name, 0.5)], "contributes_against": [lexicon_word(name, -0.3)]}
    sides["pieces"] = {"count": 4, "contribution": 0.125}
    return Page(
        title=name,
        subtitle=name,
        lead=Lead(
            classes=[(name, [TableWord(name, 1.5, 7)])],
            from_data_alone=[name],
            accuracies=[(name, name, name)],
            examples=[Example(literal_explanation(name), name)],
            confusion=Confusion((name, "other"), [[8, 2], [1, 9]]),
        ),
        explorer="explorer.html",
        headline=Figures(name, [(name, name, name)]),
        figures=[Figures(name, [(name, name, name)])],
        evaluation=evaluation_part(results(name)),
        curves=[Picture(name, chart, name)],
        lexicon={"texts": 7, "classes": [{"label": name, "texts": 7, **sides}]},
        examples=[Example(named_explanation(name), name), Example(explanation(), "positive")],
        frontier=Picture(name, chart, name),
        studies=[Study(name, "a%20study.html")],
        documents={name: name},
        missing=[name],
    )
