import pytest
import torch
from hypothesis import settings
from transformers.utils import logging as transformers_logging

# One thread per worker: the tensors are tiny, and two workers share two cores.
torch.set_num_threads(1)
transformers_logging.disable_progress_bar()
# Times vary with the machine; seeds do not.
settings.register_profile("project", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("project")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
