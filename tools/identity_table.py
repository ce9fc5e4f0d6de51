"""Print the identity error of every combination of parts on real text: `make identity`."""

import itertools

import torch

from lexical_sae.data import load_text_dataset
from lexical_sae.data.batches import tokenize
from lexical_sae.mechanistic.attribution import identity_error
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.training.preparation.calibrated_start import open_about

GATES = ("drelu", "gated_jumprelu", "jumprelu")
LABELS = {"classify": ("negative", "positive"), "tag": ("O", "B", "I")}


@torch.no_grad()
def errors(gate: str, pool: str, head: str, topk: int, dtype: torch.dtype, batch) -> tuple[float, float, float]:
    """Worst identity error of documents and of positions, and the active words per document."""
    torch.manual_seed(0)
    parts = {"gate": {"kind": gate, "offset": True}, "pool": pool, "head": head, "topk_per_position": topk}
    model = LexicalSAE(ModelConfig.model_validate(parts), load_backbone(), LABELS).eval()
    open_about(model, [batch], 100)
    model = model.to(dtype)
    sequence = model(batch.input_ids, batch.attention_mask)
    document = model.classify(sequence, batch.attention_mask)
    positions = model.tag_state(sequence, batch.attention_mask)
    active = (document.sparse_vector > 0).sum(-1).double().mean().item()
    return identity_error(document).max().item(), identity_error(positions).max().item(), active


def main() -> None:
    texts = load_text_dataset("movie_snippets").test.texts[:16]
    batch = tokenize(load_backbone().tokenizer, texts, 64).batch(list(range(16)))
    print("| gate | pool | head | top-k | active | document fp32 | position fp32 | document fp64 | position fp64 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for gate, pool, head, topk in itertools.product(GATES, ("max", "attention"), ("relu", "bcos"), (0, 20)):
        single = errors(gate, pool, head, topk, torch.float32, batch)
        double = errors(gate, pool, head, topk, torch.float64, batch)
        figures = " | ".join(f"{value:.0e}" for value in (*single[:2], *double[:2]))
        print(f"| {gate} | {pool} | {head} | {topk or '-'} | {single[2]:.0f} | {figures} |")


if __name__ == "__main__":
    main()
