"""Cost of one explained prediction against captum, and of the sparse vector against sentence-transformers.

Cost only: captum's methods explain input tokens, ours words.
"""

import torch
from sentence_transformers.sparse_encoder.modules import SpladePooling

from benchmarks import contenders as c
from benchmarks.measure import seconds
from lexical_sae.evaluation.explainers.captum_methods import captum_explainers, explain_text
from lexical_sae.inference import explain

TEXT = "a slow and rather predictable story that is saved by warm performances and a lovely last half hour"


def explainer_rows(models: dict[str, c.LexicalSAE], repeats: int) -> list[tuple[str, str, str, str]]:
    rows = []
    for name, model in models.items():
        times = explainer_times(model.eval(), repeats)
        figures = ", ".join(f"{side} {value * 1000:.0f} ms" for side, value in times.items())
        for side, goal in (("IG-50", "≥ 60"), ("LIME-1000", "≥ 500")):
            what = f"predict+explain one text, captum {side} / {name}"
            rows.append((what, goal, f"{times[side] / times['ours']:.0f}", figures))
    return [*rows, lexical_row(models, repeats)]


def explainer_times(model: c.LexicalSAE, repeats: int) -> dict[str, float]:
    """CPU seconds of one explained text; captum explains the same model."""
    gradients, lime = captum_explainers()
    fast = seconds({"ours": lambda: explain(model, [TEXT])}, 5 * repeats)
    slow = seconds(
        {
            "IG-50": lambda: explain_text(gradients, model, TEXT),
            "LIME-1000": lambda: explain_text(lime, model, TEXT),
        },
        1,
    )
    return {**fast, **slow}


@torch.no_grad()
def lexical_row(models: dict[str, c.LexicalSAE], repeats: int) -> tuple[str, str, str, str]:
    """Hidden states to sparse vector: decoder and `SpladePooling` against our routes for inference."""
    batch, whole = c.full(32, 128), models["whole vocabulary"]
    ids, mask = batch.input_ids, batch.attention_mask
    hidden = whole.backbone.hidden(ids, mask)
    pooling = SpladePooling("max", "relu")

    def theirs() -> None:
        pooling({"token_embeddings": whole.backbone.decoder(hidden), "attention_mask": mask.long()})

    sides = {"SpladePooling": theirs}
    for name, model in models.items():
        sides[name] = lambda model=model: model.projection.open_words(hidden, ids, mask)
    times = seconds(sides, repeats)
    figures = ", ".join(f"{side} {value:.3g} s" for side, value in times.items())
    ratio = f"{times['SpladePooling'] / times['whole vocabulary']:.2f}"
    return ("SpladePooling / whole vocabulary, on the same logits, 32×128", "≥ 2.5", ratio, figures)
