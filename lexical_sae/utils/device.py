"""Where tensors live, and the seeds. Nothing here runs at import."""

import random

import numpy as np
import torch

from lexical_sae.utils.errors import SettingsError

Device = torch.device


def resolve_device(name: str = "auto") -> Device:
    """The torch device behind a name; `"auto"` takes CUDA, then MPS, then the CPU.

    Example: `resolve_device("cpu") -> device(type="cpu")`
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise SettingsError(f"device {name!r} is unknown; choose 'auto', 'cpu', 'cuda', 'cuda:0' or 'mps'") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SettingsError(f"device {name!r} is not available here: torch sees no CUDA; choose 'auto' or 'cpu'")
    return device


def set_seed(seed: int) -> None:
    """Seed Python, NumPy and torch (all devices)."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
