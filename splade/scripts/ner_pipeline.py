"""From an experiment's settings to trained, measured taggers, one per seed; the loop is that of classifiers.

1. Sentences are read, aligned to tokens and, where the settings ask for it, described by shape features.
2. `Trainer` trains on positions, with the official validation split where there is one; with `data.documents` on whole
   texts too, which the same model classifies.
3. The best weights tag the test split; scores, curve and lexicons go to `results.json`.
4. When all seeds are done, the saved models' explanations are tested (`evaluation.json`). By then the runs are safe.
5. `report.html` is written from what is there.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.data import TaggedDataset, TextDataset
from splade.device import resolve_device, set_seed
from splade.evaluation.arena.cost import with_cost
from splade.evaluation.entities import score_entities
from splade.evaluation.intervals import paired_bootstrap
from splade.evaluation.ner import TaggerScores, score_tagger
from splade.evaluation.ner_lexicon import entity_lexicons
from splade.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from splade.models.persistence import from_pretrained, save_pretrained
from splade.pipelines.inputs import documents, require_same_experiment
from splade.pipelines.scoring import Scores, score
from splade.progress import OnStep, silent
from splade.runs import Watchers, fit, run_seeds
from splade.scripts.ner_documents import load_documents
from splade.scripts.ner_evaluation import evaluate_taggers
from splade.scripts.ner_report import (
    LEXICON_SENTENCES,
    TWIN,
    folder_of_run,
    load_sentences,
    write_tagging_report,
)
from splade.training.dense_tagger import dense_tagger_twin
from splade.training.fine_tuning import DENSE_RATES
from splade.training.run_folder import BASELINES, EVALUATION, MODEL, RunFolder, write_json
from splade.training.stopping import EpochScores
from splade.training.tagging import positions
from splade.training.tasks import BothTasks, Task


@dataclass(frozen=True)
class TrainedTagger:
    """A trained tagger with the data it came from and its scores."""

    model: LexicalSAE
    dataset: TaggedDataset
    scores: TaggerScores
    """On the test split."""
    validation: EpochScores
    """Of the epoch that was kept."""
    tau_ce: float | None
    multiplier: float
    seed: int
    seconds: float
    """To train, and to tag the test split."""
    documents: Scores | None = None
    """On the test texts, of a model that classifies too."""


def run_ner(
    config: ExperimentConfig, *, resume: bool = False, device: str = "auto", watchers: Watchers = Watchers()
) -> dict[str, Any]:
    """Train a tagger with every seed and return what `results.json` of `output_dir` then says (`run_seeds`).

    Then every seed's explanations are tested (`evaluate_taggers`), unless `evaluation.after_training` is off.
    """

    def run_seed(seed: int, folder: RunFolder) -> dict[str, Any]:
        run = setup_and_train_tagger(config, device, watchers, seed=seed, folder=folder)
        save_pretrained(run.model, folder.model)
        # That of before would be of a model which is gone.
        (folder.path / EVALUATION).unlink(missing_ok=True)
        sentences = run.dataset.test.tokens[:LEXICON_SENTENCES]
        lexicons = entity_lexicons(run.model, sentences, on_step=watchers.on_step)
        return {
            "experiment_name": config.experiment_name,
            "seed": seed,
            "seconds": round(run.seconds, 1),
            "tau_ce": run.tau_ce,
            "lambda": run.multiplier,
            "tags": list(run.dataset.tag_names),
            "test": run.scores.as_dict(),
            **({} if run.documents is None else {"documents": run.documents.as_dict()}),
            "validation": asdict(run.validation),
            "lexicons": [asdict(lexicon) for lexicon in lexicons],
        }

    figures = ("f1", "token_accuracy", "active_words", "identity_error")
    results = run_seeds(config, run_seed, figures, resume=resume, watchers=watchers)
    if config.evaluation.after_training:
        evaluate_taggers(config, device, watchers)
    _leave_report(Path(config.output_dir), watchers)
    return results


def _leave_report(run: Path, watchers: Watchers) -> None:
    """Write the run's page. The run is safe by now, so whatever goes wrong here is told and no more."""
    try:
        write_tagging_report(run, on_step=watchers.on_step)
    except Exception as error:
        told = f"the run is complete, but its report could not be written ({type(error).__name__}: {error})"
        watchers.on_note(f"{told}; write it again with: lexical-sae report {run}")


