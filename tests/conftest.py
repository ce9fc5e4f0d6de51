import os
import sys

import pytest
import torch
from hypothesis import settings
from transformers.utils import logging as transformers_logging

from lexical_sae import cli

# One thread per worker unless somebody asks for more: the tensors are tiny, and two workers share two cores.
if "OMP_NUM_THREADS" not in os.environ:
    torch.set_num_threads(1)
transformers_logging.disable_progress_bar()
# Times vary with the machine; seeds do not.
settings.register_profile("project", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("project")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def without_lexicon(monkeypatch):
    """Training downloads the sentiment lexicon for its name tests; the suite needs no network."""
    monkeypatch.setattr("lexical_sae.runs.measuring.name_tests.sentiment_lexicon", lambda: None)


@pytest.fixture
def run(monkeypatch, capsys):
    """The command as a person types it: exit code, standard output, standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lexical-sae", *arguments])
        monkeypatch.setenv("COLUMNS", "200")
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        output = capsys.readouterr()
        return code, output.out, output.err

    return call
