"""Which precision things are computed in: the encoder may run in less than single precision, what is explained may not.

1. Everything from the decoder's logits on is inside `full_precision`, so contributions add up to the logits under
   autocast too.
2. `refuse_half_precision` stops a model whose weights were cast by hand: its digits are gone, whoever computes.
3. `encoder_precision` is autocast for training (`training.dtype`) and for scoring many texts (`score --dtype`),
   refused where it cannot work.
"""

import contextlib
import functools
import subprocess
import sys
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor

from lexical_sae.utils.errors import SettingsError

EncoderType = Literal["float32", "bfloat16"]
AUTOCAST_DEVICES = ("cpu", "cuda", "mps")

_PROBE = """
import torch
from torch.nn.functional import linear, scaled_dot_product_attention
from lexical_sae.utils.errors import SettingsError
with torch.autocast("cpu", dtype=torch.bfloat16):
    for rows in (1, 33, 256):
        x, w = torch.ones(rows, 64, requires_grad=True), torch.ones(96, 64, requires_grad=True)
        y = linear(x, w)
        z = scaled_dot_product_attention(*(y[None, None, :, :32] for _ in range(3)))
        (y.float().sum() + z.float().sum()).backward()
"""


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Autocast off, on whichever device it is on; also a decorator, `@full_precision()`."""
    with contextlib.ExitStack() as off:
        for device in AUTOCAST_DEVICES:
            if torch.is_autocast_enabled(device):
                off.enter_context(torch.autocast(device, enabled=False))
        yield


def refuse_half_precision(weight: Tensor) -> None:
    """Raise if a model's weights are in half precision."""
    if weight.dtype in (torch.float16, torch.bfloat16):
        raise SettingsError(
            f"the model's weights were cast to {str(weight.dtype).removeprefix('torch.')}, in which contributions do "
            "not add up to the logits; load it again, or call model.float(). To run the encoder alone in half "
            "precision, leave the weights as they are and call the model inside torch.autocast"
        )


def encoder_precision(dtype: EncoderType, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """What to encode in; `float32` leaves a caller's autocast as it is."""
    return contextlib.nullcontext() if dtype == "float32" else torch.autocast(device.type, dtype=torch.bfloat16)


def keeping_casts(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Autocast that is off: inside it, `encoder_precision` casts each weight once, and not for every batch.

    torch drops what it has cast where the outermost autocast ends.
    """
    return torch.autocast(device.type, enabled=False) if device.type in AUTOCAST_DEVICES else contextlib.nullcontext()


def require_encoder_type(dtype: EncoderType, device: torch.device, option: str = "training.dtype") -> None:
    """Raise if this device cannot compute in the type; on the CPU a child process tries it out first."""
    if dtype == "float32":
        return
    problem = None
    if device.type == "cuda" and not torch.cuda.is_bf16_supported():
        problem = "this GPU has no bfloat16"
    if device.type == "cpu":
        problem = cpu_problem_with_bfloat16()
    if problem:
        raise SettingsError(f"{option} is 'bfloat16', but {problem}; set {option} to float32")


@functools.cache
def cpu_problem_with_bfloat16() -> str | None:
    """Why this processor cannot multiply in bfloat16; None if it can.

    Tried in a child process: where instructions are missing, some builds of torch end the process by a signal.
    """
    try:
        done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"whether this processor can multiply in bfloat16 could not be found out ({error})"
    return None if done.returncode == 0 else f"this processor cannot multiply in bfloat16 (exit code {done.returncode})"