def setup_and_train_tagger(
    config: ExperimentConfig,
    device: str = "auto",
    watchers: Watchers = Watchers(),
    *,
    seed: int | None = None,
    folder: RunFolder | None = None,
) -> TrainedTagger:
    """Load the sentences, build the model, train it, and tag the test split; see `pipelines.setup_and_train`."""
    started = time.monotonic()
    seed = config.evaluation.seeds[0] if seed is None else seed
    dataset = load_sentences(config, seed)
    texts = load_documents(config, dataset, seed)
    for note in (*dataset.notes, *(texts.notes if texts else ())):
        watchers.on_note(note)
    set_seed(seed)
    model = _new_model(config, dataset, texts).to(resolve_device(device))
    train, validation = _tasks(model, dataset, texts)
    fitted = fit(model, train, validation, config.training, seed, folder, watchers)
    scores = score_tagger(model, dataset.test, on_step=watchers.on_step)
    seconds = folder.seconds if folder else time.monotonic() - started
    on_texts = score(model, texts.test, watchers.on_step) if texts else None
    return TrainedTagger(model, dataset, scores, *fitted, seed, seconds, on_texts)


def _new_model(config: ExperimentConfig, dataset: TaggedDataset, texts: TextDataset | None) -> LexicalSAE:
    """An untrained tagger, or a tagger and classifier with the same labels."""
    sentences = [" ".join(words) for words in dataset.train.tokens]
    if texts is None:
        return LexicalSAE.from_backbone(config.model, {TAG: dataset.tag_names}, sentences)
    labels = {CLASSIFY: texts.label_names, TAG: dataset.tag_names}
    # Sentences that are documents too are not to count twice where words are counted.
    return LexicalSAE.from_backbone(config.model, labels, list(dict.fromkeys([*sentences, *texts.train.texts])))


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


def run_dense_tagger(
    config: ExperimentConfig,
    device: str = "auto",
    *,
    rates: Sequence[float] = DENSE_RATES,
    on_step: OnStep = silent,
) -> dict[str, Any]:
    """The dense twin on the experiment's sentences, beside the experiment's model where there is one.

    Written to `baselines.json`. The difference is of sentences in which every entity is right, paired. A model that was
    trained with other data or settings is refused, before anything is trained: it may have learned from the test split.
    """
    run = folder_of_run(config)
    if run is not None:
        require_same_experiment(config, run)
    seed, place = config.evaluation.seeds[0], Path(config.output_dir)
    dataset = load_sentences(config, seed)
    twin, cost = with_cost(
        lambda: dense_tagger_twin(
            dataset,
            config.model.name,
            lambda gold, predicted: score_entities(gold, predicted).overall.f1,
            shapes=config.model.shapes,
            epochs=config.training.planned_epochs(len(dataset.train)),
            batch_size=config.training.effective_batch,
            max_length=config.model.max_length,
            rates=rates,
            seed=seed,
            device=device,
            on_step=on_step,
        )
    )
    theirs = score_entities(dataset.test.tags, twin.predicted)
    results: dict[str, Any] = {
        "test_sentences": len(dataset.test),
        TWIN: {
            "f1": theirs.overall.f1,
            "types": {name: counts.as_dict() for name, counts in theirs.types.items()},
            "token_accuracy": theirs.token_accuracy,
            "setting": twin.setting,
            "validation_f1": twin.validation,
            **cost,
        },
    }
    if run is not None:
        own = run / MODEL
        ours = score_tagger(from_pretrained(own).to(resolve_device(device)), dataset.test, (), on_step=on_step).entities
        difference = paired_bootstrap(ours.sentences_right, theirs.sentences_right)
        results["model"] = {"folder": str(own), "f1": ours.overall.f1, "token_accuracy": ours.token_accuracy}
        results["difference in sentences that are right"] = asdict(difference)
    place.mkdir(parents=True, exist_ok=True)
    write_json(place / BASELINES, results)
    return results
