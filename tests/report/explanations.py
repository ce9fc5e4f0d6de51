"""Made-up explanations to show."""

from splade.explanation import SpanContribution, WordContribution
from splade.report.shown_explanation import ShownExplanation

NASTY = [
    "<script>alert(1)</script>",
    '"onmouseover="x',
    "</script>",
    "{{7*7}}",
    "{% raw %}",
    "javascript:alert(1)",
    "=cmd()",
    "a & b",
    "../../etc",
]
HIDDEN = ["\x00", "\x1b[31mred", "\udc80", "\x85"]
CONTROLS = {"\x00", "\x1b", "\udc80", "\x85"}
"""Strings with characters that no HTML file can hold, and those characters."""


def word(i: int, name: str | None = None, **changes) -> WordContribution:
    """Word i speaks for the target if even, against it if odd; earlier words are stronger."""
    said = (-1) ** i * (10.0 - i)
    fields = {"start": 2, "end": 6, "is_expansion": True, "without": said - 0.5, "region_changed": i == 0}
    fields = {**fields, "label_without": "positive", **changes}
    return WordContribution(name or f"word{i}", "word", 1.0, said, **fields)


def explanation(**changes) -> ShownExplanation:
    words = changes.pop("words", tuple(word(i) for i in range(10)))
    bias = 0.25
    fields = {
        "text": "a text here",
        "label": "positive",
        "probability": 0.93,
        "words": words,
        "bias": bias,
        "identity_error": 1e-7,
        "tokens_cut": 0,
        "probabilities": (("negative", 0.07), ("positive", 0.93)),
        "target": "positive",
        "contrast": None,
        "method": "dla",
        "explained": sum(w.contribution for w in words) + bias,
        "spans": (SpanContribution("a", 0, 1, -2.0), SpanContribution("text", 2, 6, 4.0)),
        "whole_text": 3.0,
        "not_explained": ("a limit",),
    }
    return ShownExplanation(**{**fields, **changes})


def named_explanation(name: str) -> ShownExplanation:
    """An explanation in which `name` stands wherever a string from outside can stand."""
    spans = (SpanContribution(name, 0, len(name), 1.0),)
    words = (word(0, name, label_without=name, start=0, end=len(name)),)
    return explanation(text=name, label="x" + name, target=name, words=words, spans=spans, not_explained=(name,))
