"""Explanations in the forms of other people's tools: a tidy frame, a sentence, a figure, SHAP's and captum's records.

Each library is asked for only where its form is: pandas, matplotlib and shap are no requirements of this package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lexical_sae.explanation import PIECE, Explanation, WordContribution
from lexical_sae.report.explanation.steps import Sum, listing, question
from lexical_sae.utils.errors import MissingPackageError, SettingsError

COLUMNS = (
    "text", "label", "probability", "target", "word", "start", "end", "contribution", "if_removed",
    "default", "context", "activation", "kind", "is_expansion", "region_changed", "label_if_removed", "cause",
)  # fmt: skip
"""Columns of a frame; `text` is the number of the text in the list."""
NAMED = 3
"""Words that a sentence names."""


def frame_of(explanations: Sequence[Explanation]) -> Any:
    """A pandas DataFrame with a row for each active word of each text, the top-attributed first.

    `start` and `end` are the place in the text of the word that activated it; `if_removed` is the exact change of the
    explained logit when the word alone is removed. Per text, `contribution` and the bias sum to what is explained; the
    bias is in `frame.attrs["bias"]`.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingPackageError("to_frame needs pandas: pip install 'lexical-sae[frames]'") from error
    rows = [_row(number, why, word) for number, why in enumerate(explanations) for word in why.words]
    frame = pd.DataFrame(rows, columns=pd.Index(COLUMNS)).astype({"start": "Int64", "end": "Int64"})
    frame.attrs["bias"] = [why.bias for why in explanations]
    return frame


def _row(number: int, why: Explanation, word: WordContribution) -> tuple[Any, ...]:
    decided = (number, why.label, why.probability, why.target)
    said = (word.contribution, word.if_removed, word.default, word.context, word.activation, word.kind)
    effect = (word.is_expansion, word.region_changed, word.label_if_removed, word.cause and word.cause.word)
    return (*decided, word.word, word.start, word.end, *said, *effect)


def sentence(why: Explanation, named: int = NAMED) -> str:
    """One sentence for a letter: the decision, how sure, the words that contributed most, and what it leaves out.

    Example: `Decided: positive (93%): “warm” (+1.20) and “funny” (+0.80) contributed most to it; “slow” (-0.40) counted
    against it; 5 other words and the bias contributed +0.90, for a total of +2.50 in logits.`
    """
    words = [word for word in why.words if word.kind != PIECE and word.contribution]
    chosen = sorted(words, key=lambda word: -abs(word.contribution))[:named]
    lead = [word for word in chosen if word.contribution > 0]
    against = [word for word in chosen if word.contribution < 0]
    rest = why.explained - sum(word.contribution for word in chosen)
    if why.abstained is not None:
        begin = f"No decision: {why.abstained.rstrip('.')}"
    else:
        share = "" if why.probability is None else f" ({why.probability:.0%})"
        begin = f"Decided: {why.label}{share}"
    about = "it" if why.target == why.label and why.contrast is None else question(why)
    parts = []
    if lead:
        parts.append(f"{_names(lead)} contributed most to {about}")
    if against:
        parts.append(f"{_names(against)} counted against {about}")
    if not parts:
        parts.append(f"no word contributed to {about}")
    others = len(why.words) - len(chosen)
    what = f"{others} other {'word' if others == 1 else 'words'} and the bias" if others else "the bias"
    parts.append(f"{what} contributed {rest:+.2f}, for a total of {why.explained:+.2f}{why.unit}")
    return f"{begin}: {'; '.join(parts)}."


