"""Integer products, where this machine has one that is right and faster than fp32.

`torch._int_mm` is private and, on a CPU without VNNI instructions, a plain loop some twenty times slower than fp32;
oneDNN's quantised linear layer is about twice as fast as fp32 there. Neither is promised: `fastest_product` checks
and times both once per process.
"""

import functools
import logging
import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Int8
from torch import Tensor
from torch.nn import functional as F

from lexical_sae.models.layers.vocab_head import VOCABULARY_CHUNK

logger = logging.getLogger(__name__)

TOKEN_TILE = 256
"""Tokens per product: with a chunk of the vocabulary a tile of two megabytes, which stays in cache."""
MARGIN = 1.2
"""How much faster than fp32 an integer product must be to make up for rounding and gathering."""


@runtime_checkable
class Int8Product(Protocol):
    """Exact products of small integers: `product(q, product.pack(w)) == q @ w.T`, as int32 or whole fp32 numbers."""

    name: str
    levels: int
    """Greatest absolute value of an entry of q; those of w are at most 127."""
    widest: int
    """Greatest D whose sums are exact."""

    def pack(self, weight: Int8[Tensor, "V D"]) -> Any: ...
    def __call__(self, states: Int8[Tensor, "N D"], packed: Any) -> Tensor: ...


class IntMM:
    """`torch._int_mm`; on a GPU it wants more than sixteen rows and sizes divisible by eight, hence the zeros."""

    name = "torch._int_mm"
    levels = 127
    widest = (2**31 - 1) // 127**2

    def pack(self, weight: Int8[Tensor, "V D"]) -> tuple[Int8[Tensor, "D8 V8"], int]:
        size, width = weight.shape
        return F.pad(weight, (0, -width % 8, 0, -size % 8)).T, size

    def __call__(self, states: Int8[Tensor, "N D"], packed: tuple[Tensor, int]) -> Int[Tensor, "N V"]:
        weight, size = packed
        rows, width = states.shape
        padded = F.pad(states, (0, -width % 8, 0, max(32 - rows, -rows % 8)))
        return torch._int_mm(padded, weight)[:rows, :size]  # pyright: ignore[reportPrivateImportUsage]


class OneDNN:
    """oneDNN's quantised linear layer on a CPU, with scales of one.

    Without VNNI instructions pairs of products are summed in sixteen bits, which eight-bit states would overflow:
    states have seven bits, and are unsigned because signed ones are shifted to eight bits inside.
    """

    name = "onednn.qlinear_pointwise"
    levels = 63
    widest = 2**24 // 127**2
    """Sums come back in fp32, where whole numbers are exact up to 2^24."""

    def pack(self, weight: Int8[Tensor, "V D"]) -> tuple[Tensor, Tensor, Tensor]:
        shift = 64 * weight.sum(1, dtype=torch.int64).float()
        return torch.ops.onednn.qlinear_prepack(weight, None), shift, torch.ones(len(weight))

    def __call__(self, states: Int8[Tensor, "N D"], packed: tuple[Tensor, Tensor, Tensor]) -> Float[Tensor, "N V"]:
        weight, shift, ones = packed
        unsigned, zeros = (states + 64).to(torch.uint8), torch.zeros(len(ones), dtype=torch.int32)
        product = torch.ops.onednn.qlinear_pointwise(
            unsigned, 1.0, 0, weight, ones, zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return product.sub_(shift)


PRODUCTS: tuple[Int8Product, ...] = (OneDNN(), IntMM())


def fastest_product(device: torch.device, width: int) -> Int8Product | None:
    """The integer product to screen with on this device, None where none is right and clearly faster than fp32.

    Decided once per process, device, width and number of threads, in a fraction of a second.
    """
    return _fastest_product(str(device), width, torch.get_num_threads())


@functools.cache
def _fastest_product(device: str, width: int, threads: int) -> Int8Product | None:
    gains = {product: speedup(product, torch.device(device), width) for product in PRODUCTS}
    named = {product.name: round(gain, 2) for product, gain in gains.items()}
    logger.info("int8 products against fp32 (%s, width %d, %d threads): %s", device, width, threads, named)
    best = max(PRODUCTS, key=gains.__getitem__)
    return best if gains[best] >= MARGIN else None


def speedup(
    product: Int8Product, device: torch.device, width: int, timer: Callable[[], float] = time.perf_counter
) -> float:
    """How many times faster than fp32 a product is at a realistic size; 0 where it is missing or wrong.

    A small size goes first: one that loses by far there is not given the chance to hang on a larger one.
    """
    if width > product.widest or not _is_right(product, device):
        return 0.0
    gain = _speedup_at(product, device, (64, width, 256), 5, timer)
    return gain if gain < 0.5 else _speedup_at(product, device, (TOKEN_TILE, width, VOCABULARY_CHUNK), 15, timer)


def _speedup_at(
    product: Int8Product, device: torch.device, shape: tuple[int, int, int], turns: int, timer: Callable[[], float]
) -> float:
    rows, width, size = shape
    states = torch.ones(rows, width, dtype=torch.int8, device=device)
    weight = torch.ones(size, width, dtype=torch.int8, device=device)
    packed, wide_states, wide_weight = product.pack(weight), states.float(), weight.float()

    def seconds(run: Callable[[], object]) -> float:
        start = timer()
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return max(timer() - start, 1e-9)

    # In turns, and their median: other work on the machine slows a whole turn down, or spoils a single one.
    gains = [
        seconds(lambda: wide_states @ wide_weight.T) / seconds(lambda: product(states, packed))
        for _ in range(turns + 1)
    ]
    return statistics.median(gains[1:])


def _is_right(product: Int8Product, device: torch.device) -> bool:
    """Whether the product is there and exact, also where every entry is as large as it may be."""
    generator = torch.Generator().manual_seed(0)
    states = torch.randint(-product.levels, product.levels + 1, (40, 60), generator=generator)
    weight = torch.randint(-127, 128, (72, 60), generator=generator)
    states[:2], weight[:2] = product.levels, 127
    states[1], weight[1] = -states[1], -weight[1]
    expected = (states.double() @ weight.double().T).to(device)
    states, weight = (tensor.to(device, torch.int8) for tensor in (states, weight))
    try:
        return torch.equal(product(states, product.pack(weight)).double(), expected)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
