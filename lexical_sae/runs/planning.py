"""`training.minutes` made into settings and rows: a rehearsal is timed, and what fits is chosen, once per run.

The choice hangs on a clock, so it is kept in the run's folder (`plan.json`): a resumed run goes on with the same.
"""

import json
import time
from dataclasses import replace
from typing import TypeVar

import numpy as np

from lexical_sae.data import TextDataset
from lexical_sae.data.batches import tokenize
from lexical_sae.data.polarity import positive_class
from lexical_sae.data.sampling import stratified_subsample
from lexical_sae.models.long_texts import longest_text, window_of
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.runs.folder import PLAN, RunFolder
from lexical_sae.runs.seeds import Watchers
from lexical_sae.training.preparation.time_plan import (
    Clock,
    Cost,
    TimePlan,
    encoder_cost,
    fitting_plan,
    number_of_layers,
)
from lexical_sae.training.processes import current
from lexical_sae.utils.device import resolve_device
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.precision import encoder_precision, require_encoder_type

Settings = TypeVar("Settings", bound=Recipe)


def within_minutes(
    settings: Settings,
    dataset: TextDataset,
    *,
    seed: int,
    device: str = "auto",
    folder: RunFolder | None = None,
    watchers: Watchers = Watchers(),
    clock: Clock = time.perf_counter,
) -> tuple[Settings, TextDataset]:
    """Settings and rows that take about `training.minutes`; both as they are without such a wish.

    Args:
        settings: Model and training.
        dataset: Its training rows may become fewer, the classes in proportion; the others stay.
        seed: Of what is sampled.
        device: Where the rehearsal runs.
        folder: Keeps the plan; one that it holds is taken.
        watchers: Are told what was chosen.
        clock: What tells seconds.
    """
    minutes = settings.training.minutes
    if minutes is None:
        return settings, dataset
    if settings.model.literal is None or settings.model.context is None:
        raise SettingsError(
            f"training.minutes is {minutes:g}, but it is kept by the recipe anchored, with context, only; leave it "
            "out (a table alone takes about a minute), or set training.max_epochs and data.train_samples instead"
        )
    path = folder and folder.path / PLAN
    saved = json.loads(path.read_text(encoding="utf-8")) if path and path.is_file() else None
    if saved is None and current().is_first:
        saved = _planned(minutes, settings, dataset, seed, device, clock).as_dict()
    plan = TimePlan.of(current().from_first(saved) or {})
    if folder and current().is_first:
        folder.write_json(PLAN, plan.as_dict())
    watchers.on_note(str(plan))
    chosen = plan.chosen
    changes = {"minutes": None, "max_epochs": chosen.passes, "frozen_layers": chosen.frozen_layers}
    training = settings.training.model_copy(update=changes)
    if chosen.rows < len(dataset.train):
        rows = stratified_subsample(dataset.train.strata(), chosen.rows, np.random.default_rng([seed, len(PLAN)]))
        dataset = replace(dataset, train=dataset.train.take(rows))
    return settings.model_copy(update={"training": training}), dataset


def _planned(minutes: float, settings: Recipe, dataset: TextDataset, seed: int, device: str, clock: Clock) -> TimePlan:
    training, rows = settings.training, len(dataset.train)
    backbone = load_backbone(settings.model.name, reads_logits=False).to(resolve_device(device))
    texts = tokenize(backbone.tokenizer, dataset.train.texts, window_of(settings.model, backbone))
    # The rehearsal reads one window of each. A long text is read whole for the table, and in parts in each pass.
    whole = tokenize(backbone.tokenizer, dataset.train.texts, longest_text(settings.model, backbone))
    windows = np.array([len(ids) / len(first) for ids, first in zip(whole.ids, texts.ids, strict=True)])
    on = next(backbone.parameters()).device
    require_encoder_type(training.dtype, on)
    with encoder_precision(training.dtype, on):
        cost = encoder_cost(backbone, texts, seed, clock)
    cost = Cost(
        cost.reading * windows.mean(), cost.learning * windows.clip(max=training.windows_per_text or np.inf).mean()
    )
    # Sentences made by rule are texts too.
    is_sentiment = dataset.output == "classes" and positive_class(dataset.label_names) is not None
    made = training.negations if is_sentiment else 0.0
    masked = 0.0 if training.independence is None else training.independence.share
    full = (rows, training.planned_epochs(rows), training.frozen_layers)
    return fitting_plan(minutes, cost.times(1 + made), full, number_of_layers(backbone), masked)
