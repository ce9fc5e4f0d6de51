"""A lane: the thread that owns a model, and the questions that wait for it.

1. The thread takes the oldest question, and with it every other question that is equal and asks about other texts, up
   to a full batch. Those of one batch are answered by one call.
2. Where the last batch had several questions, more are probably on their way: it waits for as many, a few milliseconds
   at most. A lone client never waits.
3. If a batch fails, its questions are answered one by one, so that a bad text fails nobody else.
4. A closed lane answers what it has taken and takes nothing more.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from lexical_sae.serve.problems import Problem, QueueFull
from lexical_sae.serve.settings import Batching

CLOSED = "The service is shutting down; ask again in a moment."


@runtime_checkable
class Question(Hashable, Protocol):
    """What is asked about any texts; equal questions can be answered together."""

    def answer(self, model: Any, items: Sequence[Any], /) -> Sequence[Any]:
        """One answer per text."""
        ...


Watch = Callable[[int, int, float], None]
"""Told of each batch: its questions, its texts, and how long the first waited, in seconds."""


@dataclass(eq=False)
class Job:
    """A question about some texts, and where its answers go."""

    question: Question
    items: Sequence[Any]
    future: Future[list[Any]] = field(default_factory=Future)
    asked_at: float = field(default_factory=time.monotonic)


class Lane:
    """One thread with one model."""

    def __init__(
        self, name: str, model: Any, batching: Batching, most_waiting: int, watch: Watch = lambda *_: None
    ) -> None:
        self.model, self.batching, self.most_waiting, self.watch = model, batching, most_waiting, watch
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self.is_closed, self._last_company = False, 1
        self._thread = threading.Thread(target=self._run, name=f"lane {name}", daemon=True)
        self._thread.start()

    def ask(self, question: Question, items: Sequence[Any]) -> Future[list[Any]]:
        """The answers to a question about some texts, in the future; refused where too many wait."""
        job = Job(question, items)
        with self._changed:
            if self.is_closed:
                raise Problem(503, CLOSED, {"Retry-After": "1"})
            if self.waiting + len(items) > self.most_waiting:
                raise QueueFull
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    @property
    def waiting(self) -> int:
        """Texts whose turn has not come."""
        return sum(len(job.items) for job in tuple(self._jobs))

    def close(self) -> None:
        """Take nothing more, and return when everything taken is answered."""
        with self._changed:
            self.is_closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next_batch():
            live = [job for job in batch if job.future.set_running_or_notify_cancel()]
            if live:
                self.watch(len(live), sum(len(job.items) for job in live), time.monotonic() - live[0].asked_at)
                self._answer(live)

    def _next_batch(self) -> list[Job]:
        """The next questions to answer together; none when the lane is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self.is_closed)
            if not self._jobs:
                return []
            self._wait_for_company()
            first = self._jobs.popleft()
            batch, room, others = [first], self.batching.texts - len(first.items), deque[Job]()
            for job in self._jobs:
                if job.question == first.question and len(job.items) <= room:
                    batch.append(job)
                    room -= len(job.items)
                else:
                    others.append(job)
            self._jobs = others
            self._last_company = len(batch)
            return batch

    def _wait_for_company(self) -> None:
        expected = self._last_company
        if expected > 1 and not self.is_closed:
            self._changed.wait_for(
                lambda: len(self._jobs) >= expected or self.is_closed, timeout=self.batching.wait_seconds
            )

    def _answer(self, jobs: Sequence[Job]) -> None:
        try:
            items = [item for job in jobs for item in job.items]
            answers = iter(jobs[0].question.answer(self.model, items))
            found = [[next(answers) for _ in job.items] for job in jobs]
        except Exception as error:
            if len(jobs) > 1:
                for job in jobs:
                    self._answer([job])
            else:
                jobs[0].future.set_exception(error)
            return
        for job, answered in zip(jobs, found, strict=True):
            job.future.set_result(answered)
