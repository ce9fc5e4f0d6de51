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

from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.data import TaggedDataset
from lexical_sae.evaluation.intervals import paired_bootstrap
from lexical_sae.evaluation.tagging.entities import score_entities
from lexical_sae.evaluation.tagging.lexicon import entity_lexicons
from lexical_sae.evaluation.tagging.performance import TaggerScores, score_tagger
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.persistence import save_pretrained
from lexical_sae.runs.experiment import Pipeline, train_run
from lexical_sae.runs.folder import BASELINES, EVALUATION, RunFolder, write_json
from lexical_sae.runs.in_memory import train_tagger
from lexical_sae.runs.inputs import load_sentences
from lexical_sae.runs.measuring.baselines import dense_training
from lexical_sae.runs.measuring.evaluating import evaluate_tagger
from lexical_sae.runs.measuring.scoring import Scores, score
from lexical_sae.runs.run import Run
from lexical_sae.runs.seeds import Watchers
from lexical_sae.runs.tagging.documents import load_documents
from lexical_sae.runs.tagging.pages import DENSE, LEXICON_SENTENCES, write_tagging_report
from lexical_sae.training.baselines.dense_tagger import dense_tagger
from lexical_sae.training.baselines.fine_tuning import DENSE_RATES
from lexical_sae.training.processes import current
from lexical_sae.training.stopping import EpochScores
from lexical_sae.utils.cost import with_cost
from lexical_sae.utils.progress import OnStep, silent


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
    """Train a tagger with every seed, test its explanations and write its page; what `results.json` then holds."""
    run = train_run(Run.of(config, device), resume=resume, watchers=watchers, pipeline=TAGGER)
    if not current().is_first:
        return {}
    _leave_report(run, watchers)
    return run.results


def _train_tagger(run: Run, folder: RunFolder, watchers: Watchers) -> dict[str, Any]:
    done = setup_and_train_tagger(run.config, run.device, watchers, seed=run.seed, folder=folder, dataset=run.sentences)
    save_pretrained(done.model, folder.model)
    # That of an earlier model in this folder.
    (folder.path / EVALUATION).unlink(missing_ok=True)
    sentences = done.dataset.test.tokens[:LEXICON_SENTENCES]
    lexicons = entity_lexicons(done.model, sentences, on_step=watchers.on_step)
    return {
        "experiment_name": run.config.experiment_name,
        "seed": run.seed,
        "seconds": round(done.seconds, 1),
        "tau_ce": done.tau_ce,
        "lambda": done.multiplier,
        "tags": list(done.dataset.tag_names),
        "test": done.scores.as_dict(),
        **({} if done.documents is None else {"documents": done.documents.as_dict()}),
        "validation": asdict(done.validation),
        "lexicons": [asdict(lexicon) for lexicon in lexicons],
    }


def _measure_tagger(run: Run, watchers: Watchers) -> None:
    evaluate_tagger(run, watchers)


def _follow_tagger(run: Run, watchers: Watchers) -> None:
    texts = load_documents(run.config, run.sentences, run.seed)
    train_tagger(run.config, run.sentences, texts, seed=run.seed, device=run.device, watchers=watchers)


TAGGER = Pipeline(
    _train_tagger,
    _measure_tagger,
    lambda run: run.sentences,
    ("f1", "token_accuracy", "active_words", "identity_error"),
    _follow_tagger,
)


def _leave_report(run: Run, watchers: Watchers) -> None:
    """Write the run's page. The run is safe by now, so whatever goes wrong here is only reported."""
    try:
        write_tagging_report(run, on_step=watchers.on_step)
    except Exception as error:
        message = f"the run is complete, but its report could not be written ({type(error).__name__}: {error})"
        watchers.on_note(f"{message}; write it again with: lexical-sae report {run.folder}")


def setup_and_train_tagger(
    config: ExperimentConfig,
    device: str = "auto",
    watchers: Watchers = Watchers(),
    *,
    seed: int | None = None,
    folder: RunFolder | None = None,
    dataset: TaggedDataset | None = None,
) -> TrainedTagger:
    """Build a tagger, train it, and tag the test split; see `lexical_sae.runs.experiment.setup_and_train`."""
    started = time.monotonic()
    seed = config.evaluation.seeds[0] if seed is None else seed
    dataset = load_sentences(config, seed) if dataset is None else dataset
    texts = load_documents(config, dataset, seed)
    for note in (*dataset.notes, *(texts.notes if texts else ())):
        watchers.on_note(note)
    model, fitted = train_tagger(config, dataset, texts, seed=seed, device=device, watchers=watchers, folder=folder)
    scores = score_tagger(model, dataset.test, on_step=watchers.on_step)
    seconds = folder.seconds if folder else time.monotonic() - started
    on_texts = score(model, texts.test, watchers.on_step) if texts else None
    return TrainedTagger(model, dataset, scores, fitted.best, fitted.tau_ce, fitted.multiplier, seed, seconds, on_texts)


def run_dense_tagger(
    config: ExperimentConfig,
    device: str = "auto",
    *,
    rates: Sequence[float] = DENSE_RATES,
    on_step: OnStep = silent,
) -> dict[str, Any]:
    """The dense baseline on the experiment's sentences, beside the experiment's model where there is one.

    Written to `baselines.json`. The difference is of sentences in which every entity is right, paired. A model that was
    trained with other data or settings is refused, before anything is trained: it may have learned from the test split.
    """
    run = Run.of(config, device).first
    if run.has_model:
        run.require_made_by(config)
    seed, place, dataset = run.seed, Path(config.output_dir), run.sentences
    dense, cost = with_cost(
        lambda: dense_tagger(
            dataset,
            config.model.name,
            lambda gold, predicted: score_entities(gold, predicted).overall.f1,
            dense_training(config, len(dataset.train), rates, seed, device, on_step),
            shapes=config.model.shapes,
        )
    )
    theirs = score_entities(dataset.test.tags, dense.predicted)
    results: dict[str, Any] = {
        "test_sentences": len(dataset.test),
        DENSE: {
            "f1": theirs.overall.f1,
            "types": {name: counts.as_dict() for name, counts in theirs.types.items()},
            "token_accuracy": theirs.token_accuracy,
            "setting": dense.setting,
            "validation_f1": dense.validation,
            **cost,
        },
    }
    if run.has_model:
        ours = score_tagger(run.model, dataset.test, (), on_step=on_step).entities
        difference = paired_bootstrap(ours.sentences_right, theirs.sentences_right)
        results["model"] = {
            "folder": str(run.model_folder),
            "f1": ours.overall.f1,
            "token_accuracy": ours.token_accuracy,
        }
        results["difference in sentences that are right"] = asdict(difference)
    place.mkdir(parents=True, exist_ok=True)
    write_json(place / BASELINES, results)
    return results
