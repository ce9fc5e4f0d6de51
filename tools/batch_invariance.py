"""Print how far batch size, order and padding side move logits and attributions of a saved model.

    python tools/batch_invariance.py results/quickstart/model

Words whose logit is within 1e-4 of their threshold may change by rounding: they are left out and counted.
"""

import sys

import torch

from lexical_sae import LexicalSAE, load_text_dataset
from lexical_sae.data.batches import TokenizedTexts, tokenize
from lexical_sae.mechanistic.attribution import attribute

TEXTS = 200


@torch.no_grad()
def run(model: LexicalSAE, texts: TokenizedTexts, rows: list[int], size: int, left: bool) -> tuple[torch.Tensor, ...]:
    """Logits, raw attributions of the first class, distances to the threshold, in the order of `range(len(rows))`."""
    found = []
    for start in range(0, len(rows), size):
        batch = texts.batch(rows[start : start + size])
        ids, mask = batch.input_ids, batch.attention_mask
        if left:
            order = torch.argsort(mask.to(torch.int8), dim=1, stable=True)
            ids, mask = ids.gather(1, order), mask.gather(1, order)
        state = model.classify_document(ids, mask)
        first = torch.zeros(len(ids), dtype=torch.long)
        distance = (model.max_logits(ids, mask) - model.gate.opening_logits()).abs()
        found.append((state.logits, attribute(state, first), distance))
    back = torch.tensor(rows).argsort()
    return tuple(torch.cat(parts)[back] for parts in zip(*found, strict=True))


def main() -> None:
    model = LexicalSAE.from_pretrained(sys.argv[1])
    texts = tokenize(model.tokenizer, load_text_dataset("movie_snippets").test.texts[:TEXTS], model.max_length)
    in_order = list(range(TEXTS))
    logits, attributions, distance = run(model, texts, in_order, 32, left=False)
    near = distance < 1e-4
    shuffled = torch.randperm(TEXTS, generator=torch.Generator().manual_seed(0)).tolist()
    variants = {
        "one by one": (in_order, 1, False),
        "batches of 8": (in_order, 8, False),
        "batches of 128": (in_order, 128, False),
        "shuffled": (shuffled, 32, False),
        "padded on the left": (in_order, 32, True),
    }
    print(f"{TEXTS} texts, batches of 32 in order against:")
    for name, (rows, size, left) in variants.items():
        other_logits, other, _ = run(model, texts, rows, size, left)
        gap = (other - attributions).masked_fill(near, 0).abs().max().item()
        print(f"  {name:20} logit {(other_logits - logits).abs().max().item():.1e}  attribution {gap:.1e}")
    active = (attributions != 0).sum().item()
    print(f"words within 1e-4 of their threshold, left out: {int(near.sum())} (active words: {active})")


if __name__ == "__main__":
    main()
