"""A calibrated start: before the first step, about the right number of words is open, whatever the logits' scale."""

from collections.abc import Iterable

import torch

from splade.data.batches import Batch
from splade.models.lexical_sae import LexicalSAE


@torch.no_grad()
def open_about(model: LexicalSAE, batches: Iterable[Batch], words_per_text: int) -> None:
    """Shift all words' logits by one number so that on average `words_per_text` words of these texts are open.

    One shift for all words keeps their order: what the backbone finds most fitting opens first.
    """
    if model.gate.offset is None:
        raise ValueError("calibration moves the gate's offset; set model.gate.offset to true")
    model.eval()
    device = next(model.parameters()).device
    tops, texts = [], 0
    for batch in batches:
        greatest = model.max_logits(batch.input_ids.to(device), batch.attention_mask.to(device))
        can_open = greatest.masked_fill(model.gate.closed, -torch.inf)
        # The cut lies among the strongest words of each text; the rest need not be kept.
        tops.append(can_open.topk(min(10 * words_per_text, can_open.shape[1]), dim=1).values.flatten().cpu())
        texts += len(batch.rows)
    if texts == 0:
        raise ValueError("calibration needs at least one text")
    strongest = torch.cat(tops)
    # Closed words are at -inf: where fewer words exist than are wanted, all of them open.
    ranked = strongest[strongest.isfinite()].sort(descending=True).values
    cut = ranked[min(words_per_text * texts, len(ranked) - 1)]
    model.gate.offset.fill_(float(model.gate.thresholds().mean() - cut))
