"""Trained models from settings and rows, scored on nothing: what the command line and the Python estimators share.

Without a folder nothing is written to disk.
"""

from collections.abc import Sequence
from dataclasses import replace

from lexical_sae.data import TaggedDataset, TextDataset
from lexical_sae.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from lexical_sae.outputs import OUTPUTS
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.runs.calibrating import calibrate, tuned_output
from lexical_sae.runs.folder import RunFolder
from lexical_sae.runs.inputs import documents, training_documents, unlabelled_texts
from lexical_sae.runs.joining import fitted_again, joined_texts
from lexical_sae.runs.planning import within_minutes
from lexical_sae.runs.seeds import Fitted, Watchers, fit
from lexical_sae.runs.weighting import with_class_weights
from lexical_sae.training.table_choice import FEW_TEXTS
from lexical_sae.training.tasks import BothTasks, Task, positions
from lexical_sae.utils.device import resolve_device, set_seed
from lexical_sae.utils.errors import SettingsError


def train_model(
    settings: Recipe,
    dataset: TextDataset,
    *,
    seed: int,
    device: str = "auto",
    watchers: Watchers = Watchers(),
    folder: RunFolder | None = None,
) -> tuple[LexicalSAE, Fitted]:
    """A classifier with the best weights of its training, calibrated, and how training ended.

    Args:
        settings: Model and training; `training.minutes` may have it use fewer rows (`within_minutes`).
        dataset: Training and validation rows; its test rows are not read.
        seed: Of everything random.
        device: auto, cpu, cuda or mps.
        watchers: Get progress, and say when to stop.
        folder: Gets history and checkpoints; training resumes from a checkpoint that it holds.
    """
    settings, dataset = within_minutes(settings, dataset, seed=seed, device=device, folder=folder, watchers=watchers)
    dataset = with_class_weights(dataset, settings.training.class_weight)
    set_seed(seed)
    labels = {CLASSIFY: dataset.label_names}
    output = OUTPUTS[dataset.output].fitted(dataset.train.labels)
    unlabelled = unlabelled_texts(dataset, settings)
    texts = (*dataset.train.texts, *(unlabelled.texts if unlabelled else ()))
    model = LexicalSAE.from_backbone(settings.model, labels, texts, output).to(resolve_device(device))
    train = training_documents(model, dataset, settings.training.negations, seed)
    train = replace(train, unlabelled=unlabelled)
    fitted = fit(model, train, documents(model, dataset.validation), settings.training, seed, folder, watchers)
    model.output = tuned_output(model, dataset)
    model.calibration = calibrate(model, dataset, on_step=watchers.on_step)
    if model.literal is None or model.asks_encoder or len(dataset.train) >= FEW_TEXTS:
        return model, fitted
    joined = joined_texts(dataset)
    model = fitted_again(model, settings.model, joined, unlabelled, seed, watchers)
    return model, fitted._replace(joined=joined)


def train_tagger(
    settings: Recipe,
    dataset: TaggedDataset,
    texts: TextDataset | None = None,
    *,
    seed: int,
    device: str = "auto",
    watchers: Watchers = Watchers(),
    folder: RunFolder | None = None,
) -> tuple[LexicalSAE, Fitted]:
    """The same for a tagger, or with `texts` for a model that tags words and classifies texts."""
    if settings.training.minutes is not None:
        raise SettingsError("training.minutes is kept for classifiers only; leave it out, or set training.max_epochs")
    if settings.training.class_weight is not None:
        raise SettingsError("training.class_weight is for classifiers; leave it out where words are tagged")
    set_seed(seed)
    model = _new_tagger(settings, dataset, texts).to(resolve_device(device))
    train, validation = _tasks(model, dataset, texts)
    return model, fit(model, train, validation, settings.training, seed, folder, watchers)


def _new_tagger(settings: Recipe, dataset: TaggedDataset, texts: TextDataset | None) -> LexicalSAE:
    """An untrained tagger, or a tagger and classifier with the same labels."""
    sentences = [" ".join(words) for words in dataset.train.tokens]
    if texts is None:
        return LexicalSAE.from_backbone(settings.model, {TAG: dataset.tag_names}, sentences)
    labels = {CLASSIFY: texts.label_names, TAG: dataset.tag_names}
    # Sentences that are documents too are not to count twice where words are counted.
    return LexicalSAE.from_backbone(settings.model, labels, list(dict.fromkeys([*sentences, *texts.train.texts])))


def _tasks(model: LexicalSAE, dataset: TaggedDataset, texts: TextDataset | None) -> Sequence[Task]:
    """What to learn from, and to validate on."""
    tagged = [
        positions(model.tokenizer, split, dataset.tag_names, model.max_length, model.shapes)[0]
        for split in (dataset.train, dataset.validation)
    ]
    if texts is None:
        return tagged
    splits = (texts.train, texts.validation)
    return [BothTasks(documents(model, split), own) for split, own in zip(splits, tagged, strict=True)]
