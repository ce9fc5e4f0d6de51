"""The report: one HTML file that stands alone. No script, nothing from elsewhere, every string escaped.

A content security policy says the same to the browser: it takes this page's style by its hash, pictures from the page
itself, and nothing else. What a page shows is plain data; sections without data are left out.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lexical_sae.explanation import Explanation
from lexical_sae.report.charts.svg import Picture
from lexical_sae.report.explanation.html import explained_text
from lexical_sae.report.html_templates import templates

if TYPE_CHECKING:
    from lexical_sae.report.tables import FigureTable, TablesPage

MOST_LABELS = 12
"""Labels of a confusion matrix."""
WORDS = 12
"""Words of a text that are named; the others are summed."""


@dataclass(frozen=True)
class Figures:
    """Named figures with a remark each, under a heading."""

    heading: str
    rows: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Topic:
    """A question, its answer in a few figures and charts, and the tables behind it."""

    figures: Figures
    charts: Sequence[Picture]
    tables: Sequence["FigureTable"]


@dataclass(frozen=True)
class EvaluationPart:
    """What a page shows of an evaluation."""

    about: str
    topics: Sequence[Topic]
    measuring: "FigureTable"


@dataclass(frozen=True)
class Example:
    """A text with its explanation, and the label that it should have got where that is known."""

    explanation: Explanation
    labelled: str | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether the decision is known to be another than the label."""
        return self.labelled is not None and self.labelled != self.explanation.label


@dataclass(frozen=True)
class Study:
    """A page beside this one."""

    name: str
    address: str
    """From this page to that one, as links write it."""


@dataclass(frozen=True)
class Confusion:
    """How many texts of each label get which decision."""

    labels: Sequence[str]
    counts: Sequence[Sequence[int]]
    """By true label, then decision."""

    def shown(self) -> list[tuple[str, list[tuple[int, str]]]]:
        """Rows of the table: the label, and each count with its shade; of many labels those most confused.

        Example: of `[[8, 2], [1, 9]]` the first row is ("a", [(8, "for t5"), (2, "against t5")])
        """
        places = self.places
        right = max((self.counts[a][a] for a in places), default=0) or 1
        wrong = max((self.counts[a][b] for a in places for b in places if a != b), default=0) or 1

        def shade(a: int, b: int) -> str:
            kind, most = ("for", right) if a == b else ("against", wrong)
            return f"{kind} t{-(-5 * self.counts[a][b] // most)}"

        return [(self.labels[a], [(self.counts[a][b], shade(a, b)) for b in places]) for a in places]

    @property
    def places(self) -> list[int]:
        """The labels that are shown, in the model's order."""
        errors = [
            sum(self.counts[a][b] + self.counts[b][a] for b in range(len(self.labels)) if a != b)
            for a in range(len(self.labels))
        ]
        return sorted(sorted(range(len(self.labels)), key=lambda a: -errors[a])[:MOST_LABELS])


@dataclass(frozen=True)
class Lead:
    """What a page of a model with literal words shows first: its table in words, and how far it decides."""

    classes: Sequence[tuple[str, Sequence[Any]]]
    """Per label its strongest words, each with `name`, `weight` and `texts`."""
    from_data_alone: Sequence[str] = ()
    """Words whose weight is the training data's, not their meaning's."""
    accuracies: Sequence[tuple[str, str, str]] = ()
    """Of the model, of its table alone, and of baselines: name, value and remark."""
    examples: Sequence[Example] = ()
    confusion: Confusion | None = None


@dataclass(frozen=True)
class Page:
    """What a page shows."""

    title: str
    subtitle: str = ""
    lead: Lead | None = None
    """What stands above all figures; None for models without a table of words."""
    explorer: str = ""
    """The address of the explorer of the same run; empty where there is none."""
    headline: Figures | None = None
    """The figures to see first."""
    figures: Sequence[Figures] = ()
    """Further tables of figures: names, baselines."""
    evaluation: EvaluationPart | None = None
    curves: Sequence[Picture] = ()
    lexicon: Mapping[str, Any] | None = None
    """`Lexicon.as_dict()`"""
    examples: Sequence[Example] = ()
    frontier: Picture | None = None
    explainers: "TablesPage | None" = None
    """The comparison of explainers."""
    studies: Sequence[Study] = ()
    """Pages of further studies beside this one."""
    documents: Mapping[str, str] | None = None
    """Settings and versions: the text of each file by its name."""
    missing: Sequence[str] = ()
    """What the page could have shown and why it does not, in sentences."""


def page_html(page: Page) -> str:
    """The page as one HTML document; the same data always gives the same document."""
    return html_document(
        "report.html.j2",
        page.title,
        page=page,
        texts=_texts(page.examples),
        first_texts=_texts(page.lead.examples) if page.lead else [],
        heaviest=_heaviest(page.lead) if page.lead else 1.0,
        reach=_Reach.of(page.lexicon) if page.lexicon else None,
    )


def _texts(examples: Sequence[Example]) -> list[dict[str, Any]]:
    return [{"example": one, **explained_text(one.explanation, WORDS)} for one in examples]


def _heaviest(lead: Lead) -> float:
    """The greatest weight, which has the longest bar."""
    return max((word.weight for _, words in lead.classes for word in words), default=0.0) or 1.0


def html_document(template: str, title: str, *, style: str | None = None, **data: Any) -> str:
    """A template around its data, in a document that takes nothing but its own style, which is the report's if none is
    given."""
    style = page_style() if style is None else style
    style_hash = b64encode(sha256(style.encode()).digest()).decode("ascii")
    shown = templates().get_template(template)
    return shown.render(title=title, style=Markup(style), style_hash=style_hash, **data)


@dataclass(frozen=True)
class _Reach:
    """Places on a lexicon's bars: 0 for nothing, 100 for the end of the widest interval of all classes."""

    widest: float

    @classmethod
    def of(cls, lexicon: Mapping[str, Any]) -> "_Reach":
        words = [w for own in lexicon["classes"] for w in (*own["contributes_to"], *own["contributes_against"])]
        ends = [w[end] for w in words for end in ("contribution", "low", "high") if w[end] is not None]
        return cls(max(map(abs, ends), default=0.0) or 1.0)

    def __call__(self, value: float, side: int) -> float:
        """Where a value lies on its side, +1 or -1; values of the other side lie at 0."""
        return round(max(0.0, 100 * side * value / self.widest), 1)


@cache
def page_style() -> str:
    return (files("lexical_sae.report") / "templates" / "report.css").read_text(encoding="utf-8")
