"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable


def wait_until(is_so: Callable[[], bool], seconds: float = 20.0) -> None:
    """Return as soon as it is so."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come to be so"
        time.sleep(0.005)
