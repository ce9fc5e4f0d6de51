"""What the sparse layer costs, in the terms in which sparse autoencoders are scaled.

*Downstream loss*: what the task and the masked language model lose when gated strengths take the place of ungated ones.
*Ablation sparsity*: over how many words a decision's evidence is spread, `(L1 / L2)²`. The other two are in
`probe_loss` and `frontier`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from splade.data.batches import Batch, length_buckets, tokenise
from splade.evaluation.bootstrap import BootstrapMeans
from splade.evaluation.circuit_words import Rankings, speaks_for_predicted
from splade.evaluation.collect import ReadBatch
from splade.evaluation.intervals import Interval
from splade.evaluation.masked_language import MaskedLanguageLoss, language_figures, masked_language_loss
from splade.mechanistic.exact import class_centred
from splade.models.lexical_sae import CLASSIFY, LexicalSAE
from splade.progress import OnStep, Step, silent

REFERENCE = "Gao et al. 2024, arXiv:2406.04093"


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
        direction = class_centred(batch.state.logits, batch.predicted)
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
    tokens = tokenise(model.tokenizer, texts, model.max_length)
    means, done = BootstrapMeans(seed=seed), 0
    for rows in length_buckets(tokens, batch_size):
        batch = tokens.batch(rows)
        batch = Batch(batch.input_ids.to(device), batch.attention_mask.to(device), batch.rows)
        truth = torch.tensor([labels[row] for row in rows], device=device)
        gated, ungated = _with_and_without_gate(model, batch)
        logits, free = (model.decide(s, CLASSIFY).logits for s in (gated, ungated))
        figures = {"loss": cross_entropy(logits, truth, reduction="none")}
        figures["ungated"] = cross_entropy(free, truth, reduction="none")
        figures["kl"] = (free.softmax(-1) * (free.log_softmax(-1) - logits.log_softmax(-1))).sum(-1).clamp(min=0)
        figures["words"] = (ungated != 0).sum(-1)
        means.update(rows, figures | language_figures(model, batch, rows, seed))
        done += len(rows)
        on_step(Step("without the gate", done, len(tokens)))
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
