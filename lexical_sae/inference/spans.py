"""Words of the text with one number each, the short form."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from lexical_sae.inference.explaining import explain_batch
from lexical_sae.inference.labels import check_method
from lexical_sae.inference.question import Question
from lexical_sae.inference.reading import ReadTexts, answers, is_one_text
from lexical_sae.mechanistic.exact import attribute_towards
from lexical_sae.mechanistic.span_aggregation import MERGES, merge_tokens
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.lexical_sae import LexicalSAE

ROUTED = "routed"
WordScores = list[tuple[str, float]]


def explain_model_spans(
    model: LexicalSAE,
    texts: Any,
    method: str = ROUTED,
    target: str | int | None = None,
    contrast: str | int | None = None,
    batch_size: int = 32,
) -> WordScores | list[WordScores]:
    """The words of a text, or of each text of an iterable, with their scores: whole words, never subwords.

    `routed` gives each word the contributions of the active words that it won, expansions included; with the whole
    text and the bias of `explain` they sum to the decision. `sum` and `max_abs` look only at the dimensions of a
    word's own subwords (as `aggregate_subword_attributions` does), or its own where it is cut and has one. `target` and
    `contrast` are those of `explain`.

    Example: `explain_model_spans(model, "a funny film")` -> [("a", 0.0), ("funny", 0.83), ("film", -0.02)]
    """
    check_method(method, (ROUTED, *MERGES))
    question = Question.of(model, target, contrast, "dla", effects=False, places=True)

    def routed(read: ReadTexts) -> Iterator[WordScores]:
        for explanation in explain_batch(question, read):
            yield [(span.text, span.score) for span in explanation.spans or ()]

    def by_own_subwords(read: ReadTexts) -> Iterator[WordScores]:
        logits = read.state.logits
        contributions = attribute_towards(read.state, question.direction(logits, question.targets(logits)))
        dense = replace(read.state.code, values=contributions).dense()
        for scores, layout in zip(dense, read.layouts, strict=True):
            own = read.model.own_words(torch.tensor([layout.token_ids], dtype=torch.long, device=scores.device))[0]
            per_token = scores[own].masked_fill(own == NO_WORD, 0.0)
            yield merge_tokens(layout, per_token.tolist(), method)

    scored = list(answers(model, texts, batch_size, routed if method == ROUTED else by_own_subwords))
    return scored[0] if is_one_text(texts) else scored
