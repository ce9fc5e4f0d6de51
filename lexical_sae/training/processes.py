"""Training on several processes (`torchrun`): all of them take every step together, and share out the encoder's work.

1. Every process has the same rows, weights and random numbers, and goes through the same program.
2. A batch that reaches the encoder is cut into as many parts as there are processes; each encodes its own, and the
   states of all are gathered. What follows, from the gate to the controllers, is done by every process on the whole
   batch: no tracker, count or multiplier has to be kept in step, because none ever sees a part of a batch.
3. Each process sends 1/N of the loss backward, and the gradients are summed.

What depends on a clock, on free memory or on a signal is agreed on. See docs/adr/0018.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn
from transformers.utils.generic import ModelOutput

from lexical_sae.training.resuming.checkpoint import pack
from lexical_sae.training.resuming.random_state import random_state, restore_random_state
from lexical_sae.utils.device import resolve_device
from lexical_sae.utils.errors import SettingsError

Value = TypeVar("Value")
MESSAGE = 2**23
LONGEST_WAIT = timedelta(days=1)
"""How long a process waits for the others: the first one may be reading data, or fitting a table. One that has died is
noticed at once."""


@dataclass(frozen=True)
class Processes:
    """The processes that train together, as one of them sees it."""

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes files and talks to people."""
        return self.rank == 0

    def any(self, value: bool) -> bool:
        """Whether it is true of at least one process. All must ask."""
        return bool(self._reduced(float(value), dist.ReduceOp.MAX))

    def least(self, value: int) -> int:
        """The least of all processes' values."""
        return int(self._reduced(float(value), dist.ReduceOp.MIN))

    def _reduced(self, value: float, how: Any) -> float:
        if self.count == 1:
            return value
        found = torch.tensor(value, dtype=torch.float64, device=_home())
        dist.all_reduce(found, how)
        return found.item()

    def from_first(self, value: Value | None = None) -> Value | None:
        """What the first process gives, on every process; what the others give is not looked at."""
        if self.count == 1:
            return value
        held = [value if self.is_first else None]
        dist.broadcast_object_list(held, src=0, device=_home())
        return held[0]

    def share_of(self, loss: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """This process's part of a loss that all of them have computed."""
        return loss if self.count == 1 else loss / self.count

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Make the gradients those of the whole loss, bitwise the same on every process."""
        if self.count == 1:
            return
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        for alike in _in_messages(gradients):
            message = torch.cat([gradient.flatten() for gradient in alike])
            dist.all_reduce(message)
            for gradient, summed in zip(alike, message.split([g.numel() for g in alike]), strict=True):
                gradient.copy_(summed.view_as(gradient))

    @contextmanager
    def sharing(self, encoder: nn.Module) -> Iterator[None]:
        """Within, every batch that this encoder is given is encoded by all processes together."""
        if self.count == 1:
            yield
            return
        pass_ = _SharedPass(self)
        hooks = [
            encoder.register_forward_pre_hook(pass_.begin, with_kwargs=True),
            encoder.register_forward_hook(pass_.end),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def differing(self, state: Mapping[str, Any]) -> list[str]:
        """What is not bitwise the same on every process, of a state that a checkpoint could hold."""
        if self.count == 1:
            return []
        packed, tensors = pack(state)
        own = {"figures": _digest(json.dumps(packed).encode())}
        own |= {name: _digest(_bytes_of(tensor)) for name, tensor in tensors.items()}
        every: list[Any] = [None] * self.count
        dist.all_gather_object(every, own)
        return [name for name in own if any(other.get(name) != own[name] for other in every)]


ALONE = Processes()
_current: ContextVar[Processes] = ContextVar("processes", default=ALONE)


def current() -> Processes:
    """The processes that this one trains with; itself alone outside `joined`."""
    return _current.get()


@contextmanager
def joined(device: str = "auto") -> Iterator[Processes]:
    """Within, this process trains with the others that `torchrun` started; alone if it started none.

    Args:
        device: Where tensors will live; the processes of one machine get a GPU each.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield ALONE
        return
    on_gpu = resolve_device(device).type == "cuda"
    if on_gpu:
        own = int(os.environ.get("LOCAL_RANK", "0"))
        if own >= torch.cuda.device_count():
            raise SettingsError(
                f"torchrun started process {own} on a machine with {torch.cuda.device_count()} GPUs; start as many "
                "processes as GPUs (--nproc-per-node), or train with --device cpu"
            )
        torch.cuda.set_device(own)
    dist.init_process_group("nccl" if on_gpu else "gloo", timeout=LONGEST_WAIT)
    token = _current.set(Processes(dist.get_rank(), dist.get_world_size()))
    try:
        yield current()
    finally:
        _current.reset(token)
        dist.destroy_process_group()


class _SharedPass:
    """One pass of the encoder: the own part of the input goes in, the states of all parts come out."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self._sizes: list[int] = []
        self._chance: _OwnChance | None = None

    def begin(self, encoder: nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        assert not args, "the backbone names what it gives its encoder"
        size, count, rank = len(next(iter(given.values()))), self.processes.count, self.processes.rank
        self._chance = _OwnChance(rank) if encoder.training else None
        # A batch of fewer texts than processes is encoded whole by each of them.
        self._sizes = [] if size < count else [len(part) for part in torch.arange(size).tensor_split(count)]
        if not self._sizes:
            return args, given
        first = sum(self._sizes[:rank])
        return args, {name: value[first : first + self._sizes[rank]] for name, value in given.items()}

    def end(self, _encoder: nn.Module, _args: tuple[Any, ...], output: ModelOutput) -> ModelOutput:
        if self._chance is not None:
            self._chance.end()
        if not self._sizes:
            return output
        states: Tensor = output["last_hidden_state"]
        gathered: Any = _Gather.apply(states, self._sizes, self.processes.rank)
        return type(output)(last_hidden_state=gathered)


class _OwnChance:
    """Random numbers of this process's own, for dropout, until `end`; then all processes draw the same ones again.

    An encoder without dropout draws none, and then everything after it is drawn as in a process that trains alone.
    """

    def __init__(self, rank: int) -> None:
        self._shared = random_state()
        seed = int.from_bytes(hashlib.sha256(_bytes_of(self._shared["torch"])).digest()[:7])
        torch.manual_seed(seed + rank)
        self._begun = random_state()

    def end(self) -> None:
        was_used = not all(map(torch.equal, _drawn_from(self._begun), _drawn_from(random_state())))
        restore_random_state(self._shared)
        if was_used:
            # Or the next pass would drop the same units.
            torch.rand(())


def _drawn_from(state: Mapping[str, Any]) -> list[Tensor]:
    return [state["torch"], *state["cuda"]]


class _Gather(torch.autograd.Function):
    """Rows of all processes in order. Backward: the gradient of the own rows, as the processes' losses sum it.

    Every process has the whole loss's gradient by 1/N (`share_of`), so that the sum over them is N times its own.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor, sizes: Sequence[int], rank: int) -> Tensor:
        ctx.sizes, ctx.rank = sizes, rank
        # All parts must be of one size to be gathered.
        padded = own.new_zeros(max(sizes), *own.shape[1:])
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        first = sum(ctx.sizes[: ctx.rank])
        return grads[0][first : first + ctx.sizes[ctx.rank]] * len(ctx.sizes), None, None


def _in_messages(tensors: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """The tensors in order, in groups of one type and of about `MESSAGE` numbers: each message costs a round trip."""
    group: list[Tensor] = []
    for tensor in tensors:
        if group and (tensor.dtype != group[0].dtype or sum(other.numel() for other in group) >= MESSAGE):
            yield group
            group = []
        group.append(tensor)
    if group:
        yield group


def _home() -> torch.device:
    """Where the tensors of a message must be."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def _bytes_of(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
