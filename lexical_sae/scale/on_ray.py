"""The engine of a cluster: Ray actors, each with a model, that score parts and write them to a shared folder.

The driver reads the input and keeps few parts in flight, and an actor gets work once its model is loaded. A part whose
actor or node died is given to whoever is free: done twice, it is the same file. So the table is that of the local
engine, file for file.
"""

import logging
import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray  # pyright: ignore[reportMissingImports] - an extra
import torch
from ray.exceptions import RayActorError, RayTaskError  # pyright: ignore[reportMissingImports]

from lexical_sae.scale.local import usable_cores
from lexical_sae.scale.parts import Part, PartKey
from lexical_sae.scale.scorer import PartDone, Scorer, ScoreSettings
from lexical_sae.utils.errors import LexicalSAEError, UnavailableError

IN_FLIGHT = 2
"""Parts per actor: one to work on, one to go on with."""
DEATHS, RESTARTS = 3, 20
"""Actors that may die over one part before it is given up, and times that one actor is started anew."""


class ScoringActor:
    """A process of the cluster with a model."""

    def __init__(self, folder: str, settings: ScoreSettings, out: str, device: str) -> None:
        # As in a worker of the local engine: another number of threads may round otherwise.
        torch.set_num_threads(1)
        self._asked = folder, settings, out, device
        self._scorer: Scorer | None = None

    def ready(self) -> None:
        """Load the model, from the shared folder, and check its hash."""
        if self._scorer is None:
            folder, settings, out, device = self._asked
            self._scorer = Scorer(folder, settings, out, device)

    def score(self, part: Part) -> PartDone:
        """Score a part and write it."""
        self.ready()
        assert self._scorer is not None
        return self._scorer(part)


@dataclass(frozen=True)
class RayEngine:
    """Scores on the cluster at an address, or on one that is started on this machine."""

    address: str | None = None
    """Such as `auto` or `ray://head:10001`; None starts Ray here, unless it runs already."""
    gpus: float = 0.0
    """GPUs of each actor; a half lets two share one."""
    actor: type = ScoringActor

    def __call__(
        self, folder: str, settings: ScoreSettings, out: str, parts: Iterator[Part], workers: int
    ) -> Iterator[PartDone]:
        """Each part as soon as it is written, in any order.

        Args:
            folder: Of the saved model, on a disk that every node has.
            settings: What to make of the parts.
            out: Folder of the table, on such a disk too.
            parts: What to score.
            workers: Actors; 0 for as many as the cluster has room for.
        """
        with _connected(self.address):
            made = ray.remote(num_cpus=1, num_gpus=self.gpus, max_restarts=RESTARTS)(self.actor)
            device = "cuda" if self.gpus else "cpu"
            actors: list[Any] = [made.remote(folder, settings, out, device) for _ in range(workers or self._room())]
            try:
                yield from _Crew(actors).work(parts)
            except RayTaskError as error:
                # Ray's own error holds a traceback of the actor; what a user can put right is one sentence.
                raise error.cause if isinstance(error.cause, LexicalSAEError) else error from error
            finally:
                for actor in actors:
                    ray.kill(actor)

    def _room(self) -> int:
        """How many actors the cluster has room for, with one CPU left to whoever reads and counts."""
        there = ray.cluster_resources()
        cpus = int(there.get("CPU", 0))
        room = cpus - 1 if cpus > 2 else cpus
        if self.gpus:
            room = min(room, int(there.get("GPU", 0) / self.gpus))
        if room < 1:
            raise UnavailableError(
                f"the cluster has {cpus} CPUs and {there.get('GPU', 0):g} GPUs: no room for an actor"
            )
        return room


class _Crew:
    """Actors, and who of them does what."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._loading: dict[Any, Any] = {}
        self._flying: dict[Any, tuple[Any, Part]] = {}
        self._free: deque[Any] = deque()
        self._deaths: Counter[PartKey] = Counter()
        for actor in actors:
            self._call(actor)

    def work(self, parts: Iterator[Part]) -> Iterator[PartDone]:
        """Have every part done."""
        again: list[Part] = []
        while True:
            while self._free and (part := again.pop() if again else next(parts, None)) is not None:
                actor = self._free.popleft()
                self._flying[actor.score.remote(part)] = actor, part
            if self._free and not self._flying:
                return  # somebody is free, and there is nothing to do
            (ref,), _ = ray.wait([*self._flying, *self._loading], num_returns=1)
            if ref in self._loading:
                self._arrive(ref)
                continue
            actor, _ = self._flying[ref]
            try:
                done = ray.get(ref)
            except RayActorError as error:
                again += self._lost_with(actor, error)
                continue
            del self._flying[ref]
            self._free.append(actor)
            yield done

    def _call(self, actor: Any) -> None:
        """Have the actor load its model, now or when it is there again."""
        # Without end: each try while the actor is not there again counts as one.
        self._loading[actor.ready.options(max_task_retries=-1).remote()] = actor

    def _arrive(self, ref: Any) -> None:
        actor = self._loading.pop(ref)
        try:
            ray.get(ref)
        except RayActorError as error:
            if self._flying or self._free or self._loading:
                return  # the others go on
            raise UnavailableError(f"no actor is left: each died {RESTARTS} times{_advice(error)}") from error
        self._free.extend([actor] * IN_FLIGHT)

    def _lost_with(self, actor: Any, error: RayActorError) -> list[Part]:
        """The parts that a dead actor had, to be done again; it was at the first of them."""
        mine = [ref for ref, (other, _) in self._flying.items() if other is actor]
        parts = [self._flying.pop(ref)[1] for ref in mine]
        key = parts[0].key
        self._deaths[key] += 1
        if self._deaths[key] >= DEATHS:
            raise UnavailableError(
                f"{DEATHS} actors died over part {key.number} of file {key.file}{_advice(error)}"
            ) from error
        self._free = deque(other for other in self._free if other is not actor)
        self._call(actor)
        return parts


def _advice(error: RayActorError) -> str:
    return (
        f" ({str(error).splitlines()[0]}), perhaps for want of memory; what is written stays: go on with "
        "--resume, and a smaller --batch-size or more memory per CPU"
    )


@contextmanager
def _connected(address: str | None) -> Iterator[None]:
    """A connection to the cluster; one that is there already is used and left alone."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    here = {} if address else {"num_cpus": usable_cores(), "include_dashboard": False}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.WARNING, **here)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UnavailableError(f"no Ray cluster at {address} ({error}); start one, or give --ray-address") from error
    try:
        yield
    finally:
        ray.shutdown()
