"""The state of every source of chance: taken, and put back, bitwise."""

import logging
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from lexical_sae.utils.errors import SavedFileError

logger = logging.getLogger(__name__)

Generator = np.random.Generator | torch.Generator


def random_state(generators: Mapping[str, Generator] | None = None) -> dict[str, Any]:
    """State of Python's, NumPy's and torch's global generators (each GPU's too) and of the given ones, by name."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "mps": torch.mps.get_rng_state() if torch.backends.mps.is_available() else None,
        "generators": {name: _state_of(generator) for name, generator in (generators or {}).items()},
    }


def restore_random_state(state: Mapping[str, Any], generators: Mapping[str, Generator] | None = None) -> None:
    """Put every generator back; the given ones must be those that were given when the state was taken."""
    generators = generators or {}
    if state["generators"].keys() != generators.keys():
        raise SavedFileError(f"the state is of generators {sorted(state['generators'])}, not {sorted(generators)}")
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    here = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if here and here == len(state["cuda"]):
        torch.cuda.set_rng_state_all(list(state["cuda"]))
    elif here != len(state["cuda"]):
        logger.warning("chance on %d GPUs was saved, %d are here: draws will differ", len(state["cuda"]), here)
    if state["mps"] is not None and torch.backends.mps.is_available():
        torch.mps.set_rng_state(state["mps"])
    for name, generator in generators.items():
        if isinstance(generator, torch.Generator):
            generator.set_state(state["generators"][name])
        else:
            generator.bit_generator.state = state["generators"][name]


@contextmanager
def chance_as_found(generators: Mapping[str, Generator] | None = None) -> Iterator[None]:
    """Whatever is drawn within, chance goes on after as if it had not been."""
    state = random_state(generators)
    try:
        yield
    finally:
        restore_random_state(state, generators)


def _state_of(generator: Generator) -> Any:
    return generator.get_state() if isinstance(generator, torch.Generator) else generator.bit_generator.state
