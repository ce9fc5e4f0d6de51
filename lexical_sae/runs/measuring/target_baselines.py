"""Baselines of a run whose texts have any number of labels, or a number, in `baselines.json`: on the first seed's rows.

Each is compared with the model by the figures of the output kind, on the same resamples of the test texts.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lexical_sae.data import TextDataset
from lexical_sae.inference.reading import answers
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.outputs import Scored
from lexical_sae.outputs.figures import paired
from lexical_sae.runs.folder import BASELINES, write_json
from lexical_sae.runs.inputs import digest
from lexical_sae.runs.run import Run
from lexical_sae.training.baselines.frozen import FrozenEncoder
from lexical_sae.training.baselines.targets import TargetBaseline, frozen_targets, tfidf_targets
from lexical_sae.utils.cost import with_cost
from lexical_sae.utils.progress import OnStep, silent

BATCH = 32


def target_baselines(run: Run, *, on_step: OnStep = silent) -> dict[str, Any]:
    """TF-IDF and the frozen encoder beside the model of a run's first seed, written to `baselines.json`.

    What the folder holds for the same rows stays.
    """
    run = run.first
    model, dataset = run.model_and_data()
    rows = {"test_digest": digest(dataset.test), "train_digest": digest(dataset.train)}
    saved = run.baselines
    if isinstance(saved, Mapping) and all(saved.get(key) == value for key, value in rows.items()):
        return dict(saved)
    output, names = model.output, dataset.label_names
    assert isinstance(output, Scored), "classes have baselines of their own"
    settings = run.config.model
    encoder = FrozenEncoder(settings.name, settings.max_length, settings.windows_read, run.device)
    frozen = partial(frozen_targets, dataset, encoder)
    measured = [with_cost(partial(work, on_step=on_step)) for work in (partial(tfidf_targets, dataset), frozen)]
    logits = logits_of(model, dataset)
    gold = dataset.test.labels
    found = {
        **rows,
        "output": output.kind,
        "keys": list(output.keys),
        "test_texts": len(dataset.test),
        "model": {"folder": str(run.model_folder), **output.figures(logits, gold, names).as_dict()},
        "baselines": {
            one.name: {"setting": one.setting, **one.output.figures(one.logits, gold, names).as_dict(), **cost}
            for one, cost in measured
        },
        "difference": {one.name: _difference(output, logits, one, dataset) for one, _ in measured},
    }
    write_json(run.folder / BASELINES, found)
    return found


@torch.no_grad()
def logits_of(model: LexicalSAE, dataset: TextDataset) -> Float[Tensor, "T C"]:
    """The logits of the test texts."""
    rows = list(answers(model, dataset.test.texts, BATCH, lambda read: list(read.state.logits.float().cpu())))
    return torch.stack(rows) if rows else torch.zeros(0, len(model.labels[CLASSIFY]))


def _difference(
    output: Scored, logits: Float[Tensor, "T C"], other: TargetBaseline, dataset: TextDataset
) -> dict[str, Any]:
    """The model minus a baseline, by figure."""
    gold = dataset.test.labels
    measures = output.measure(logits, gold), other.output.measure(other.logits, gold)
    found = paired(*measures, len(gold), output.keys)
    return {key: dict(zip(("mean", "low", "high"), values, strict=True)) for key, values in found.items()}
