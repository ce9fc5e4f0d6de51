"""Lanes: equal questions that wait are one batch, and nobody waits for the failure of another."""

import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest

from lexical_sae.serve.lanes import Lane
from lexical_sae.serve.problems import Problem, QueueFull
from lexical_sae.serve.settings import Batching
from tests.serve.waiting import wait_until


class Work:
    """Stands for a model: it records its batches, and works only when it may."""

    def __init__(self) -> None:
        self.may_go, self.began = threading.Event(), threading.Event()
        self.batches: list[list[Any]] = []


@dataclass(frozen=True)
class Double:
    """Twice each number; 13 fails, and with it the batch."""

    kind: str = "any"

    def answer(self, work, items):
        work.began.set()
        assert work.may_go.wait(10)
        work.batches.append(list(items))
        if 13 in items:
            raise ValueError("13")
        return [2 * item for item in items]


@pytest.fixture
def work():
    return Work()


def busy_lane(work, batching=Batching(), most_waiting=100) -> Lane:
    """A lane whose thread is busy with a first question until `work.may_go`."""
    lane = Lane("test", work, batching, most_waiting)
    lane.ask(Double(), [0])
    assert work.began.wait(10)
    return lane


def test_equal_questions_that_wait_are_answered_together_and_others_apart(work):
    lane = busy_lane(work)
    asked = [lane.ask(Double(kind), items) for kind, items in [("a", [1, 2]), ("b", [3]), ("a", [4]), ("b", [5, 6])]]
    work.may_go.set()
    assert [future.result(10) for future in asked] == [[2, 4], [6], [8], [10, 12]]
    assert work.batches == [[0], [1, 2, 4], [3, 5, 6]]


def test_a_batch_has_a_greatest_size_and_keeps_a_request_whole(work):
    lane = busy_lane(work, Batching(texts=4))
    asked = [lane.ask(Double(), items) for items in ([1, 2, 3], [4, 5], [6], [7] * 9)]
    work.may_go.set()
    assert [len(future.result(10)) for future in asked] == [3, 2, 1, 9]
    assert work.batches == [[0], [1, 2, 3, 6], [4, 5], [7] * 9]


def test_without_batching_every_request_is_answered_by_itself(work):
    lane = busy_lane(work, Batching(texts=1))
    asked = [lane.ask(Double(), [number]) for number in (1, 2)]
    work.may_go.set()
    assert [future.result(10) for future in asked] == [[2], [4]]
    assert work.batches == [[0], [1], [2]]


def test_a_failure_is_of_the_request_that_causes_it(work):
    lane = busy_lane(work)
    good, bad, fine = (lane.ask(Double(), [number]) for number in (1, 13, 2))
    work.may_go.set()
    assert (good.result(10), fine.result(10)) == ([2], [4])
    with pytest.raises(ValueError, match="13"):
        bad.result(10)


def test_only_so_many_texts_wait(work):
    lane = busy_lane(work, most_waiting=3)
    first = lane.ask(Double(), [1, 2])
    with pytest.raises(QueueFull):
        lane.ask(Double(), [3, 4])
    last = lane.ask(Double(), [5])
    work.may_go.set()
    assert (first.result(10), last.result(10)) == ([2, 4], [10])


def test_a_question_that_nobody_waits_for_any_more_is_not_answered(work):
    lane = busy_lane(work)
    left, kept = lane.ask(Double(), [1]), lane.ask(Double(), [2])
    assert left.cancel()
    work.may_go.set()
    assert kept.result(10) == [4]
    assert work.batches == [[0], [2]]


def test_a_closed_lane_answers_what_it_took_and_takes_nothing_more(work):
    lane = busy_lane(work)
    taken = lane.ask(Double(), [1])
    closing = threading.Thread(target=lane.close)
    closing.start()
    wait_until(lambda: lane.is_closed)
    with pytest.raises(Problem, match="shutting down"):
        lane.ask(Double(), [2])
    assert not taken.done()
    work.may_go.set()
    closing.join(10)
    assert not closing.is_alive()
    assert taken.result(0) == [2]


def test_a_lone_client_never_waits_and_company_waits_for_as_many_as_before(work):
    work.may_go.set()
    lane = Lane("test", work, Batching(wait_seconds=30.0), 100)
    started = time.monotonic()
    for number in range(10):
        assert lane.ask(Double(), [number]).result(10) == [2 * number]
    assert time.monotonic() - started < 10
    work.may_go.clear()
    work.began.clear()
    lane.ask(Double(), [0])
    assert work.began.wait(10)
    pair = [lane.ask(Double(), [number]) for number in (1, 2)]
    work.may_go.set()
    assert [future.result(10) for future in pair] == [[2], [4]]
    # The last batch had two questions: the next one waits for a second before it is answered.
    alone = lane.ask(Double(), [3])
    time.sleep(0.05)
    assert not alone.done()
    other = lane.ask(Double(), [4])
    assert (alone.result(10), other.result(10)) == ([6], [8])
    assert work.batches[-1] == [3, 4]
