"""What the sparse layer costs, in the terms in which sparse autoencoders are scaled.

*Downstream loss*: what the task and the masked language model lose when gated activations replace ungated ones.
*Ablation sparsity*: over how many words a decision's evidence is spread, `(L1 / L2)²`. The other two are in
`probe_loss` and `frontier`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from lexical_sae.data.batches import Batch, batches, tokenize
from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.circuit_words import Rankings, speaks_for_predicted
from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import Subject, sampled, streamed
from lexical_sae.mechanistic.exact import class_centered
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.utils.progress import OnStep, silent

REFERENCE = "Gao et al. 2024, arXiv:2406.04093"
MASKED_SHARE = 0.15
"""Of the tokens, hidden from the model to see whether it can guess them."""
GUESSED_AT_ONCE = 64
"""Masked positions whose logits over the whole vocabulary are made together."""


@dataclass(frozen=True)
class MaskedLanguageLoss:
    """How well hidden tokens are guessed, in nats per token."""

    tokens: int
    raw: Interval
    """From the logits before the gate."""
    gated: Interval
    """From what the gate lets through. With a neighbourhood nothing opens at a hidden token: as bad as `uniform`."""
    uniform: float
    """Of knowing nothing."""


@dataclass(frozen=True)
class DownstreamLoss:
    """What the gate changes."""

    texts: int
    loss: Interval
    """Cross-entropy of the task, as the model is."""
    ungated_loss: Interval
    """The same when every word with a positive logit counts, as if there were no gate."""
    delta: Interval
    """`loss - ungated_loss`, paired by text; negative where the gate helps."""
    kl: Interval
    """`KL(ungated || gated)` of the decisions."""
    ungated_words: Interval
    """Words per text without the gate."""
    language: MaskedLanguageLoss | None
    """None where the tokenizer has no mask token, or there is no token to hide."""


def compute_ablation_sparsity(effects: Float[Tensor, " K"], rows: Int[Tensor, " K"], texts: int) -> Float[Tensor, " B"]:
    """`(L1 / L2)²` of each text's effects: the number of words that the evidence is spread over.

    One if a single word has it all, K if K words share it equally; NaN for a text without effects.

    Example: effects [3, 3, 0] -> 2
    """
    zeros = effects.new_zeros(texts)
    sums, squares = zeros.index_add(0, rows, effects.abs()), zeros.index_add(0, rows, effects.square())
    return sums.square() / squares.masked_fill(squares == 0, torch.nan)


@dataclass(frozen=True)
class AblationSparsity:
    """Over how many words the evidence of a decision is spread."""

    contributions: Interval
    effects: Interval
    """Of the exact removal of each word alone."""


class AblationSparsityCollector:
    """Measures every text's spread, of contributions and of exact effects."""

    def __init__(self, rankings: Rankings, seed: int = 0) -> None:
        self.rankings = rankings
        self.means = BootstrapMeans(seed=seed)

    def update(self, batch: ReadBatch) -> None:
        """Measure a batch."""
        direction = class_centered(batch.state.logits, batch.predicted)
        kinds = {
            "contributions": speaks_for_predicted(batch),
            "effects": self.rankings.removals(batch).effects.towards(direction),
        }
        rows, count = batch.state.code.rows, len(batch.rows)
        self.means.update(batch.rows, {n: compute_ablation_sparsity(v, rows, count) for n, v in kinds.items()})

    def result(self) -> AblationSparsity:
        """The spread so far."""
        return AblationSparsity(self.means["contributions"], self.means["effects"])


@torch.no_grad()
def compute_downstream_loss(
    model: LexicalSAE,
    texts: Sequence[str],
    labels: Sequence[int],
    seed: int = 0,
    batch_size: int = 16,
    on_step: OnStep = silent,
) -> DownstreamLoss:
    """What task and language model lose by the gate, over some texts. Holds [B, V], so give a few hundred at most."""
    model.eval()
    device = next(model.parameters()).device
    tokens = tokenize(model.tokenizer, texts, model.max_length)
    model = model.opened_to(tokens.ids)
    means = BootstrapMeans(seed=seed)
    for batch in batches(tokens, batch_size, "without the gate", on_step, device):
        rows = batch.rows.tolist()
        truth = torch.tensor([labels[row] for row in rows], device=device)
        gated, ungated = _with_and_without_gate(model, batch)
        logits, free = (model.decide(s, CLASSIFY).logits for s in (gated, ungated))
        figures = {"loss": cross_entropy(logits, truth, reduction="none")}
        figures["ungated"] = cross_entropy(free, truth, reduction="none")
        figures["kl"] = (free.softmax(-1) * (free.log_softmax(-1) - logits.log_softmax(-1))).sum(-1).clamp(min=0)
        figures["words"] = (ungated != 0).sum(-1)
        means.update(rows, figures | language_figures(model, batch, rows, seed))
    return DownstreamLoss(
        len(texts),
        means["loss"],
        means["ungated"],
        means.difference("loss", "ungated"),
        means["kl"],
        means["words"],
        masked_language_loss(means, len(model.dimensions)),
    )


