"""Whether an experiment's words mean what they say, beside a bag of words; in `names.json` beside each model."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.data import TextDataset
from splade.data.batches import tokenise
from splade.data.polarity import positive_class
from splade.device import resolve_device
from splade.evaluation.context.measuring import measure_context
from splade.evaluation.context.references import fit_references, sentiment_lexicon
from splade.evaluation.names import measure_names, strongest_words
from splade.evaluation.names_bag import BagOfWords, NoWords
from splade.models.lexical_sae import LexicalSAE
from splade.models.persistence import from_pretrained
from splade.pipelines.inputs import draw, load_data, model_folder, require_same_experiment, require_same_labels
from splade.pipelines.scoring import require_same_rows
from splade.progress import OnStep, silent
from splade.runs import Watchers, seed_folders
from splade.training.run_folder import NAMES, write_json

READ_AT_MOST = 2000
"""Test texts behind the strongest words of each class, drawn by lot."""


def name_runs(
    config: ExperimentConfig, device: str = "auto", watchers: Watchers = Watchers()
) -> dict[int, dict[str, Any]]:
    """What `names.json` of every seed's run says of its model; measured where it is not there yet, or on too few texts.

    On up to `evaluation.names_texts` test texts; where that is 0, or no text has a word, nothing is measured and none
    comes back.
    """
    texts, found = config.evaluation.names_texts, {}
    for seed, folder in seed_folders(config).items() if texts else ():
        saved = read_names(folder / NAMES, texts)
        if saved is None:
            on_step = watchers.until_interrupted(f"measuring the names of {folder.name}; the training is complete")
            try:
                # The report has words of each class of its own.
                saved = run_names(config, texts=texts, words=0, seed=seed, device=device, on_step=on_step)
            except NoWords as error:
                # The training is complete, and nothing is wrong with it.
                watchers.on_note(f"names are not measured: {error}")
                continue
        found[seed] = saved
    return found


def run_names(
    config: ExperimentConfig,
    *,
    texts: int = 200,
    words: int = 20,
    seed: int | None = None,
    device: str = "auto",
    on_step: OnStep = silent,
    all_tokens: bool = False,
) -> dict[str, Any]:
    """Name scores of a seed's model, by default the first's, beside those of a bag of words, written beside the model.

    With them go the strongest words of each class, if any are wanted; word pieces and symbols with `all_tokens` only.
    """
    seed = config.evaluation.seeds[0] if seed is None else seed
    dataset = load_data(config, seed)
    own = model_folder(config, seed)
    model = from_pretrained(own).to(resolve_device(device))
    require_same_experiment(config, own.parent)
    require_same_labels(model, dataset)
    require_same_rows(own.parent, dataset)
    model = _opened_to_all(model, dataset)
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
    write_json(own.parent / NAMES, results)
    return results


def _opened_to_all(model: Any, dataset: TextDataset) -> Any:
    """The model with a dimension for every literal word that an edit may write into a text."""
    if not isinstance(model, LexicalSAE) or model.literal is None:
        return model
    texts = [*dataset.train.texts, *dataset.test.texts]
    return model.opened_to(tokenise(model.tokenizer, texts, model.max_length).ids)


def read_names(path: Path, texts: int) -> dict[str, Any] | None:
    """What the file says, if it was measured on so many texts, or on all there are; a damaged one is made anew."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        is_enough = saved["model"]["texts"] >= min(texts, saved["test_texts"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return saved if is_enough else None
