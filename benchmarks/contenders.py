"""The sides of every comparison, as zero-argument callables over the same text, weights and attention setting."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForSequenceClassification

from lexical_sae.data import load_text_dataset
from lexical_sae.data.batches import Batch, TokenizedTexts, length_buckets, tokenize
from lexical_sae.models.bundled import bundled_folder
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.models.pretrained import quiet_transformers
from lexical_sae.recipes import recipe_by_name
from lexical_sae.training.preparation.calibrated_start import open_about

LABELS = {CLASSIFY: ("negative", "positive")}
ACTIVE_WORDS = 100


def lexical_model(*, near: bool = True) -> LexicalSAE:
    """The recipe `neighbours` on the bundled encoder, started with about a hundred active words per text.

    Without `near` every token reaches every word, as in the other recipes: the same gate, no lexical neighbours.
    """
    torch.manual_seed(0)
    parts: ModelConfig = recipe_by_name("neighbours").model
    if not near:
        parts = parts.model_copy(update={"neighbourhood": None})
    model = LexicalSAE.from_backbone(parts, LABELS)
    model.backbone.encoder.get_input_embeddings().weight.requires_grad_(False)  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
    open_about(model, [ragged(32).batch(list(range(32)))], ACTIVE_WORDS)
    return model


def dense_model() -> nn.Module:
    """The dense baseline: the same encoder with a classification layer."""
    torch.manual_seed(0)
    folder = bundled_folder("bundled:minilm")
    config = AutoConfig.from_pretrained(folder, attention_probs_dropout_prob=0.0)
    with quiet_transformers():
        model = AutoModelForSequenceClassification.from_pretrained(folder, config=config, dtype=torch.float32)
    model.get_input_embeddings().weight.requires_grad_(False)
    return model


def with_attention_dropout(model: LexicalSAE, rate: float = 0.1) -> LexicalSAE:
    """The same model with dropout on attention weights, as encoders are published."""
    for name, part in model.backbone.encoder.named_modules():
        if name.endswith("attention.self"):
            part.dropout.p = rate  # pyright: ignore[reportAttributeAccessIssue]
    return model


def ragged(count: int) -> TokenizedTexts:
    """Real short reviews of different lengths."""
    model_free = load_text_dataset("movie_snippets").train.texts[:count]
    return tokenize(_tokenizer(), model_free, 256)


def full(batch: int, length: int) -> Batch:
    """Texts of exactly `length` tokens: reviews joined and cut."""
    words = " ".join(load_text_dataset("movie_snippets").train.texts[: batch * length // 8])
    (ids,) = tokenize(_tokenizer(), [words], 10**6).ids
    rows = torch.tensor(ids[1 : 1 + batch * (length - 2)]).reshape(batch, length - 2)
    first, last = torch.full((batch, 1), ids[0]), torch.full((batch, 1), ids[-1])
    input_ids = torch.cat([first, rows, last], 1)
    return Batch(input_ids, torch.ones_like(input_ids, dtype=torch.bool), torch.arange(batch))


def _tokenizer():  # noqa: ANN202
    from lexical_sae.models.pretrained import load_tokenizer

    return load_tokenizer(bundled_folder("bundled:minilm"))


def plain_document(model: LexicalSAE, batch: Batch) -> Tensor:
    """The straightforward head: all logits, the gate at every position, then the maximum."""
    hidden = model.backbone.hidden(batch.input_ids, batch.attention_mask)
    return plain_pool(model, hidden, batch)


def plain_pool(model: LexicalSAE, hidden: Tensor, batch: Batch) -> Tensor:
    logits = model.backbone.decoder(hidden).masked_fill(~batch.attention_mask[..., None], -torch.inf)
    return model.saturation(model.gate(logits).activated).amax(1)


def fused_pool(model: LexicalSAE, hidden: Tensor, batch: Batch) -> Tensor:
    pooled = model.projection.pooled(hidden, batch.input_ids, batch.attention_mask)
    return model.saturation(model.gate(pooled).activated)


def head_step(model: LexicalSAE, batch: Batch, pool: Callable[..., Tensor]) -> Callable[[], None]:
    """Forward and backward of the vocabulary head alone, from hidden states."""
    model.train()
    with torch.no_grad():
        hidden = model.backbone.hidden(batch.input_ids, batch.attention_mask)
    hidden.requires_grad_()
    pull = torch.randn(len(model.dimensions))

    def run() -> None:
        model.zero_grad()
        hidden.grad = None
        (pool(model, hidden, batch) * pull).sum().backward()

    return run


def training_step(
    model: nn.Module, logits_of: Callable[[Batch], Tensor], batches: Sequence[Batch]
) -> Callable[[], None]:
    """One optimiser step per batch."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def run() -> None:
        for batch in batches:
            optimizer.zero_grad()
            cross_entropy(logits_of(batch), batch.rows % 2).backward()
            optimizer.step()

    return run


def inference(model: nn.Module, logits_of: Callable[[Batch], object], batches: Sequence[Batch]) -> Callable[[], None]:
    model.eval()

    def run() -> None:
        with torch.no_grad():
            for batch in batches:
                logits_of(batch)

    return run


def in_order(texts: TokenizedTexts, size: int) -> list[Batch]:
    """Batches in the order of the texts, padded to the longest."""
    return [texts.batch(list(range(i, min(i + size, len(texts))))) for i in range(0, len(texts), size)]


def bucketed(texts: TokenizedTexts, size: int) -> list[Batch]:
    return [texts.batch(rows) for rows in length_buckets(texts, size)]


def dense_logits(model: nn.Module) -> Callable[[Batch], Tensor]:
    return lambda batch: model(input_ids=batch.input_ids, attention_mask=batch.attention_mask.long()).logits


def plain_logits(model: LexicalSAE) -> Callable[[Batch], Tensor]:
    return lambda batch: model.decide(plain_document(model, batch), CLASSIFY).logits


def fused_logits(model: LexicalSAE) -> Callable[[Batch], Tensor]:
    return lambda batch: model.classify_document(batch.input_ids, batch.attention_mask).logits


def sparse_logits(model: LexicalSAE) -> Callable[[Batch], Tensor]:
    return lambda batch: model.read(model.encode_sparse(batch.input_ids, batch.attention_mask)).logits


@torch.no_grad()
def state_megabytes(model: LexicalSAE, batch: Batch) -> dict[str, float]:
    """Megabytes of a dense and a sparse state of the same texts, without the head's weights."""
    words = model.encode_document(batch.input_ids, batch.attention_mask).sparse_vector
    dense = list(model.decide(words, CLASSIFY))
    sparse = model.read(model.encode_sparse(batch.input_ids, batch.attention_mask))
    code = sparse.code
    held = [sparse.logits, sparse.readout, sparse.b_eff, code.ids, code.values, code.positions, code.offsets]
    sizes = {"dense": dense, "sparse": held}
    return {side: sum(tensor.nbytes for tensor in tensors) / 2**20 for side, tensors in sizes.items()}
