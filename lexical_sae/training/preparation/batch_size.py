"""How many texts at once: as many as memory allows, the rest by accumulating gradients.

1. `step_bytes` measures what a step keeps for its backward pass, at two small sizes.
2. `fitting_size` extends the line through both to the largest size that fits `available_memory`.
3. `MicroBatches` cuts each batch to that size, and halves it when memory runs out all the same.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from lexical_sae.utils.device import Device
from lexical_sae.utils.errors import TooLargeError

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

MEMORY_SHARE = 0.6
"""Share of the memory now available that a step may take."""
PEAK_FACTOR = 1.5
"""Peak of a step on the CPU over what it keeps for the backward pass: 0.96 was measured (MiniLM, 2 to 32 texts of 64 to
128 tokens); the rest is for passing results of other losses."""


def automatic_size(
    wanted: int,
    step: Callable[[int], None],
    device: Device,
    probe_sizes: tuple[int, int] = (2, 4),
) -> int:
    """The largest size up to `wanted` whose training step fits in memory.

    `step(n)` runs forward and backward on the n longest texts, and must leave no gradients behind.
    """
    available = available_memory(device)
    if available is None or wanted <= probe_sizes[0]:
        return wanted
    return fitting_size(wanted, lambda n: step_bytes(lambda: step(n), device), available * MEMORY_SHARE, probe_sizes)


def fitting_size(
    wanted: int, probe: Callable[[int], float], budget: float, probe_sizes: tuple[int, int] = (2, 4)
) -> int:
    """`wanted` if its bytes fit the budget, else the largest power of two that does, at least 1.

    Bytes are taken to grow along the line through `probe` at two sizes.

    Example: 10 bytes a text and 20 besides, `wanted=48`, `budget=400` -> 32
    """
    small, large = probe_sizes
    at_small, at_large = probe(small), probe(large)
    per_text = max(0.0, (at_large - at_small) / (large - small))
    fixed = max(0.0, at_small - small * per_text)
    if fixed + wanted * per_text <= budget:
        return wanted
    size = 1
    while 2 * size < wanted and fixed + 2 * size * per_text <= budget:
        size *= 2
    logger.info("%d texts at once instead of %d: a text takes %.0f MB", size, wanted, per_text / 1e6)
    return size


def step_bytes(step: Callable[[], None], device: Device) -> float:
    """Peak memory of a training step beyond what was in use before, in bytes.

    Measured on CUDA. Elsewhere there is no meter that other programs and the allocator's habits leave alone, so what
    autograd keeps is counted, which is exact, and multiplied by `PEAK_FACTOR`.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        torch.cuda.synchronize(device)
        return float(torch.cuda.max_memory_allocated(device) - before)
    kept: dict[int, int] = {}

    def count(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        step()
    return PEAK_FACTOR * sum(kept.values())


def available_memory(device: Device, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that can still be used on the device, within the limits of control groups; None where unknown.

    Linux and CUDA report it; on other systems the batch size is used as given.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if device.type != "cpu" or not (proc / "meminfo").is_file():
        return None
    fields = dict(line.split(":", 1) for line in (proc / "meminfo").read_text().splitlines() if ":" in line)
    machine = int(fields["MemAvailable"].split()[0]) * 1024
    return max(0, min([machine, *_cgroup_room(proc, cgroups)]))


def _cgroup_room(proc: Path, cgroups: Path) -> list[int]:
    """Bytes left in each memory control group that this process is in, versions 1 and 2."""
    rooms = []
    lines = (proc / "self/cgroup").read_text().splitlines() if (proc / "self/cgroup").is_file() else []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            root, limit, usage = cgroups, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, usage = cgroups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # A parent's limit binds too. Inside a container the path may be the host's: then only the root is found.
        own = root / path.strip("/")
        for group in [own, *(parent for parent in own.parents if parent.is_relative_to(root))]:
            most, used = _number(group / limit), _number(group / usage)
            if most is not None and used is not None:
                rooms.append(most - used + _reclaimable(group / "memory.stat"))
    return rooms


def _number(path: Path) -> int | None:
    """The number in a control file; None if there is none, or `max`."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _reclaimable(path: Path) -> int:
    """Cached file pages, which count as used but are given up when needed."""
    try:
        fields = dict(line.split() for line in path.read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(fields.get("total_inactive_file", fields.get("inactive_file", 0)))


@dataclass
class MicroBatches:
    """Batches in pieces that fit; `size` belongs in the checkpoint, as it can shrink."""

    size: int

    def split(self, rows: Sequence[int]) -> list[list[int]]:
        """The rows in order, in as few pieces of at most `size` as can be, of about equal length.

        Example: 10 rows, size 4 -> pieces of 4, 3, 3
        """
        pieces = -(-len(rows) // self.size)
        short, longer = divmod(len(rows), max(1, pieces))
        starts = [i * short + min(i, longer) for i in range(pieces + 1)]
        return [list(rows[start:end]) for start, end in zip(starts, starts[1:], strict=False)]

    def run(
        self, rows: Sequence[int], work: Callable[[list[int], float], Result], reset: Callable[[], None]
    ) -> list[Result]:
        """`work(piece, share)` for every piece, share being the piece's part of the rows.

        `work` multiplies its mean loss by the share before backward, so that gradients add up to the whole batch's.
        When memory runs out, `reset()` (forget the gradients), and all of it again with pieces of half the size.
        """
        while True:
            try:
                return [work(piece, len(piece) / len(rows)) for piece in self.split(rows)]
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self._halve(min(self.size, len(rows)), error)
            # Outside the handler: there the traceback would keep the tensors of the failed attempt alive.
            reset()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    def _halve(self, used: int, error: Exception) -> None:
        if used == 1:
            raise TooLargeError(
                "not even one text fits in memory; lower model.max_length or choose a smaller backbone"
            ) from error
        self.size = used // 2
        logger.warning("out of memory with %d texts at once; going on with %d and more accumulation", used, self.size)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, on whichever device."""
    message = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError)
        and any(words in message for words in ("out of memory", "can't allocate memory", "not enough memory"))
    )
