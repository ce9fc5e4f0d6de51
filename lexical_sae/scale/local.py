"""The engine of one machine: spawned processes with one thread each, a model in every one, and few parts in flight."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from typing import Any

import torch

from lexical_sae.scale.parts import Part
from lexical_sae.scale.scorer import PartDone, Scorer, ScoreSettings
from lexical_sae.utils.errors import UnavailableError

IN_FLIGHT = 2
"""Parts per process that are read ahead: one to work on, one to go on with."""
_scorer: list[Scorer] = []
"""Of a worker process."""


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def score_locally(
    folder: str, settings: ScoreSettings, out: str, parts: Iterator[Part], workers: int
) -> Iterator[PartDone]:
    """Each part as soon as it is written, in any order; with one worker in this very process, with 0 one per core."""
    workers = workers or usable_cores()
    if workers == 1:
        with _one_thread():
            yield from map(Scorer(folder, settings, out), parts)
        return
    # The tokenizer's own threads would be more than the cores.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start, (folder, settings, out))
    flying: set[Future[PartDone]] = set()
    try:
        for part in parts:
            flying.add(pool.submit(_score, part))
            if len(flying) >= IN_FLIGHT * workers:
                landed, flying = wait(flying, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in landed)
        while flying:
            landed, flying = wait(flying, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in landed)
    except BrokenProcessPool as error:
        raise UnavailableError(
            "a worker process was killed, perhaps for want of memory; what is written stays: go on with --resume, and "
            "fewer --workers or a smaller --batch-size"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start(folder: str, settings: ScoreSettings, out: str) -> None:
    torch.set_num_threads(1)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _scorer.append(Scorer(folder, settings, out))


def _die_with_parent() -> None:
    """A killed parent cannot say so, and nobody else would end this process."""
    parent: Any = parent_process()
    connection.wait([parent.sentinel])
    os._exit(1)


def _score(part: Part) -> PartDone:
    return _scorer[0](part)


@contextmanager
def _one_thread() -> Iterator[None]:
    """As in a worker: another number of threads may round otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
