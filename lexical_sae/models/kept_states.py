"""An encoder cut below one of its layers: what lies under the cut is computed once per text and kept.

While the embeddings and the lower layers stay as they are, the states that they hand up are the same in every pass. A
text is known by its tokens: one that was changed, as where a word is masked, is another text and is computed anew.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lexical_sae.utils.errors import SettingsError

Place = tuple[int, int]
"""First and last row, exclusive, of a text's tokens in the store."""


class _Reached(Exception):
    """The lower layers are done; carries what they hand up."""

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self.states = states


class CutEncoder:
    """The same encoder in two steps: `lower` up to the layer at the cut, `upper` from there."""

    def __init__(self, encoder: nn.Module, depth: int) -> None:
        """`depth` layers lie below the cut."""
        self.encoder, self.depth = encoder, depth
        self.layers = layers_of(encoder)
        if not 0 < depth < len(self.layers):
            raise SettingsError(
                f"training.frozen_layers is {depth}, but this encoder has {len(self.layers)} layers, of which at least "
                f"one learns; choose 1 to {len(self.layers) - 1}, or 0 to train all"
            )

    def freeze(self) -> None:
        """Fix all that is computed below the cut or shared with it, and switch off its dropout."""
        learning = {id(parameter) for layer in self.layers[self.depth :] for parameter in layer.parameters()}
        for parameter in self.encoder.parameters():
            parameter.requires_grad_(id(parameter) in learning and parameter.requires_grad)
        upper = {id(part) for layer in self.layers[self.depth :] for part in layer.modules()}
        for part in self.encoder.modules():
            if isinstance(part, nn.Dropout) and id(part) not in upper:
                part.p = 0.0

    @torch.no_grad()
    def lower(self, input_ids: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B L E"]:
        """What the layer at the cut is given."""

        def stop(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
            raise _Reached(args[0] if args else kwargs["hidden_states"])

        hook = self.layers[self.depth].register_forward_pre_hook(stop, with_kwargs=True)
        try:
            self.encoder(input_ids=input_ids, attention_mask=mask.long())
        except _Reached as reached:
            return reached.states
        finally:
            hook.remove()
        raise AssertionError("the encoder never came to its own layer")

    def upper(
        self, states: Float[Tensor, "B L E"], input_ids: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B L E"]:
        """The encoder's last states, from those at the cut; the tokens only say where they stand."""

        def give(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            return ((states, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": states})

        hook = self.layers[self.depth].register_forward_pre_hook(give, with_kwargs=True)
        try:
            with self._without_lower_layers():
                return self.encoder(input_ids=input_ids, attention_mask=mask.long()).last_hidden_state
        finally:
            hook.remove()

    @contextmanager
    def _without_lower_layers(self) -> Iterator[None]:
        every = dict(self.layers._modules)
        try:
            for name in list(every)[: self.depth]:
                del self.layers._modules[name]
            yield
        finally:
            self.layers._modules.clear()
            self.layers._modules.update(every)


def layers_of(encoder: nn.Module) -> nn.ModuleList:
    """The stack of layers that an encoder goes through, each once.

    Encoders that go through one layer again and again (ALBERT), or otherwise than one after the other, are refused.
    """
    count = int(getattr(encoder.config, "num_hidden_layers", 0))  # pyright: ignore[reportArgumentType]
    stacks = [part for part in encoder.modules() if isinstance(part, nn.ModuleList) and len(part) == count]
    if not stacks:
        raise SettingsError(
            f"{type(encoder).__name__} has no stack of {count} layers to freeze the lower ones of; leave "
            "training.frozen_layers out"
        )
    return stacks[0]


class KeptStates:
    """The last states of an encoder, from those at the cut; some texts have theirs kept."""

    def __init__(self, cut: CutEncoder, texts: Iterable[Sequence[int]], store: Float[Tensor, "T E"]) -> None:
        """`store` has room for the tokens of these texts, each text once (`tokens_to_keep`)."""
        self.cut, self.store = cut, store
        self._kept: set[tuple[int, ...]] = set()
        self._places: dict[tuple[int, ...], Place] = {}
        at = 0
        for ids in texts:
            if (key := tuple(ids)) not in self._places:
                self._places[key] = at, at + len(key)
                at += len(key)

    def __call__(self, input_ids: Int[Tensor, "B L"], mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B L E"]:
        """The encoder's last states; real tokens come first in each row."""
        return self.cut.upper(self._lower(input_ids, mask), input_ids, mask)

    @torch.no_grad()
    def _lower(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        store = self.store
        lengths = mask.sum(1).tolist()
        keys = [tuple(row[:length]) for row, length in zip(input_ids.tolist(), lengths, strict=True)]
        states = store.new_zeros((*input_ids.shape, store.shape[1]), device=input_ids.device)
        missing = [i for i, key in enumerate(keys) if key not in self._kept]
        if missing:
            states[missing] = self.cut.lower(input_ids[missing], mask[missing]).to(states)
        for i, key in enumerate(keys):
            if (place := self._places.get(key)) is None:
                continue
            if key in self._kept:
                states[i, : lengths[i]] = store[slice(*place)].to(states)
            else:
                store[slice(*place)] = states[i, : lengths[i]].to(store)
        self._kept.update(key for key in keys if key in self._places)
        return states


def tokens_to_keep(texts: Iterable[Sequence[int]]) -> int:
    """Tokens of these texts, equal texts counted once."""
    return sum(map(len, {tuple(ids) for ids in texts}))
