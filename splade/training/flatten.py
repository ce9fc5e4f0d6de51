"""Nested state taken apart into tensors and plain JSON, and put together again, exactly and without pickle."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

MARK = "$"
"""Key of a JSON object that stands for something JSON has no word for."""


def pack(state: Any) -> tuple[Any, dict[str, Tensor]]:
    """The state as JSON, with tensors replaced by their names, and the tensors by name.

    Holds None, booleans, numbers (NaN and infinities too), text, lists, tuples, dicts with any of these as keys,
    tensors and NumPy arrays. A tensor that occurs twice, as tied weights do, is kept once. Other things are refused
    with their place.

    Example: `{"w": tensor, "k": (1, inf)}` -> `{"w": {"$": "tensor", "name": "0"}, "k": {"$": "tuple", ...}}`
    """
    packer = _Packer()
    return packer.pack(state, "state"), packer.tensors


def unpack(packed: Any, tensors: Mapping[str, Tensor]) -> Any:
    """What `pack` was given; tensors are copies on the CPU, one per stored tensor."""
    own = {name: tensor.clone() for name, tensor in tensors.items()}
    return _unpack(packed, own)


class _Packer:
    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        # Held, so that no memory address is used twice while packing.
        self._held: list[Tensor] = []

    def pack(self, value: Any, place: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or type(value) in (bool, int, str):
            return value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {MARK: "float", "value": repr(float(value))}
        if isinstance(value, Tensor):
            return {MARK: "tensor", "name": self._name(value, place)}
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            data = torch.from_numpy(np.frombuffer(value.tobytes(), np.uint8).copy())
            name = self._name(data, place)
            return {MARK: "array", "name": name, "dtype": value.dtype.str, "shape": list(value.shape)}
        if isinstance(value, Mapping):
            return self._pack_mapping(value, place)
        if isinstance(value, list | tuple):
            items = [self.pack(item, f"{place}[{i}]") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {MARK: "tuple", "items": items}
        raise TypeError(
            f"{place} is of type {type(value).__name__}, which a checkpoint cannot hold; "
            "make it numbers, text, tensors, lists or dicts"
        )

    def _pack_mapping(self, value: Mapping[Any, Any], place: str) -> Any:
        if all(type(key) is str for key in value) and MARK not in value:
            return {key: self.pack(item, f"{place}.{key}") for key, item in value.items()}
        items = [[self.pack(key, place), self.pack(item, f"{place}[{key!r}]")] for key, item in value.items()]
        return {MARK: "dict", "items": items}

    def _name(self, tensor: Tensor, place: str) -> str:
        tensor = tensor.detach()
        if tensor.layout is not torch.strided or tensor.is_meta:
            raise TypeError(f"{place} is a {tensor.layout} tensor on {tensor.device}, which a checkpoint cannot hold")
        where = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        # Empty tensors all have address 0.
        if tensor.numel() and where in self._names:
            return self._names[where]
        self._held.append(tensor)
        name = str(len(self.tensors))
        self._names[where] = name
        self.tensors[name] = tensor
        return name


def storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors on the CPU, each with memory of its own and in order, as safetensors wants them."""
    stored, seen = {}, set()
    for name, tensor in tensors.items():
        ready = tensor.cpu().contiguous()
        storage = ready.untyped_storage()
        is_view = storage.data_ptr() in seen or storage.nbytes() != ready.numel() * ready.element_size()
        seen.add(storage.data_ptr())
        stored[name] = ready.clone() if is_view else ready
    return stored


def _unpack(packed: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(packed, list):
        return [_unpack(item, tensors) for item in packed]
    if not isinstance(packed, dict):
        return packed
    match packed.get(MARK):
        case None:
            return {key: _unpack(item, tensors) for key, item in packed.items()}
        case "float":
            return float(packed["value"])
        case "tensor":
            return tensors[packed["name"]]
        case "array":
            data = tensors[packed["name"]].numpy().tobytes()
            return np.frombuffer(data, np.dtype(packed["dtype"])).reshape(packed["shape"]).copy()
        case "tuple":
            return tuple(_unpack(item, tensors) for item in packed["items"])
        case "dict":
            return {_unpack(key, tensors): _unpack(item, tensors) for key, item in packed["items"]}
        case kind:
            raise ValueError(f"a checkpoint of this version knows no {kind!r}")
