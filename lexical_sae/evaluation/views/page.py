"""An evaluation on a page: three questions, each with its figures, its charts, and all the rest to unfold."""

from lexical_sae.evaluation.results import EvaluationResults
from lexical_sae.evaluation.views.decisions import decision_charts, decision_rows, decision_tables
from lexical_sae.evaluation.views.faithfulness import faithfulness_charts, faithfulness_rows, faithfulness_tables
from lexical_sae.evaluation.views.words import word_rows, word_tables
from lexical_sae.report.page import EvaluationPart, Figures, Topic
from lexical_sae.report.tables import FIGURE, FigureTable

UNREADABLE = "Left out: this file holds {} in a form that this version cannot read."


def evaluation_part(found: EvaluationResults) -> EvaluationPart:
    """All of an evaluation but the folder of the model: omitted, since it may reveal local paths."""
    about = [
        f"On {found.texts} texts of {found.about.get('data', 'unnamed data')}. "
        "In brackets and as upright lines: 95 % confidence intervals over texts.",
        *(UNREADABLE.format(key) for key in found.unreadable),
        *skipped_lines(found),
    ]
    decides = Topic(
        Figures("How well does it decide?", decision_rows(found)), decision_charts(found), decision_tables(found)
    )
    if found.skipped:
        return EvaluationPart(" ".join(about), [decides], measuring_table(found))
    return EvaluationPart(
        " ".join(about),
        [
            decides,
            Topic(
                Figures("Are its explanations true?", faithfulness_rows(found)),
                faithfulness_charts(found),
                faithfulness_tables(found),
            ),
            Topic(Figures("What are its words like?", word_rows(found)), (), word_tables(found)),
        ],
        measuring_table(found),
    )


def skipped_lines(found: EvaluationResults) -> list[str]:
    """What was not measured, and why: a sentence per reason."""
    by_reason: dict[str, list[str]] = {}
    for key, reason in found.skipped.items():
        by_reason.setdefault(reason, []).append(key.replace("_", " "))
    return [f"Not measured: {', '.join(keys)} ({reason})." for reason, keys in by_reason.items()]


def measuring_table(found: EvaluationResults) -> FigureTable:
    """On what and how long it was measured."""
    facts = {
        "data": found.about.get("data"),
        "split": found.about.get("split"),
        "texts": found.texts,
        "at most": found.about.get("most_texts"),
        "seed of resampling and sampling": found.seed,
        "version of the file's layout": found.schema_version,
    }
    rows = [
        *((name, str(value)) for name, value in facts.items() if value is not None),
        ("labels", ", ".join(found.labels)),
        *((f"seconds for {part}", f"{seconds:.2f}") for part, seconds in found.seconds.items()),
    ]
    return FigureTable("How it was measured", FIGURE, rows)
