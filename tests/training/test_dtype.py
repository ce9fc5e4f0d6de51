"""`training.dtype`: the encoder's training steps in bfloat16, and nothing else."""

import copy
import subprocess

import pytest
import torch

from lexical_sae.config.load import parse_config
from lexical_sae.data.batches import tokenize
from lexical_sae.recipes import recipe_by_name
from lexical_sae.training.loop import Trainer
from lexical_sae.training.tasks import IGNORED, Documents, Positions
from lexical_sae.utils import precision
from tests import tiny
from tests.tiny import BAD, GOOD


def trainer(*, tags=False, **changes):
    recipe = recipe_by_name("cajt")
    model = tiny.model(recipe.model)
    texts = tokenize(model.tokenizer, GOOD + BAD, 16)
    task = Documents(texts, torch.tensor([0] * 4 + [2] * 4))
    if tags:
        task = Positions(texts, [[IGNORED, *(i % 4 for i in row[1:])] for row in texts.ids])
    settings = recipe.training.model_copy(update={"max_epochs": 2, "batch_size": 4, "learning_rate": 1e-3, **changes})
    return Trainer(model, task, task, settings, seed=3)


@pytest.fixture
def bfloat16_works():
    if problem := precision.cpu_problem_with_bfloat16():
        pytest.skip(problem)


@pytest.mark.usefixtures("bfloat16_works")
def test_only_the_encoder_and_only_training_steps_run_in_bfloat16():
    run = trainer(dtype="bfloat16")
    types = []
    layer = run.model.backbone.encoder.encoder.layer[0].intermediate.dense
    layer.register_forward_hook(lambda _, __, out: types.append((run.model.training, out.dtype)))
    scores = run.run()
    assert set(types) == {(True, torch.bfloat16), (False, torch.float32)}
    assert scores.ce < 2
    assert {weight.dtype for weight in run.model.parameters()} == {torch.float32}


@pytest.mark.usefixtures("bfloat16_works")
def test_a_run_in_bfloat16_goes_on_from_its_checkpoint_bit_for_bit():
    first, second = trainer(dtype="bfloat16"), trainer(dtype="bfloat16")
    first.prepare()
    first._finish_epoch()
    first._validate()
    state = copy.deepcopy(first.state_dict())
    first.run()
    second.load_state_dict(state)
    second.run()
    ours, theirs = first.model.state_dict(), second.model.state_dict()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


def test_single_precision_is_the_default_and_asks_no_processor(monkeypatch):
    monkeypatch.setattr(precision, "cpu_problem_with_bfloat16", lambda: pytest.fail("asked"))
    assert trainer().settings.dtype == "float32"


def test_a_processor_on_which_the_trial_fails_is_refused_before_the_first_step(monkeypatch):
    ended = subprocess.CompletedProcess([], returncode=-4)
    monkeypatch.setattr(precision.subprocess, "run", lambda *_, **__: ended)
    precision.cpu_problem_with_bfloat16.cache_clear()
    try:
        with pytest.raises(
            ValueError, match=r"training\.dtype .* cannot multiply .*-4.*; set training\.dtype to float32"
        ):
            trainer(dtype="bfloat16")
    finally:
        precision.cpu_problem_with_bfloat16.cache_clear()


def test_settings_carry_the_type_and_refuse_another():
    config = parse_config("training: {dtype: bfloat16}")
    assert config.model_dump(mode="json")["training"]["dtype"] == "bfloat16"
    assert parse_config("").training.dtype == "float32"
    with pytest.raises(ValueError, match=r"training\.dtype is 'float16'.*'float32' or 'bfloat16'"):
        parse_config("training: {dtype: float16}")


def test_an_automatic_batch_size_serves_taggers_too():
    run = trainer(tags=True, batch_size=None, max_epochs=10)
    run.run()
    assert run.steps.micro.size == 32
    assert run.step == run.max_epochs
    assert parse_config("training: {batch_size: null, gradient_accumulation_steps: 2}").training.effective_batch == 64
