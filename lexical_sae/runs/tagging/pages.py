"""Pages of tagged sentences: of a run (`lexical-sae report`), and of a person's own (`lexical-sae tag --html`)."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lexical_sae.data import TaggedDataset, TaggedSplit
from lexical_sae.data.tagged_sentence import TaggedSentence
from lexical_sae.data.tagging import parse_tag
from lexical_sae.evaluation.tagging.faithfulness import TagFaithfulness
from lexical_sae.evaluation.tagging.lexicon import entity_lexicons
from lexical_sae.evaluation.views.tagging import tagging_evaluation_figures
from lexical_sae.inference.tag_explaining import explain_tags
from lexical_sae.inference.tagging import tag
from lexical_sae.models.lexical_sae import TAG, LexicalSAE
from lexical_sae.report.explanation.entities import document_rows, seeds_figures
from lexical_sae.report.explanation.tagged_page import RunParts, ShownSentence, tagging_page
from lexical_sae.report.page import Figures
from lexical_sae.report.terminal import constraint_rows
from lexical_sae.runs.folder import BASELINES, EVALUATION, REPORT
from lexical_sae.runs.pages.report import SHOWN_AT_MOST, choose_rows, spread_rows
from lexical_sae.runs.pages.report_parts import ReportParts
from lexical_sae.runs.run import Run
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.files import write_text
from lexical_sae.utils.progress import OnStep, Step, silent

DENSE = "dense baseline"
EXAMPLES = 12
LEXICON_SENTENCES = 1000
"""Test sentences that lexicons are made from."""
LOOKED_AT = 400
"""Test sentences among which examples are looked for."""
Sentence = str | Sequence[str]


def types_of(tag_names: Sequence[str]) -> list[str]:
    """The types of entities that tags speak of. Example: `["O", "B-PER", "I-PER"] -> ["PER"]`"""
    return sorted({parse_tag(name)[1] for name in tag_names} - {""})


def write_tagging_report(
    run: Run,
    out: Path | None = None,
    sentences: int = EXAMPLES,
    on_step: OnStep = silent,
    *,
    all_tokens: bool = False,
) -> tuple[Path, Sequence[str]]:
    """Write the page of a finished tagging run, by default into its folder; where it is, and what it could not show.

    Of several seeds, curves, words and sentences are those of the first.
    """
    files = ReportParts(run)
    results, config = run.first.results, run.config
    found = _model_and_data(run, files.missing)
    shown, notes = _shown_sentences(*found, sentences, on_step, all_tokens=all_tokens) if found else ([], ())
    page = tagging_page(
        f"{results['experiment_name']}: names in text",
        shown,
        types_of(results["tags"]),
        notes=notes,
        test=results["test"],
        lexicons=_lexicons(results, found, on_step, all_tokens=all_tokens),
        compared=files.read(run.folder / BASELINES, _dense, "`lexical-sae ner --dense` measures the dense baseline")
        or (),
        run=RunParts(
            about=files.about(),
            seeds=_seeds(run),
            scores=[*document_rows(results), *constraint_rows(results)],
            evaluation=_evaluation(files),
            curves=files.curves(),
            shapes=config.model.shapes.names if config.model.shapes else (),
            encoder_gets_shapes=config.model.shapes is not None and config.model.shapes.in_encoder,
            documents=files.documents(),
            missing=files.missing,
        ),
    )
    return write_text(out or run.folder / REPORT, page), files.missing


def write_sentences(
    model: LexicalSAE,
    given: Sequence[Sentence],
    found: Sequence[TaggedSentence],
    path: Path,
    on_step: OnStep = silent,
    *,
    all_tokens: bool = False,
) -> Path:
    """Write a page of tagged sentences with the reasons of their entities; the first 500 are shown."""
    shown = []
    for text, sentence in list(zip(given, found, strict=True))[:SHOWN_AT_MOST]:
        shown.append(_shown(model, text, sentence, all_tokens=all_tokens))
        on_step(Step("explaining", len(shown), min(len(found), SHOWN_AT_MOST)))
    more = len(found) - len(shown)
    notes = [f"{more} more texts were tagged; --json and --conll write them all."] if more else []
    return write_text(path, tagging_page("Names in text", shown, types_of(model.labels[TAG]), notes=notes))


def _shown(
    model: LexicalSAE,
    text: Sentence,
    sentence: TaggedSentence,
    gold: TaggedSentence | None = None,
    *,
    all_tokens: bool,
) -> ShownSentence:
    reasons = explain_tags(model, text, [entity.start for entity in sentence.entities], all_tokens=all_tokens)
    return ShownSentence(sentence, reasons, gold)


def _seeds(run: Run) -> Figures | None:
    """The mean over seeds, where there are several."""
    results = run.results or {}
    return Figures(*seeds_figures(results["mean"])) if "mean" in results else None


def _evaluation(files: ReportParts) -> Sequence[Figures]:
    """Whether explanations are true, of several seeds those of the first."""
    remedy = "`python -m lexical_sae.scripts.run_ner --resume` measures it where evaluation.after_training is on"

    def figures(text: str) -> list[Figures]:
        found = TagFaithfulness.from_dict(json.loads(text))
        return [Figures(heading, rows) for heading, rows in tagging_evaluation_figures(found)]

    return files.read(files.run.first.folder / EVALUATION, figures, remedy) or ()


def _dense(text: str) -> list[tuple[str, float]]:
    return [(DENSE, json.loads(text)[DENSE]["f1"])]


def _model_and_data(run: Run, missing: list[str]) -> tuple[LexicalSAE, TaggedDataset] | None:
    """The tagger and its data; None where one of them cannot be had."""
    try:
        model, dataset = run.model, run.sentences
        if tuple(model.labels[TAG]) != tuple(dataset.tag_names):
            raise DataError(f"the data's tags are {', '.join(dataset.tag_names)}, the model's others")
    except (ValueError, OSError, RuntimeError) as error:
        missing.append(f"There are no sentences, as the model or its data cannot be had: {error}")
        return None
    return model, dataset


def _lexicons(
    results: dict[str, Any], found: tuple[LexicalSAE, TaggedDataset] | None, on_step: OnStep, *, all_tokens: bool
) -> list[dict[str, Any]]:
    """The words of each type as the run left them; made again where those are of other words than wanted."""
    # Older runs list pieces among the words, and have no sum of them.
    is_asked_for = not all_tokens and all("pieces" in own for own in results["lexicons"])
    if is_asked_for or found is None:
        return results["lexicons"]
    model, dataset = found
    sentences = dataset.test.tokens[:LEXICON_SENTENCES]
    return [asdict(own) for own in entity_lexicons(model, sentences, all_tokens=all_tokens, on_step=on_step)]


def _shown_sentences(
    model: LexicalSAE, dataset: TaggedDataset, wanted: int, on_step: OnStep, *, all_tokens: bool
) -> tuple[list[ShownSentence], Sequence[str]]:
    """Test sentences with their reasons, and notes on the data."""
    chosen = _examples(model, dataset.test, wanted, on_step)
    half = "Sentences below are from the test split; half of them have a mistake, if there are any."
    shown = [_shown(model, gold.words, said, gold, all_tokens=all_tokens) for said, gold in chosen]
    return shown, (*dataset.notes, half)


def _examples(
    model: LexicalSAE, test: TaggedSplit, wanted: int, on_step: OnStep
) -> list[tuple[TaggedSentence, TaggedSentence]]:
    """Sentences worth a look, as tagged and as given: of a readable length, with entities, half of them mistaken."""
    rows = [row for row in spread_rows(len(test), LOOKED_AT) if 5 <= len(test.tokens[row]) <= 40]
    given = [TaggedSentence.of_words(test.tokens[row], test.tags[row]) for row in rows]
    said = tag(model, [sentence.words for sentence in given], on_step=on_step)
    pairs = [(ours, theirs) for ours, theirs in zip(said, given, strict=True) if ours.entities]
    return [pairs[row] for row in choose_rows([ours.entities != theirs.entities for ours, theirs in pairs], wanted)]
