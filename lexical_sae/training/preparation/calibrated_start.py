"""What is read off the pretrained lexical head before the first step.

- A calibrated start: about the right number of words is open, whatever the logits' scale (`open_about_each`).
- Words that the head proposes, though their gates may never open (`proposed_words`).
"""

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lexical_sae.data.batches import Batch
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.errors import SettingsError

REACH = 10
"""The cut is looked for among this many times the wanted words of each sample; weaker ones need not be kept."""


def open_about(model: LexicalSAE, batches: Iterable[Batch], words_per_text: int) -> None:
    """`open_about_each` for whole texts: what counts of a word is its greatest logit in a text."""
    device = model.gate.closed.device
    found = (model.max_logits(batch.input_ids.to(device), batch.attention_mask.to(device)) for batch in batches)
    open_about_each(model, found, words_per_text)


@torch.no_grad()
def open_about_each(model: LexicalSAE, samples: Iterable[Float[Tensor, "N V"]], words: int) -> None:
    """Shift all words' logits by one number so that on average the wanted number of words per sample is open.

    A sample is whatever a head decides on, a text or a position: `samples` gives the logits of some at a time, as
    `Task.encode(model, rows).logits` does. One shift for all words keeps their order: what the backbone finds most
    fitting opens first. They should come from a generator: the model is put in evaluation mode here.
    """
    offset = require_offset(model)
    model.eval()
    tops, count = [], 0
    for logits in samples:
        can_open = logits.masked_fill(model.gate.closed, -torch.inf)
        tops.append(can_open.topk(min(REACH * words, can_open.shape[1]), dim=1).values.flatten().cpu())
        count += len(logits)
    if count == 0:
        raise SettingsError("calibration needs at least one text, or one position with a tag")
    strongest = torch.cat(tops)
    # Closed words are at -inf: where fewer words exist than are wanted, all of them open.
    ranked = strongest[strongest.isfinite()].sort(descending=True).values
    if not len(ranked):
        raise SettingsError(
            f"no word can open in any of the {count} samples that calibration read: every word is closed, or "
            "model.neighbourhood has none for these texts; check the texts, or set model.neighbourhood to null"
        )
    first_closed = min(words * count, len(ranked) - 1)
    # Midway between the last that opens and the first that does not: at the threshold itself, rounding would decide.
    cut = ranked[max(first_closed - 1, 0) : first_closed + 1].mean()
    offset.fill_(float(model.gate.thresholds().mean() - cut))


def require_offset(model: LexicalSAE) -> nn.Parameter:
    """What calibration moves; a gate without it is refused."""
    if model.gate.offset is None:
        raise SettingsError("calibration moves the gate's offset; set model.gate.offset to true")
    return model.gate.offset


@torch.no_grad()
def proposed_words(model: LexicalSAE, samples: Iterable[Float[Tensor, "N V"]], words: int) -> Bool[Tensor, " V"]:
    """Dimensions whose logit is among the highest of at least one sample; thresholds do not count, closing does.

    `samples` as in `open_about_each`.
    """
    model.eval()
    proposed = torch.zeros_like(model.gate.closed)
    for logits in samples:
        can_open = logits.masked_fill(model.gate.closed, -torch.inf)
        top = can_open.topk(min(words, can_open.shape[1]), dim=1)
        proposed[top.indices[top.values.isfinite()]] = True
    return proposed
