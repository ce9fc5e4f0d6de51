"""A run within minutes: what gives way, in which order, and that the choice is kept."""

import itertools
import json

import pytest

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.data.batches import tokenize
from lexical_sae.runs.planning import within_minutes
from lexical_sae.runs.seeds import Watchers
from lexical_sae.training.preparation.time_plan import BUDGET_SHARE, Cost, TimePlan, encoder_cost, fitting_plan
from lexical_sae.utils.errors import SettingsError
from tests import tiny

COST = Cost(reading=0.01, learning=0.03)
FULL = (60_000, 3, 0)


def plan(minutes, full=FULL, layers=12, masked=0.0):
    return fitting_plan(minutes, COST, full, layers, masked)


def test_seconds_are_one_reading_and_the_learning_layers_in_every_pass():
    assert COST.seconds(100, 2, frozen=0.0, masked=0.0) == pytest.approx(100 * (0.01 + 2 * 0.03))
    assert COST.seconds(100, 2, frozen=0.5, masked=0.0) == pytest.approx(100 * (0.01 + 2 * 0.015))
    # A masked text goes through the frozen half without gradients, and through the other with.
    assert COST.seconds(100, 1, frozen=0.5, masked=0.1) == pytest.approx(100 * (0.01 + 0.015 + 0.1 * 0.02))


def test_passes_give_way_first_then_lower_layers_then_rows():
    asked = [200.0, 85.0, 50.0, 30.0, 10.0]
    found = [plan(minutes).chosen for minutes in asked]
    assert [(p.rows, p.passes, p.frozen_layers) for p in found[:2]] == [(60_000, 3, 0), (60_000, 2, 0)]
    assert (found[2].rows, found[2].passes, found[2].frozen_layers) == (60_000, 1, 0)
    assert (found[3].rows, found[3].passes) == (60_000, 1)
    assert 0 < found[3].frozen_layers < 8
    assert (found[4].passes, found[4].frozen_layers) == (1, 8)
    assert found[4].rows < 60_000


@pytest.mark.parametrize("minutes", [0.5, 3.0, 10.0, 31.7, 60.0, 1000.0])
def test_a_plan_fits_and_costs_what_it_says(minutes):
    chosen = plan(minutes, masked=0.125).chosen
    assert chosen.seconds <= 60 * minutes * BUDGET_SHARE
    assert chosen.seconds == COST.seconds(chosen.rows, chosen.passes, chosen.frozen_layers / 12, 0.125)


def test_layers_that_are_frozen_by_wish_stay_frozen_and_one_layer_is_never_frozen():
    assert plan(1000.0, full=(60_000, 1, 9)).chosen.frozen_layers == 9
    assert plan(3.0, full=(60_000, 1, 9)).chosen.frozen_layers == 9
    assert plan(3.0, layers=1).chosen.frozen_layers == 0


def test_minutes_for_a_handful_of_rows_are_refused():
    with pytest.raises(SettingsError, match="enough for .* rows with this encoder"):
        plan(0.1)
    # Few rows are a small set, not too little time.
    assert plan(1.0, full=(80, 2, 0)).chosen.rows == 80


def test_it_says_what_was_chosen_and_what_everything_would_cost():
    said = str(plan(10.0))
    assert said.startswith("training.minutes: 10 gives ")
    assert "of 60,000 rows, 1 of 3 passes, the lower 8 of 12 layers frozen: about 8.5 minutes" in said
    assert said.endswith("everything would take about 1.7 hours")
    assert str(plan(500.0)) == "training.minutes: 500 is enough for everything, about 1.7 hours"


def test_a_plan_is_plain_data_and_back():
    made = plan(10.0)
    assert TimePlan.of(json.loads(json.dumps(made.as_dict()))) == made


def test_the_rehearsal_times_reading_and_learning_apart_and_leaves_no_trace():
    backbone = tiny.backbone()
    texts = tokenize(backbone.tokenizer, tiny.CORPUS, 32)
    before = {name: part.clone() for name, part in backbone.state_dict().items()}
    ticks = iter([0.0, 3.2, 10.0, 19.6])
    cost = encoder_cost(backbone, texts, clock=lambda: next(ticks))
    assert (cost.reading, cost.learning) == pytest.approx((3.2 / 32, 9.6 / 32))
    assert all(part.equal(before[name]) for name, part in backbone.state_dict().items())
    assert all(parameter.grad is None for parameter in backbone.parameters())


def dataset(rows=2000):
    pairs = itertools.islice(
        itertools.cycle([(text, 1) for text in tiny.GOOD] + [(text, 0) for text in tiny.BAD]), rows
    )
    texts, labels = zip(*pairs, strict=True)
    other = TextSplit(tuple(tiny.GOOD), (1,) * len(tiny.GOOD))
    return TextDataset("made", ("bad", "good"), TextSplit(texts, labels), other, other, ())


@pytest.fixture
def settings(tmp_path):
    from lexical_sae.recipes import recipe_by_name

    recipe = recipe_by_name("anchored")
    folder = str(tiny.saved_encoder(tmp_path / "encoder"))
    return recipe.model_copy(
        update={
            "model": recipe.model.model_copy(update={"name": folder}),
            "training": recipe.training.model_copy(update={"minutes": 1.0}),
        }
    )


def test_the_wish_becomes_settings_and_rows_and_is_told(settings):
    told = []
    slow = itertools.count(0.0, 64 * 0.02)
    given = dataset()
    kept, fewer = within_minutes(settings, given, seed=0, watchers=Watchers(on_note=told.append), clock=slow.__next__)
    assert kept.training.minutes is None
    assert kept.training.max_epochs == 1
    assert kept.training.frozen_layers == 1
    assert len(fewer.train) < 2000
    assert fewer.train.labels.count(1) == pytest.approx(len(fewer.train) / 2, abs=1)
    assert (fewer.validation, fewer.test) == (given.validation, given.test)
    assert len(told) == 1
    assert "would take about" in told[0]


def test_a_plan_in_the_folder_is_taken_whatever_the_clock_says(settings, tmp_path):
    from lexical_sae.runs.folder import PLAN, RunFolder

    with RunFolder.open(tmp_path / "run", {}) as folder:
        first = within_minutes(settings, dataset(), seed=0, folder=folder, clock=itertools.count(0.0, 1.28).__next__)
        assert TimePlan.of(json.loads((folder.path / PLAN).read_text())).chosen.rows == len(first[1].train)
        again = within_minutes(settings, dataset(), seed=0, folder=folder, clock=lambda: pytest.fail("asked the clock"))
    assert again == first


def test_without_a_wish_nothing_changes_and_other_recipes_are_refused(settings):
    given = dataset(8)
    free = settings.model_copy(update={"training": settings.training.model_copy(update={"minutes": None})})
    assert within_minutes(free, given, seed=0) == (free, given)
    table = settings.model_copy(update={"model": settings.model.model_copy(update={"context": None})})
    with pytest.raises(SettingsError, match="recipe anchored"):
        within_minutes(table, given, seed=0)
