"""`score --dtype`: the encoder alone in bfloat16, and what that changes."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from lexical_sae.cli import app
from lexical_sae.explanation import WordContribution
from lexical_sae.inference import explain
from lexical_sae.models.persistence import saved_sha256
from lexical_sae.scale import precision_effect
from lexical_sae.scale.inputs import Columns, find_inputs
from lexical_sae.scale.parts import parts_of
from lexical_sae.scale.precision_effect import PrecisionEffect
from lexical_sae.scale.schema import read_about
from lexical_sae.scale.scorer import Scorer, ScoreSettings
from lexical_sae.utils import precision
from lexical_sae.utils.errors import SettingsError
from tests.literal import TEXTS, literal_model


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return str(literal_model().save_pretrained(tmp_path_factory.mktemp("saved") / "model"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.csv"
    path.write_text("text\n" + "\n".join(f'"{text}"' for text in TEXTS))
    return str(path)


@pytest.fixture
def bfloat16_works():
    if problem := precision.cpu_problem_with_bfloat16():
        pytest.skip(problem)


@pytest.mark.usefixtures("bfloat16_works")
def test_only_the_encoder_computes_in_bfloat16_and_the_sums_stay_exact(saved, texts, tmp_path):
    columns = Columns(text="text")
    settings = ScoreSettings(model=saved_sha256(saved), columns=columns, dtype="bfloat16")
    scorer, types = Scorer(saved, settings, str(tmp_path)), set()
    model = scorer.model
    linear = next(part for part in model.backbone.encoder.modules() if isinstance(part, nn.Linear))
    linear.register_forward_hook(lambda _part, _given, made: types.add(made.dtype))
    model.context.register_forward_hook(lambda _part, given, made: types.add((given[0].dtype, made.factor.dtype)))
    (tmp_path / ".work").mkdir()
    (part,) = parts_of(find_inputs([texts])[0], columns, 100)
    scorer(part)
    assert types == {torch.bfloat16, (torch.float32, torch.float32)}
    (written,) = tmp_path.glob("part-*.parquet")
    assert read_about(written).dtype == "bfloat16"
    for row in pq.read_table(written).to_pylist():
        total = row["bias"] + row["rest"] + sum(word["contribution"] for word in row["words"])
        assert total == pytest.approx(row["explained"], abs=1e-5)


@pytest.mark.usefixtures("bfloat16_works")
def test_the_command_says_what_bfloat16_changes(saved, texts, tmp_path):
    arguments = ["score", saved, texts, "--out", str(tmp_path / "out"), "--workers", "1", "--dtype", "bfloat16"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "bfloat16 against float32, on the first 5 texts" in " ".join(shown.output.split())


def test_one_precision_changes_nothing_against_itself():
    effect = PrecisionEffect.of(literal_model(), TEXTS, "float32", batch_size=2)
    assert effect[:4] == ("float32", len(TEXTS), 0, 0)
    assert effect.shifts
    assert (effect.moved, effect.usual, effect.largest) == (0, 0.0, 0.0)


def test_changes_are_counted(monkeypatch):
    (why,) = explain(literal_model(), TEXTS[:1])

    def with_words(label, **contributions):
        words = [WordContribution(name, "word", 1.0, value, default=1.0) for name, value in contributions.items()]
        return replace(why, label=label, words=tuple(words))

    exact = [with_words("a", film=1.0, good=2.0, plot=3.0), with_words("a", film=1.0), with_words("b", film=9.0)]
    other = [with_words("a", film=1.75, good=2.125, plot=3.5), with_words("a"), with_words("b", film=9.0)]
    exact.append(with_words("a", film=1.0))
    other.append(with_words("b", film=5.0))
    found = {"float32": (exact, 30.0), "bfloat16": (other, 10.0)}
    monkeypatch.setattr(precision_effect, "_explained", lambda _model, _texts, dtype, _size: found[dtype])
    effect = PrecisionEffect.of(literal_model(), [""] * 4, "bfloat16")
    # Shifted: film of the first text in bfloat16 alone, good, plot, and film of the third.
    assert effect == PrecisionEffect("bfloat16", 4, 1, 1, 4, 1, 0.125, 0.5, 3.0)


def test_what_cannot_be_is_refused(saved, texts, tmp_path, monkeypatch):
    arguments = ["score", saved, texts, "--out", str(tmp_path / "out"), "--dtype"]
    with pytest.raises(SettingsError, match="--dtype 'float16' is unknown"):
        CliRunner().invoke(app, [*arguments, "float16"], catch_exceptions=False)
    with pytest.raises(SettingsError, match="leave --dtype out"):
        PrecisionEffect.of(literal_model(context=None), TEXTS, "bfloat16")
    monkeypatch.setattr(precision, "cpu_problem_with_bfloat16", lambda: "it has none")
    with pytest.raises(SettingsError, match="--dtype is 'bfloat16', but it has none; set --dtype to float32"):
        CliRunner().invoke(app, [*arguments, "bfloat16"], catch_exceptions=False)
    assert not (tmp_path / "out").exists()
