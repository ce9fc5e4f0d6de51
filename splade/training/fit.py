"""A plain fit: cross-entropy plus a pull of the number of active words towards a target."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from splade.data.batches import TokenisedTexts, shuffled_buckets
from splade.models.lexical_sae import CLASSIFY, LexicalSAE
from splade.progress import OnStep, Step, silent
from splade.training.calibrate import open_about


@dataclass(frozen=True)
class FitSettings:
    """How to fit; the defaults suit a few thousand short texts on a CPU."""

    epochs: int | None = None
    """Passes over the texts; None makes as many as give 200 steps, at least one and at most ten."""
    batch_size: int = 32
    active_target: int = 100
    """Active words per text to steer towards."""
    encoder_lr: float = 5e-5
    head_lr: float = 1e-3
    gate_lr: float = 5e-3
    seed: int = 0


def fit(
    model: LexicalSAE,
    texts: TokenisedTexts,
    labels: Sequence[int],
    settings: FitSettings = FitSettings(),
    on_step: OnStep = silent,
) -> None:
    """Train the model in place and leave it in evaluation mode.

    Input embedding and decoder stay as they are: words keep their meaning with them.
    """
    device = next(model.parameters()).device
    generator = np.random.default_rng(settings.seed)
    sample = generator.permutation(len(texts))[:256].tolist()
    starts = range(0, len(sample), settings.batch_size)
    if model.gate.offset is not None:
        chosen = [texts.batch(sample[start : start + settings.batch_size]) for start in starts]
        open_about(model, chosen, 3 * settings.active_target)
    frozen = _frozen_embeddings(model)
    epochs = settings.epochs or min(10, max(1, round(200 * settings.batch_size / max(1, len(texts)))))
    batches = [b for _ in range(epochs) for b in shuffled_buckets(texts, settings.batch_size, generator)]
    optimiser, schedule = _optimiser(model, settings, steps=len(batches))
    targets = torch.tensor(list(labels), device=device)
    model.train()
    for done, rows in enumerate(batches, start=1):
        batch = texts.batch(rows)
        document = model.encode_document(batch.input_ids.to(device), batch.attention_mask.to(device))
        loss_ce = cross_entropy(model.decide(document.sparse_vector, CLASSIFY).logits, targets[rows])
        surplus = document.gate.open_prob.sum(-1).mean() / settings.active_target - 1
        loss = loss_ce + surplus.relu()
        if not torch.isfinite(loss):
            raise FloatingPointError(f"the loss became {loss.item()} at step {done}; lower the learning rates")
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        active = float((document.sparse_vector.detach() > 0).sum(-1).float().mean())
        on_step(Step("training", done, len(batches), {"loss": loss_ce.item(), "active words": active}))
    for weight in frozen:
        weight.requires_grad_(True)
    model.eval()


def _frozen_embeddings(model: LexicalSAE) -> list[nn.Parameter]:
    """Input embedding and decoder, one tensor in most models, made to stay as they are."""
    frozen = [model.backbone.encoder.get_input_embeddings().weight, model.backbone.decoder.weight]  # pyright: ignore[reportCallIssue]
    for weight in frozen:
        weight.requires_grad_(False)
    return frozen


def parameter_groups(model: LexicalSAE, settings: FitSettings) -> list[dict[str, Any]]:
    """Every parameter that learns, once: encoder, gate, and the rest (expander, pool, heads)."""
    own = {id(p): settings.encoder_lr for p in model.backbone.parameters()}
    own |= {id(p): settings.gate_lr for p in model.gate.parameters()}
    learning = [p for p in model.parameters() if p.requires_grad]
    rates = (settings.encoder_lr, settings.gate_lr, settings.head_lr)
    groups = {rate: [p for p in learning if own.get(id(p), settings.head_lr) == rate] for rate in rates}
    return [{"params": parameters, "lr": rate} for rate, parameters in groups.items()]


def _optimiser(
    model: LexicalSAE, settings: FitSettings, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW with 6 % warm-up, then linear decay."""
    optimiser = torch.optim.AdamW(parameter_groups(model, settings), weight_decay=0.01, fused=True)
    warmup = max(1, round(0.06 * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warmup, max(0.0, (steps - step) / max(1, steps - warmup)))
    )
    return optimiser, schedule