def _names(words: Sequence[WordContribution]) -> str:
    named = [f"“{word.word}” ({word.contribution:+.2f})" for word in words]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def figure_of(why: Explanation, top: int = 12) -> Any:
    """A matplotlib figure: a bar per word, from where the one before ended, and the decision last.

    ImportError without matplotlib; `report.charts.waterfall` draws the same as SVG.
    """
    # Not pyplot: a figure that is only returned must not stay in its list of open ones.
    from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports]

    listed = listing(why, top)
    steps = [*(Sum(word.word, word.contribution) for word in listed.words), *listed.rest]
    figure = Figure(figsize=(6, 0.9 + 0.28 * (len(steps) + 1)), layout="constrained")
    axes = figure.subplots()
    ends = np.cumsum([0.0, *(step.amount for step in steps)])
    for row, step in enumerate(steps):
        axes.barh(row, step.amount, left=ends[row], color="#3366cc" if step.amount > 0 else "#d9480f")
        axes.annotate(f"{step.amount:+.2f}", (max(ends[row], ends[row + 1]), row), va="center", fontsize=8)
    axes.barh(len(steps), why.explained, color="#555555")
    axes.set_yticks(range(len(steps) + 1), [*(step.name for step in steps), "decision"])
    axes.invert_yaxis()
    axes.axvline(0, color="#888888", linewidth=0.8)
    axes.set_xlabel("logits" if why.unit else why.target)
    axes.set_title(f"{why.headline}: words {question(why)}", fontsize=10)
    return figure


@dataclass(frozen=True)
class ShapFields:
    """What a `shap.Explanation` is made of; per text a value for every token, its base value, and the tokens."""

    values: tuple[np.ndarray, ...]
    base_values: np.ndarray
    data: tuple[np.ndarray, ...]


def shap_fields(explanations: Sequence[Explanation]) -> ShapFields:
    """Values over the words of the texts, as shap's text plots want them: exact, where SHAP's own are estimates.

    Tokens are the words with the characters after them, so that together they are the text. What no single word of the
    text contributes is the base value, with the bias: values and base value sum to what is explained.
    """
    values, bases, data = [], [], []
    for why in explanations:
        if why.spans is None:
            raise SettingsError("SHAP's form needs places; explain with places=True")
        cuts = [0, *(span.start for span in why.spans[1:]), len(why.text)] if why.spans else [0, len(why.text)]
        data.append(np.array([why.text[a:b] for a, b in zip(cuts, cuts[1:], strict=False)], dtype=object))
        values.append(np.array([span.score for span in why.spans] or [0.0]))
        bases.append(why.explained - float(values[-1].sum()))
    return ShapFields(tuple(values), np.array(bases), tuple(data))


def shap_explanation(explanations: Sequence[Explanation]) -> Any:
    """A `shap.Explanation` for `shap.plots.text` and its kin."""
    try:
        import shap  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingPackageError(
            "to_shap needs shap: pip install 'lexical-sae[shap]'; shap_fields gives the same numbers without it"
        ) from error
    fields = shap_fields(explanations)
    ragged = [np.empty(len(explanations), dtype=object) for _ in range(2)]
    for row in range(len(explanations)):
        ragged[0][row], ragged[1][row] = fields.values[row], fields.data[row]
    return shap.Explanation(values=ragged[0], base_values=fields.base_values, data=ragged[1])


class CaptumRecord(NamedTuple):
    """What captum's `visualize_text` reads of a text; the fields of its `VisualizationDataRecord`, in its order."""

    word_attributions: np.ndarray
    """A value per word, divided by the largest size of all; the exact ones are `attr_score` in all."""
    pred_prob: float
    """NaN where a number is predicted."""
    pred_class: str
    true_class: object
    attr_class: str
    """What the values are for."""
    attr_score: float
    """Sum of the contributions of words."""
    raw_input_ids: list[str]
    """The words."""
    convergence_score: float
    """Relative gap between what is explained and the sum of contributions and bias."""


def captum_record(why: Explanation, truth: object = "") -> CaptumRecord:
    """The words of a text in order, with values from -1 to 1, as captum colours them.

    `visualize_text([captum_record(why)])` needs captum; the record does not. The contributions themselves are those
    that `shap_fields` gives.
    """
    fields = shap_fields([why])
    values, tokens = fields.values[0], fields.data[0]
    largest = float(np.abs(values).max(initial=0.0))
    return CaptumRecord(
        values / largest if largest else values,
        float("nan") if why.probability is None else why.probability,
        why.label,
        truth,
        why.target if why.contrast is None else f"{why.target}, not {why.contrast}",
        float(values.sum()),
        [str(token).strip() for token in tokens],
        why.identity_error,
    )
