"""A model that several threads share gives each of them the answers that it gives to one alone."""

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from random import Random
from typing import Any

import pytest
import torch

from lexical_sae.explanation import Reasons
from lexical_sae.inference.explaining import explain
from lexical_sae.inference.predicting import predict, predict_proba
from lexical_sae.inference.reasons import find_reasons
from lexical_sae.inference.tagging import tag
from lexical_sae.inference.windows import explain_windows
from lexical_sae.models.lexical_sae import LexicalSAE
from tests import tiny

THREADS, CALLS = 8, 100
LENGTHS = (1, 2, 5, 20, 60, 80, 150, 300)
"""Tokens of the texts: shorter than the model reads, about as long, and longer."""


def predict_probabilities(model: LexicalSAE, text: str) -> list[float]:
    return predict_proba(model, text).tolist()


def reasons(model: LexicalSAE, text: str) -> Reasons:
    return find_reasons(model, text, max_nodes=5)


ASK: tuple[Callable[..., Any], ...] = (
    explain,
    predict,
    tag,
    explain_windows,
    reasons,
    predict_probabilities,
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


def calls(count: int, seed: int) -> list[Call]:
    """Every question about texts of every length, in no order."""
    draw = Random(seed)
    words = [word for word in tiny.WORDS if word.isalpha()]
    asked = islice(zip(cycle(ASK), cycle(LENGTHS[::-1] + LENGTHS[:1])), count)
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


def check_threads_against_one(model, asked: list[Call]) -> None:
    alone = [ask(model, text) for ask, text in asked]
    for thread, found in enumerate(answers_in_threads(model, asked)):
        wrong = [number for number, answer in enumerate(found) if answer != alone[number]]
        assert not wrong, f"thread {thread}: {len(wrong)} other answers, the first to call {wrong[0]}"


@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in range(1, 5))])
@pytest.mark.usefixtures("hurried_threads")
def test_threads_that_share_a_model_get_the_answers_of_one_thread(turn):
    check_threads_against_one(tiny.model(), calls(CALLS, seed=turn))


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.usefixtures("hurried_threads")
def test_threads_may_share_an_encoder_of_any_family(family):
    check_threads_against_one(tiny.model(family=family), calls(4, seed=1))


@pytest.mark.parametrize("ask", ASK)
def test_a_tokenizer_that_others_use_meanwhile_changes_no_answer(ask, monkeypatch):
    """Between what a call sets on the tokenizer and its reading of it, another thread sets something else."""
    model, text = tiny.model(), " ".join(["a good film [SEP]"] * 30)
    alone, kind = ask(model, text), type(model.tokenizer)
    own = kind.set_truncation_and_padding

    def disturbed(tokenizer, *settings, **named):
        own(tokenizer, *settings, **named)
        tokenizer.backend_tokenizer.enable_truncation(max_length=7)

    monkeypatch.setattr(kind, "set_truncation_and_padding", disturbed)
    model.tokenizer(text)
    assert model.tokenizer.backend_tokenizer.truncation["max_length"] == 7
    assert ask(model, text) == alone


@pytest.mark.parametrize("ask", [predict_probabilities, tag])
def test_no_thread_reads_with_a_model_that_another_is_still_taking_out_of_training(ask, monkeypatch):
    model, text = tiny.model(), "a good film was not boring"
    alone = ask(model, text)
    model.train()
    is_switching, switch = threading.Event(), model.backbone.train

    def slowly(mode: bool = True):
        is_switching.set()
        time.sleep(0.3)
        return switch(mode)

    monkeypatch.setattr(model.backbone, "train", slowly)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, model, text)
        is_switching.wait()
        second = pool.submit(ask, model, text)
        assert [first.result(), second.result()] == [alone, alone]
