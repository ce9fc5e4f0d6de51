"""Cost of one explained prediction against captum, and of the sparse vector against sentence-transformers.

Cost only: captum's methods explain input tokens, ours words; what an explanation is worth is another question.
"""

import torch
from captum.attr import LayerIntegratedGradients, Lime
from sentence_transformers.sparse_encoder.modules import SpladePooling

from benchmarks import contenders as c
from benchmarks.measure import seconds
from splade.inference import explain

TEXT = "a slow and rather predictable story that is saved by warm performances and a lovely last half hour"


def explainer_sides(model: c.LexicalSAE, repeats: int) -> list[tuple[str, str, str, str]]:
    model.eval()
    texts = c.tokenise(model.tokenizer, [TEXT], 64)
    batch = texts.batch([0])
    embeddings = model.backbone.encoder.get_input_embeddings()  # pyright: ignore[reportCallIssue]

    def logits(ids: torch.Tensor) -> torch.Tensor:
        return model.classify_document(ids, torch.ones_like(ids, dtype=torch.bool)).logits

    integrated = LayerIntegratedGradients(logits, embeddings)
    lime = Lime(lambda ids: logits(ids.long()).detach())
    baseline = torch.full_like(batch.input_ids, int(model.tokenizer.mask_token_id))  # pyright: ignore[reportArgumentType]
    times = seconds(
        {
            "ours": lambda: explain(model, [TEXT]),
            "IG-50": lambda: integrated.attribute(batch.input_ids, baselines=baseline, target=1, n_steps=50),
            "LIME-1000": lambda: lime.attribute(
                batch.input_ids.float(), target=1, n_samples=1000, perturbations_per_eval=50
            ),
        },
        1,
    )
    figures = ", ".join(f"{side} {value * 1000:.0f} ms" for side, value in times.items())
    return [
        ("predict+explain, captum IG-50 / ours, one text", "≥ 60", f"{times['IG-50'] / times['ours']:.0f}", figures),
        ("predict+explain, captum LIME-1000 / ours", "≥ 500", f"{times['LIME-1000'] / times['ours']:.0f}", figures),
        splade_row(model, repeats),
    ]


@torch.no_grad()
def splade_row(model: c.LexicalSAE, repeats: int) -> tuple[str, str, str, str]:
    """Hidden states to sparse vector: decoder and `SpladePooling` against the fused head."""
    batch = c.full(32, 128)
    mask = batch.attention_mask
    hidden = model.backbone.hidden(batch.input_ids, mask)
    pooling = SpladePooling("max", "relu")

    def theirs() -> None:
        pooling({"token_embeddings": model.backbone.decoder(hidden), "attention_mask": mask.long()})

    times = seconds({"SpladePooling": theirs, "ours": lambda: c.fused_pool(model, hidden, mask)}, repeats)
    figures = ", ".join(f"{side} {value:.3g} s" for side, value in times.items())
    return ("SpladePooling / ours, 32×128", "≥ 2.5", f"{times['SpladePooling'] / times['ours']:.2f}", figures)
