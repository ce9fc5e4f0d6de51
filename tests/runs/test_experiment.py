import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from lexical_sae.config.load import build_config
from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.intervene import attached_frequencies, model_table
from lexical_sae.mechanistic.attribution import worst_gap
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.report.terminal import constraint_rows
from lexical_sae.runs import folder as run_folder
from lexical_sae.runs import require_same_labels, run_experiment, score
from lexical_sae.runs.inputs import load_data
from lexical_sae.runs.joining import joined_texts
from lexical_sae.runs.seeds import Watchers
from lexical_sae.training.stopping import Interrupted
from tests import tiny
from tests.evaluation.corpora import TEXTS
from tests.runs.experiments import tiny_settings
from tests.training.tensorboard import drawn, installed

SPLIT = TextSplit(tuple(f"{text} {i}" for i in range(30) for text in TEXTS[:5]), (0, 1, 2) * 50)


@pytest.fixture
def settings(tmp_path):
    return {**tiny_settings(tmp_path), "evaluation": {"after_training": False}}


@pytest.mark.parametrize("parts", [{"pool": "max"}, {"pool": "attention"}, {"head": "bcos"}], ids=str)
def test_scores_are_those_of_each_text_on_its_own(parts):
    model = tiny.model(ModelConfig.model_validate({"gate": "drelu", **parts}))
    split = TextSplit(SPLIT.texts[:30], SPLIT.labels[:30])
    ids = [torch.tensor([model.tokenizer(text)["input_ids"]]) for text in split.texts]
    with torch.no_grad():
        states = [model.classify_document(row, torch.ones_like(row)) for row in ids]
    is_right = [int(state.logits.argmax()) == gold for state, gold in zip(states, split.labels, strict=True)]
    found = score(model, split, batch_size=7)
    assert list(found.is_correct) == is_right
    assert found.accuracy == sum(is_right) / 30
    assert found.active_words == sum(int((state.sparse_vector > 0).sum()) for state in states) / 30
    assert found.majority == 1 / 3
    assert found.identity_error < 1e-5
    assert "is_correct" not in found.as_dict()


def test_a_broken_model_does_not_pass_as_exact():
    model = tiny.model(ModelConfig.model_validate({"gate": "drelu"}))
    with torch.no_grad():
        model.head().class_bias[1] = torch.nan
    with pytest.raises(FloatingPointError, match="weights are damaged"):
        score(model, SPLIT)
    assert math.isnan(worst_gap(math.nan, 0.5))
    assert worst_gap(0.1, 0.5) == 0.5


def test_data_with_other_labels_than_the_model_are_refused():
    model = tiny.model()
    named = TextDataset("reviews", tuple(model.labels["classify"]), SPLIT, SPLIT, SPLIT)
    require_same_labels(model, named)
    with pytest.raises(ValueError, match=r"labels of reviews are good, bad.*restore it, or train again"):
        require_same_labels(model, replace(named, label_names=("good", "bad")))


def test_what_is_counted_does_not_depend_on_the_batch_size():
    counts = {score(tiny.model(), SPLIT, batch_size=size).active_words for size in (8, 32, 128)}
    assert len(counts) == 1
    assert counts.pop() > 1


def test_a_run_that_cannot_keep_its_cross_entropy_says_so(settings, tmp_path):
    training = {**settings["training"], "controller": {"kind": "relative_geco", "tau_ce": 1e-6}}
    settings = {**settings, "recipe": "neighbours", "training": training}
    config = build_config({**settings, "output_dir": str(tmp_path / "run")})
    results = run_experiment(config, device="cpu")
    ((_, value, why),) = constraint_rows(results)
    assert value == "no"
    assert results["lambda"] > 1
    assert f"lambda ended at {results['lambda']:.3g}" in why


def test_a_run_names_the_words_that_its_training_texts_have_cut(settings, tmp_path):
    rows = (tmp_path / "reviews.csv").read_text().replace("good film", "good filming").replace("bad film", "badly film")
    (tmp_path / "reviews.csv").write_text(rows)
    settings = {**settings, "recipe": "neighbours", "output_dir": str(tmp_path / "run")}
    run_experiment(build_config(settings), device="cpu")
    model = LexicalSAE.from_pretrained(tmp_path / "run" / "model")
    assert set(model.config.neighbourhood.cut_words) == {"filming", "badly"}


def test_a_model_with_literal_words_is_saved_with_the_training_texts_of_each_word(settings, tmp_path):
    config = build_config({**settings, "recipe": "anchored", "output_dir": str(tmp_path / "run")})
    run_experiment(config, device="cpu")
    counts = attached_frequencies(tmp_path / "run" / "model")
    data = load_data(config, 0)
    with_context = LexicalSAE.from_pretrained(tmp_path / "run" / "model").asks_encoder
    # A table that is the model on its own learned from validation texts too, but for those it knew.
    learned = data.train if with_context else joined_texts(data)
    assert counts["film"] == sum("film" in text.split() for text in learned.texts) > 0
    rows = model_table(LexicalSAE.from_pretrained(tmp_path / "run" / "model"), counts).rows
    assert any(row.texts for row in rows)
    assert all(row.texts == counts.get(row.word) for row in rows)


def test_an_interrupted_run_takes_and_draws_what_an_uninterrupted_one_does(settings, tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(run_folder, "time", clock)
    installed(monkeypatch)
    seen = []

    def on_step(step):
        clock.now += 1
        seen.append(step)

    def train(name, stop_at=None, **how):
        seen.clear()
        # Every step of this recipe is one of training, where an interruption is seen.
        reported = {"training": {**settings.get("training", {}), "report_to": ["tensorboard"]}}
        config = build_config({**settings, "recipe": "neighbours", "output_dir": str(tmp_path / name), **reported})
        watchers = Watchers(on_step=on_step, is_interrupted=lambda: len(seen) == stop_at)
        results = run_experiment(config, device="cpu", watchers=watchers, **how)
        # Memory is that of a process, and of the last part of a run.
        assert results.pop("peak_megabytes") is None or sys.platform == "linux"
        return results

    whole = train("whole")
    for stop_at in (3, 7):
        name = f"stopped at {stop_at}"
        with pytest.raises(Interrupted):
            train(name, stop_at)
        assert train(name, resume=True) == whole
        assert drawn(tmp_path / name / "tensorboard") == drawn(tmp_path / "whole" / "tensorboard")
    # Calibrating takes two steps, and testing one.
    assert whole["seconds"] == len(drawn(tmp_path / "whole" / "tensorboard")["training/ce"]) + 3
