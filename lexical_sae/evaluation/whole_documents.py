"""One decision on a text of any length: its windows are read one by one, and their words pooled.

A document's word is as strong as in the window where it is strongest. That is what a model that pools by the maximum
does with positions, carried on to windows, and contributions to the one decision add up exactly as always. Strengths
depend on what stands in the same window, so it is not what a longer encoder would say.

A literal word has the default activation of the whole document, times the mean over its windows of what context makes
of it: without context the document is read as if the encoder had no limit. A model that reads long texts whole by
itself (`model.long_texts`) is asked for its own decision.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from lexical_sae.data.batches import tokenize
from lexical_sae.data.encoding import encode
from lexical_sae.data.tables.cell_values import repair_text
from lexical_sae.evaluation.collect import read_corpus
from lexical_sae.inference.windows import cut_windows
from lexical_sae.models.circuit_state import SparseCircuitState
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.literal_reading import default_activation
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, silent


@torch.no_grad()
def read_whole(
    model: LexicalSAE, texts: Sequence[str], overlap: float = 0.25, batch_size: int = 32, on_step: OnStep = silent
) -> SparseCircuitState:
    """The decision on each text as a whole, however long; for literal words and for models that pool by the maximum."""
    if model.literal is None and not model.pool.pools_logits_first:
        raise DataError(
            f"windows of a long text are joined by their greatest activations, but this model pools by "
            f"{model.config.pool.kind}; use a model with model.pool max, or texts of at most {model.max_length} tokens"
        )
    owners: list[int] = []
    windows: list[str] = []
    for owner, text in enumerate(map(repair_text, texts)):
        cut = [text[start:end] for start, end in cut_windows(model.tokenizer, text, model.max_length, overlap)]
        owners += [owner] * len(cut)
        windows += cut
    model = model.opened_to(tokenize(model.tokenizer, windows, model.max_length).ids)
    found = torch.tensor(owners)
    rows, ids, values = [], [], []
    for batch in read_corpus(model, windows, batch_size=batch_size, on_step=on_step):
        code = batch.state.code
        rows.append(found[list(batch.rows)].to(code.rows.device)[code.rows])
        ids.append(code.ids)
        values.append(code.values if code.defaults is None else code.values / code.defaults)
    entries = torch.cat(rows), torch.cat(ids), torch.cat(values)
    shape = (len(texts), len(model.dimensions))
    if model.literal is None:
        return model.read(pool_entries(*entries, shape))
    factors = pool_entries(*entries, shape, "mean")
    tokens = torch.tensor([len(text) for text in encode(model.tokenizer, list(map(repair_text, texts)))])
    defaults = default_activation(tokens).to(factors.values)[factors.rows]
    return model.read(replace(factors, values=defaults * factors.values, defaults=defaults))


def pool_entries(
    rows: Int[Tensor, " K"],
    ids: Int[Tensor, " K"],
    values: Tensor,
    shape: tuple[int, int],
    by: Literal["amax", "mean"] = "amax",
) -> SparseCode:
    """The greatest value of each word of each text, or their mean, from entries in any order.

    Example: text 0 has word 7 with 1 and with 3 -> word 7 with 3
    """
    places, owner = (rows * shape[1] + ids).unique(return_inverse=True)
    nothing = torch.zeros_like(places, dtype=values.dtype)
    pooled = nothing.scatter_reduce(0, owner, values, by, include_self=False)
    nowhere = torch.full_like(places, -1)
    return SparseCode.from_entries(places // shape[1], places % shape[1], pooled, nowhere, shape)
