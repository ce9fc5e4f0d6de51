"""Made-up explanations to show."""

from dataclasses import replace

from lexical_sae.explanation import Cause, SpanContribution, WordContribution
from lexical_sae.report.explanation.shown import ShownExplanation

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
    fields = {"start": 2, "end": 6, "is_expansion": True, "if_removed": 0.5 - said, "region_changed": i == 0}
    fields = {**fields, "label_if_removed": "positive", **changes}
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
    words = (word(0, name, label_if_removed=name, start=0, end=len(name)),)
    return explanation(text=name, label="x" + name, target=name, words=words, spans=spans, not_explained=(name,))


def literal_explanation(cause: str = "not") -> ShownExplanation:
    """Of a model with literal words: a reversed word with its cause, a stronger one, a weaker one, and one unmoved."""
    text = f"{cause} bad but great fun plot"
    at = {name: text.index(f" {name}") + 1 for name in ("bad", "great", "fun", "plot")}
    said = {"bad": (0.75, -1.5), "great": (2.0, 1.0), "fun": (0.25, 0.5), "plot": (-0.5, -0.5)}
    causes = {"bad": Cause(cause, 0, len(cause), 1.0)}
    words = tuple(
        word(0, name, start=at[name], end=at[name] + len(name), is_expansion=False, if_removed=-contribution)
        for name, (contribution, _) in said.items()
    )
    words = tuple(
        replace(one, contribution=said[one.word][0], default=said[one.word][1], cause=causes.get(one.word))
        for one in words
    )
    spans = tuple(SpanContribution(one.word, one.start, one.end, one.contribution) for one in words)
    return explanation(text=text, words=tuple(sorted(words, key=lambda w: -abs(w.contribution))), spans=spans)