def _with_and_without_gate(model: LexicalSAE, batch: Batch) -> tuple[Float[Tensor, "B V"], Float[Tensor, "B V"]]:
    """The texts' vectors as they are, and with every word of positive logit; pooled as the model pools."""
    ids, mask = batch.input_ids, batch.attention_mask

    def opened(logits: Tensor) -> Tensor:
        offset = 0.0 if model.gate.offset is None else model.gate.offset
        return model.saturation((logits + offset).relu()).masked_fill(model.gate.closed, 0.0)

    if model.pool.pools_logits_first:
        document = model.encode_document(ids, mask)
        return document.sparse_vector, opened(document.logits)
    sequence = model.encode(ids, mask)
    return model.pool(sequence.sparse_sequence, mask), model.pool(opened(sequence.logits), mask)


ABLATION_SPARSITY = streamed(
    "ablation_sparsity", AblationSparsity, lambda of: AblationSparsityCollector(of.rankings, of.seed)
)


def language_figures(
    model: LexicalSAE, batch: Batch, rows: Sequence[int], seed: int
) -> dict[str, Float[Tensor, " B"] | Int[Tensor, " B"]]:
    """Per text, the summed loss of guessing hidden tokens before and after the gate, and how many were hidden."""
    if model.tokenizer.mask_token_id is None or model.literal is not None:
        # Literal words are not guessed from logits.
        return {}
    ids, mask = batch.input_ids, batch.attention_mask
    is_hidden = _hide(model, batch, rows, seed)
    given = ids.masked_fill(is_hidden, int(model.tokenizer.mask_token_id))  # pyright: ignore[reportArgumentType]
    states, at, truth = model.backbone.hidden(given, mask)[is_hidden], is_hidden.nonzero()[:, 0], ids[is_hidden]
    raw, kept = (states.new_zeros(len(ids)) for _ in range(2))
    for part in torch.arange(len(truth), device=ids.device).split(GUESSED_AT_ONCE):
        shown = given[is_hidden][part][:, None]
        gated = model.gate(model.projection.everywhere(states[part][:, None], shown, torch.ones_like(shown).bool()))
        guesses = model.backbone.decoder(states[part]), gated.activated[:, 0]
        for losses, logits in zip((raw, kept), guesses, strict=True):
            losses.index_add_(0, at[part], cross_entropy(logits.float(), truth[part], reduction="none"))
    return {"raw": raw, "kept": kept, "hidden": is_hidden.sum(1)}


def masked_language_loss(means: BootstrapMeans, size: int) -> MaskedLanguageLoss | None:
    """The losses per hidden token from the figures of all texts; `size` is the number of dimensions."""
    hidden = means["hidden"]
    if not hidden.count or not hidden.mean:
        return None
    # A ratio of sums: every hidden token counts alike, whatever the length of its text.
    losses = means.ratio("raw", "hidden"), means.ratio("kept", "hidden")
    return MaskedLanguageLoss(round(hidden.mean * hidden.count), *losses, math.log(size))


def _hide(model: LexicalSAE, batch: Batch, rows: Sequence[int], seed: int) -> Bool[Tensor, "B L"]:
    """A share of each text's tokens, sampled at random; special tokens are never hidden."""
    special = torch.tensor(model.tokenizer.all_special_ids, device=batch.input_ids.device)
    may_hide = batch.attention_mask & ~torch.isin(batch.input_ids, special)
    width = batch.input_ids.shape[1]
    # Drawn to the full width and cut: a text's hidden tokens do not depend on the batch's padding.
    drawn = np.stack([np.random.default_rng([seed, 6, row]).random(model.max_length)[:width] for row in rows])
    return may_hide & (torch.from_numpy(drawn).to(may_hide.device) < MASKED_SHARE)


def _measure(of: Subject) -> DownstreamLoss | None:
    if of.model.literal is not None:
        # The gate of literal words holds back nothing but suppressed ones, and words have no logit to go without it.
        return None
    _, texts, labels = of.sample.few(of.settings.ungated_texts)
    return compute_downstream_loss(of.model, texts, labels, of.seed, on_step=of.on_step)


DOWNSTREAM = sampled("downstream", DownstreamLoss | None, _measure)
