"""A model that several threads share gives each of them the answers that it gives to one alone."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle, islice
from random import Random
from typing import Any

import pytest
import torch

from splade.inference.explaining import explain
from splade.inference.predicting import predict, predict_proba
from splade.inference.reasons import find_reasons
from splade.inference.tagging import tag
from splade.inference.windows import explain_windows
from tests import tiny

THREADS, CALLS = 8, 100
LENGTHS = (1, 2, 5, 20, 60, 80, 150, 300)
"""Tokens of the texts: shorter than the model reads, about as long, and longer."""
ASK: tuple[Callable[..., Any], ...] = (
    explain,
    predict,
    tag,
    explain_windows,
    partial(find_reasons, max_nodes=20),
    lambda model, text: predict_proba(model, text).tolist(),
)

Call = tuple[Callable[..., Any], str]


@pytest.fixture
def hurried_threads():
    """Threads take turns as often as Python lets them, and sums are not cut up by the number of cores."""
    interval, cores = sys.getswitchinterval(), torch.get_num_threads()
    sys.setswitchinterval(1e-6)
    torch.set_num_threads(1)
    yield
    sys.setswitchinterval(interval)
    torch.set_num_threads(cores)


def calls() -> list[Call]:
    """Every question about texts of every length, in no order."""
    draw = Random(0)
    words = [word for word in tiny.WORDS if word.isalpha()]
    asked = islice(zip(cycle(ASK), cycle(LENGTHS + LENGTHS[:1])), CALLS)
    made = [(ask, " ".join(draw.choices([*words, "[SEP]"], k=length))) for ask, length in asked]
    draw.shuffle(made)
    return made


def answers_in_threads(model, asked: list[Call]) -> list[list[Any]]:
    """The answers that each thread gets, in the order of the questions; a thread begins where no other does."""
    start = threading.Barrier(THREADS)

    def answer(thread: int) -> list[Any]:
        first = thread * len(asked) // THREADS
        start.wait()
        found = [ask(model, text) for ask, text in asked[first:] + asked[:first]]
        return found[len(asked) - first :] + found[: len(asked) - first]

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(answer, range(THREADS)))


@pytest.mark.parametrize("turn", range(5))
@pytest.mark.usefixtures("hurried_threads")
def test_threads_that_share_a_model_get_the_answers_of_one_thread(turn):
    model, asked = tiny.model(), calls()
    alone = [ask(model, text) for ask, text in asked]
    for thread, found in enumerate(answers_in_threads(model, asked)):
        wrong = [number for number in range(CALLS) if found[number] != alone[number]]
        assert not wrong, f"turn {turn}, thread {thread}: {len(wrong)} other answers, the first to call {wrong[0]}"
