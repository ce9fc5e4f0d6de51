"""The evaluation suite on a run's test texts, or on other texts, in `evaluation.json` beside the model."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lexical_sae.data.sampling import sample_rows
from lexical_sae.data.splits import draw
from lexical_sae.evaluation.names.tests import measure_names
from lexical_sae.evaluation.settings import EvaluationSettings
from lexical_sae.evaluation.suite import evaluate
from lexical_sae.evaluation.tagging.faithfulness import measure_tags
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.outputs import Classes
from lexical_sae.runs.folder import EVALUATION, OTHER_EVALUATIONS, write_json
from lexical_sae.runs.run import TEST, Run
from lexical_sae.runs.seeds import Watchers
from lexical_sae.runs.unseen import UnseenTexts
from lexical_sae.studies.post_hoc_sae.comparing import RESULTS, compare_with_saes, write_comparison
from lexical_sae.studies.post_hoc_sae.fitting import SAESettings
from lexical_sae.utils.progress import OnStep, silent

NAMED = "names"
"""Where an evaluation keeps what names came to."""


def evaluate_run(run: Run, watchers: Watchers = Watchers()) -> dict[str, Any]:
    """The evaluation of one seed's model, and where the settings ask for them, its sparse autoencoders.

    Measured where it is not there yet. The saved model is measured, so it is what others will use. Test texts beyond
    `evaluation.texts` are left out at random.
    """
    if run.config.mechanistic.sae_comparison and not (run.folder / RESULTS).is_file():
        on_step = watchers.until_interrupted("evaluating; the training is complete")
        found = compare_with_saes(*run.model_and_data(), SAESettings(seed=run.seed), on_step=on_step)
        write_comparison(found, run.folder)

    def measure(on_step: OnStep) -> dict[str, Any]:
        model, dataset = run.model_and_data()
        settings = EvaluationSettings(
            circuit_fraction=run.config.mechanistic.circuit_fraction,
            explainer_texts=run.config.evaluation.explainer_texts,
            seed=run.seed,
        )
        test = draw(dataset.test, run.config.evaluation.texts, run.seed)
        return evaluate(model, test, settings, on_step).as_dict()

    return _measured_once(run, measure, watchers)


def evaluate_tagger(run: Run, watchers: Watchers = Watchers()) -> dict[str, Any]:
    """What a tagger's explanations are worth on test sentences; measured where it is not there yet."""

    def measure(on_step: OnStep) -> dict[str, Any]:
        test, most = run.sentences.test, run.config.evaluation.texts
        return measure_tags(
            run.model,
            test.take(sample_rows(len(test), most, run.seed)),
            circuit_fraction=run.config.mechanistic.circuit_fraction,
            seed=run.seed,
            on_step=on_step,
        ).as_dict()

    return _measured_once(run, measure, watchers)


def _measured_once(run: Run, measure: Callable[[OnStep], dict[str, Any]], watchers: Watchers) -> dict[str, Any]:
    """The run's own evaluation: the one in its folder, or a new one."""
    most = run.config.evaluation.texts
    if saved := run.evaluation_on(most):
        return saved
    about = {"model": str(run.model_folder), "data": run.config.data.dataset_name, "split": TEST, "most_texts": most}
    found = {**about, **measure(watchers.until_interrupted("evaluating; the training is complete"))}
    write_json(run.folder / EVALUATION, found)
    return found


def evaluation_file(model_folder: Path, run: Run | None, unseen: UnseenTexts, data: str) -> Path:
    """Where an evaluation goes: `evaluation.json` beside the model, unless that is of the run's own test texts."""
    place = model_folder.resolve().parent
    is_other = run is not None and unseen.tested is None
    return place / (OTHER_EVALUATIONS.replace("*", Path(data).stem) if is_other else EVALUATION)


def evaluate_on(
    model: LexicalSAE,
    unseen: UnseenTexts,
    about: dict[str, Any],
    *,
    texts: int = 0,
    names_texts: int = 100,
    explainer_texts: int = 10,
    seed: int = 0,
    on_step: OnStep = silent,
) -> dict[str, Any]:
    """Everything measured of a model on texts that it did not learn from.

    Args:
        model: The model.
        unseen: The texts, from `Run.unseen` or `unseen_texts`.
        about: What the result is to say of the model and the data.
        texts: Most texts to read, sampled at random; 0 reads all.
        names_texts: How many of them to use for the name tests; 0 leaves these out.
        explainer_texts: How many of them to compare attribution methods on; 0 leaves that out.
        seed: Seed of all that is sampled at random.
        on_step: Gets progress.

    Returns:
        The evaluation as plain data, with the name tests as `names`.
    """
    settings = EvaluationSettings(explainer_texts=explainer_texts, seed=seed)
    if unseen.tested:
        settings = replace(settings, circuit_fraction=unseen.tested.mechanistic.circuit_fraction)
        about = {**about, "split": TEST, "most_texts": texts}
    chosen = draw(unseen.split, texts, seed)
    found = {**about, **evaluate(model, chosen, settings, on_step).as_dict()}
    if names_texts and isinstance(model.output, Classes):
        found[NAMED] = measure_names(model, chosen.texts, unseen.trained_on, seed, names_texts, on_step).as_dict()
    return found
