"""The page that a tagging run leaves: scores, curve, lexicons, and sentences with their reasons."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from splade.config.schema import ExperimentConfig
from splade.data import TaggedDataset, load_tagged_dataset
from splade.data.tagged_sentence import TaggedSentence
from splade.data.tagging import parse_tag
from splade.files import write_text
from splade.inference.tag_explaining import explain_tags
from splade.inference.tagging import tag
from splade.models.lexical_sae import LexicalSAE
from splade.models.persistence import from_pretrained
from splade.progress import OnStep, silent
from splade.report.tagging_html import ShownSentence, tagging_page
from splade.training.run_folder import MODEL, REPORT, RESULTS

BASELINES, TWIN = "baselines.json", "dense twin"
EXAMPLES = 12


def load_sentences(config: ExperimentConfig, seed: int) -> TaggedDataset:
    """The tagging data set that the settings name."""
    data = config.data
    return load_tagged_dataset(
        data.dataset_name, path=data.path, train_samples=data.train_samples, test_samples=data.test_samples, seed=seed
    )


def folder_of_run(config: ExperimentConfig) -> Path | None:
    """Where the run of the first seed left its model; None if there is none."""
    place = Path(config.output_dir)
    own = (place, place / f"seed-{config.evaluation.seeds[0]}")
    return next((folder for folder in own if (folder / MODEL).is_dir()), None)


def rewrite_report(config: ExperimentConfig, on_step: OnStep = silent) -> Path:
    """The page of a finished run once more, with its dense twin beside it where that was measured."""
    place = folder_of_run(config)
    if place is None or not (place / RESULTS).is_file():
        raise ValueError(f"there is no finished run in {config.output_dir}; train it first, or finish it with --resume")
    results = json.loads((place / RESULTS).read_text(encoding="utf-8"))
    model, dataset = from_pretrained(place / MODEL), load_sentences(config, config.evaluation.seeds[0])
    predicted = [sentence.tags for sentence in tag(model, dataset.test.tokens, on_step=on_step)]
    return write_text(
        place / REPORT, report_html(results, model, dataset, predicted, _measured(Path(config.output_dir)))
    )


def _measured(place: Path) -> list[tuple[str, float]]:
    found = place / BASELINES
    return [(TWIN, json.loads(found.read_text(encoding="utf-8"))[TWIN]["f1"])] if found.is_file() else []


def report_html(
    results: dict[str, Any],
    model: LexicalSAE,
    dataset: TaggedDataset,
    predicted: Sequence[Sequence[str]],
    compared: Sequence[tuple[str, float]] = (),
) -> str:
    """The page of a run, from its results and the tags of the test sentences."""
    tokens, gold = dataset.test.tokens, dataset.test.tags
    shown = []
    for row in _examples(gold, predicted):
        sentence = TaggedSentence.of_words(tokens[row], predicted[row])
        reasons = explain_tags(model, tokens[row], [entity.start for entity in sentence.entities])
        shown.append(ShownSentence(sentence, reasons, TaggedSentence.of_words(tokens[row], gold[row])))
    types = sorted({parse_tag(name)[1] for name in dataset.tag_names} - {""})
    title = f"{results['experiment_name']}: names in text"
    notes = (*dataset.notes, "Sentences below are from the test split; half of them have a mistake, if there are any.")
    return tagging_page(
        title, shown, types, notes=notes, test=results["test"], lexicons=results["lexicons"], compared=compared
    )


def _examples(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> list[int]:
    """Sentences worth a look: of a readable length and with entities, half of them with a mistake if there are any."""
    named = [row for row, tags in enumerate(predicted) if 5 <= len(tags) <= 40 and any(tag != "O" for tag in tags)]
    wrong = [row for row in named if tuple(gold[row]) != tuple(predicted[row])][: EXAMPLES // 2]
    right = [row for row in named if row not in set(wrong)][: EXAMPLES - len(wrong)]
    return sorted([*right, *wrong])
