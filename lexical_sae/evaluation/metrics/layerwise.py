"""What does each layer of the encoder do for the decision? Its output is replaced by its input, one layer at a time.

A layer's contribution is the predicted class's centred logit with the layer minus that without it. Layers build on each
other, so the contributions need not add up to what all layers do together; what is missing stands beside them.

Layers are found by what they do, not by what they are called: members of a module list that are handed hidden states
and give back states of the same shape. A layer that is called several times (ALBERT) counts once for every call.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lexical_sae.data.batches import Batch, batches, tokenize
from lexical_sae.evaluation.bootstrap import BootstrapMeans
from lexical_sae.evaluation.circuit_words import centered_for
from lexical_sae.evaluation.intervals import Interval
from lexical_sae.evaluation.metrics.metric import Subject, sampled
from lexical_sae.inference.reading import read_batch
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.progress import OnStep, silent


@dataclass(frozen=True)
class LayerContribution:
    """One layer, counted from the text's side."""

    layer: int
    contribution: Interval
    """To the predicted class's centred logit."""
    flips: Interval
    """Share of texts whose label changes without the layer."""


@dataclass(frozen=True)
class LayerwiseResult:
    """Every layer, and what they do not explain one by one."""

    texts: int
    layers: tuple[LayerContribution, ...]
    full: Interval
    """Centred logit of the predicted class."""
    without_layers: Interval
    """The same from the embeddings alone."""
    remainder: Interval
    """`full - without_layers - sum of contributions`: what layers do only together (or say twice, where negative)."""


@torch.no_grad()
def attribute_layers(
    model: LexicalSAE, texts: Sequence[str], seed: int = 0, batch_size: int = 16, on_step: OnStep = silent
) -> LayerwiseResult | None:
    """The contribution of every layer to the decisions on the texts; None where no layer is asked.

    A text is read once whole, once without each layer, and once without all of them.
    """
    if not model.asks_encoder:
        return None
    model.eval()
    tokens = tokenize(model.tokenizer, texts, model.max_length)
    model = model.opened_to(tokens.ids)
    means, count = BootstrapMeans(seed=seed), 0
    for batch in batches(tokens, batch_size, "skipping layers", on_step):
        with _skipping(model.backbone.encoder, model.backbone.encoder_width, ()) as calls:
            full = read_batch(model, batch).logits
        count = len(calls)
        predicted = full.argmax(-1)
        said = centered_for(full, predicted)
        figures = {"full": said, "without": _said_without(model, batch, range(count), predicted)[0]}
        remainder = said - figures["without"]
        for layer in range(count):
            left, flips = _said_without(model, batch, (layer,), predicted)
            figures |= {f"layer {layer}": said - left, f"flips {layer}": flips}
            remainder = remainder - (said - left)
        means.update(batch.rows.tolist(), figures | {"remainder": remainder})
    layers = tuple(LayerContribution(i + 1, means[f"layer {i}"], means.share(f"flips {i}")) for i in range(count))
    return LayerwiseResult(len(texts), layers, means["full"], means["without"], means["remainder"])


def _said_without(
    model: LexicalSAE, batch: Batch, layers: Collection[int], predicted: Int[Tensor, " B"]
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Centred logit of the predicted class without some layers, and whether the label is another one."""
    with _skipping(model.backbone.encoder, model.backbone.encoder_width, layers):
        logits = read_batch(model, batch).logits
    return centered_for(logits, predicted), (logits.argmax(-1) != predicted).to(logits.dtype)


@contextmanager
def _skipping(encoder: nn.Module, width: int, layers: Collection[int]) -> Iterator[list[nn.Module]]:
    """While this is open, calls of layers with these numbers pass their input on; gives those of the last pass."""
    calls: list[nn.Module] = []
    depth = 0

    def begin(*_: Any) -> None:
        # A text of many windows takes several passes.
        calls.clear()

    def enter(_module: nn.Module, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
        nonlocal depth
        depth += 1

    def leave(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        nonlocal depth
        depth -= 1
        states, made = _first_tensor((*args, *kwargs.values())), _first_tensor((output,))
        # Members of lists inside a layer (the layers of an ALBERT group) are parts of it, not layers.
        if depth or states is None or made is None or states.shape != made.shape or states.shape[-1] != width:
            return None
        calls.append(module)
        if len(calls) - 1 not in layers:
            return None
        return states if isinstance(output, Tensor) else type(output)((states, *output[1:]))

    members = {id(m): m for part in encoder.modules() if isinstance(part, nn.ModuleList) for m in part}
    hooks = [m.register_forward_pre_hook(enter, with_kwargs=True) for m in members.values()]
    hooks += [m.register_forward_hook(leave, with_kwargs=True) for m in members.values()]
    hooks.append(encoder.register_forward_pre_hook(begin))
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
    if not calls:
        raise SettingsError(f"{type(encoder).__name__} has no list of layers that keep the shape of the hidden states")


def _first_tensor(values: Sequence[Any]) -> Tensor | None:
    """The states among what a layer is handed or gives back: the first tensor, alone or in a tuple."""
    for value in values:
        found = value[0] if isinstance(value, tuple) and value else value
        if isinstance(found, Tensor):
            return found
    return None


def _measure(of: Subject) -> LayerwiseResult | None:
    _, texts, _ = of.sample.few(of.settings.layer_texts)
    return attribute_layers(of.model, texts, of.seed, on_step=of.on_step)


LAYERS = sampled("layers", LayerwiseResult | None, _measure)
