"""Name tests of a run's model beside those of a bag of words, in `names.json` beside the model."""

from dataclasses import asdict
from typing import Any

from lexical_sae.data.polarity import positive_class
from lexical_sae.data.splits import draw
from lexical_sae.evaluation.context.measuring import measure_context
from lexical_sae.evaluation.context.references import fit_references, sentiment_lexicon
from lexical_sae.evaluation.names.bag_of_words import BagOfWords, NoWords
from lexical_sae.evaluation.names.tests import measure_names, strongest_words
from lexical_sae.outputs import CLASSES, OUTPUTS
from lexical_sae.runs.folder import NAMES, write_json
from lexical_sae.runs.inputs import output_of, require_classes
from lexical_sae.runs.run import Run
from lexical_sae.runs.seeds import Watchers
from lexical_sae.utils.progress import OnStep, silent

READ_AT_MOST = 2000
"""Test texts behind the strongest words of each class, sampled at random."""


def name_runs(run: Run, watchers: Watchers = Watchers()) -> dict[int, dict[str, Any]]:
    """The name tests of each seed's model, by seed; a seed without any is left out (`name_run`)."""
    found = {one.seed: name_run(one, watchers) for one in run.seeds}
    return {seed: names for seed, names in found.items() if names is not None}


def name_run(run: Run, watchers: Watchers = Watchers()) -> dict[str, Any] | None:
    """The name tests of one seed's model; made where they are not there yet, or were made on too few texts.

    On up to `evaluation.names_texts` test texts; where that is 0, or no text has a word, there are none.
    """
    texts = run.config.evaluation.names_texts
    if not texts:
        return None
    if (output := output_of(run.config)) != CLASSES.kind:
        watchers.on_note(f"names are not measured: the tests are about classes, not {OUTPUTS[output].title}")
        return None
    if saved := run.names_on(texts):
        return saved
    on_step = watchers.until_interrupted(f"measuring the names of {run.folder.name}; the training is complete")
    try:
        # The report has words of each class of its own.
        return run_names(run, texts=texts, words=0, on_step=on_step)
    except NoWords as error:
        # The training is complete, and nothing is wrong with it.
        watchers.on_note(f"names are not measured: {error}")
        return None


def run_names(
    run: Run, *, texts: int = 200, words: int = 20, on_step: OnStep = silent, all_tokens: bool = False
) -> dict[str, Any]:
    """Name scores of a run's model beside those of a bag of words, written beside the model.

    Args:
        run: The run; of several seeds, the first one's model is tested.
        texts: Test texts to edit.
        words: How many of the strongest words of each class to list; 0 for none.
        on_step: Gets progress.
        all_tokens: Whether word pieces and symbols are listed too.
    """
    run = run.first
    require_classes(run.config, "a test of names")
    run.require_made_by(run.config)
    model, dataset = run.model_and_data()
    seed = run.seed
    bag = BagOfWords(dataset.train.texts, dataset.train.labels)
    train, test = dataset.train, dataset.test
    lexicon = None if positive_class(dataset.label_names) is None else sentiment_lexicon()
    references = fit_references(train.texts, train.labels, bag, lexicon)
    rows = (test.texts, test.labels, train.texts, train.labels, dataset.label_names)
    strongest = {}
    if words:
        read = draw(dataset.test, READ_AT_MOST, seed)
        found = strongest_words(model, read.texts, read.labels, words, on_step, all_tokens=all_tokens)
        strongest = {dataset.label_names[label]: [asdict(word) for word in own] for label, own in found.items()}
    results: dict[str, Any] = {}
    for name, one in (("model", model), ("bag of words", bag)):
        results[name] = measure_names(one, test.texts, train.texts, seed, texts, on_step).as_dict()
        context = measure_context(one, *rows, seed, texts, on_step, references=references)
        results[name]["context"] = context.as_dict()
    results |= {"strongest_words": strongest, "test_texts": len(test)}
    write_json(run.folder / NAMES, results)
    return results
