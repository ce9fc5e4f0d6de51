"""A concept removal, measured: the gap it closes, what it costs, and what still leaks.

1. Texts are read once: removals are fitted and candidates found on train, words chosen on validation, results reported
   on test.
2. Words are given, or chosen so that the gap between groups closes (`word_choice`). If none is chosen, nothing is
   removed, but the words that correlate with the concept are measured all the same.
3. Zeroing them is compared with no removal, the expanded word set, LEACE, the projection of the means, and random words
   of equal mass; each by gap, accuracy, leakage and invariance to swapped words, all on test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.data.sampling import sample_rows
from lexical_sae.evaluation.collect import opened_to_corpus
from lexical_sae.evaluation.corpus.lexicon import NameOf
from lexical_sae.inference.labels import label_index, labels_of
from lexical_sae.intervene import find_words, opened_to_words
from lexical_sae.intervene.concepts.bias_audit import groups_of, is_positive
from lexical_sae.intervene.concepts.candidates import SuspectWord, suspect_words
from lexical_sae.intervene.concepts.concept_labels import concept_of, with_word_groups
from lexical_sae.intervene.concepts.leace import fit_leace, fit_mean_projection
from lexical_sae.intervene.concepts.leakage import BEFORE, LeakageTable, measure_leakage
from lexical_sae.intervene.concepts.measures import StudySplit, choice_figures, method_figures, probe_figures
from lexical_sae.intervene.concepts.plan import SurgeryPlan
from lexical_sae.intervene.concepts.removals import Edit, ZeroWords
from lexical_sae.intervene.concepts.swaps import swap_words
from lexical_sae.intervene.concepts.word_choice import Bounds, Choice, GroupTexts, choose_words
from lexical_sae.intervene.concepts.word_matrix import Decide, decider, read_texts
from lexical_sae.intervene.concepts.word_sets import (
    correlated_words,
    embedding_neighbours,
    inflections,
    random_words_of_equal_mass,
)
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.progress import OnStep, silent

ZEROING, EXPANDED, LEACE = "zeroing", "expanded word set", "LEACE"
MEANS, RANDOM = "mean projection", "random words"


@dataclass(frozen=True)
class Study:
    """The outcome of a study."""

    forbid: tuple[str, ...]
    """Words to remove, for a lexicon; none if nothing was given and there was no gap to close."""
    dimensions: tuple[int, ...]
    """Their dimensions: variants, plurals and senses included."""
    leakage: LeakageTable
    results: Mapping[str, Any]
    """Plain data for JSON, page and terminal."""


@dataclass(frozen=True)
class OtherTexts:
    """Texts from elsewhere to measure the same removals on, such as templates that name every group."""

    name: str
    split: TextSplit
    positive: tuple[int, ...]
    """Labels of these texts that count as positive; they need not be the model's."""


def study_removal(
    model: LexicalSAE,
    dataset: TextDataset,
    plan: SurgeryPlan,
    others: Sequence[OtherTexts] = (),
    on_step: OnStep = silent,
) -> Study:
    """The measured removal of a concept, by words given or chosen, also on other texts.

    Args:
        model: The model; it is not changed.
        dataset: Texts with identities.
        plan: What to remove.
        others: Further texts to measure the same removals on.
        on_step: Receives progress.

    Returns:
        Words, leakage and figures.

    Example: `study_removal(model, dataset, SurgeryPlan(concept="women", positive=("toxic",))).results["methods"]`
    """
    positive = [label_index(labels_of(model), label, "positive label") for label in plan.positive]
    read = sample_rows(len(dataset.train), plan.train_texts, plan.seed)
    roles = (dataset.train.take(read), dataset.validation, dataset.test)
    # Refused before the encoder reads a single text.
    marked = [with_word_groups(split, plan.group_words) for split in (*roles, *(other.split for other in others))]
    known = [(groups_of(split), concept_of(split, plan.concept)) for split in marked]
    truths = [is_positive(_model_labels(model, dataset, split), positive) for split in roles]
    truths += [is_positive(other.split.labels, other.positive) for other in others]
    texts = [text for split in marked for text in split.texts]
    model, _ = opened_to_corpus(model, [*texts, *swap_words(texts, plan.swaps).after])
    model = opened_to_words(model, plan.words)
    train, validation, test, *elsewhere = (
        StudySplit(split, read_texts(model, split.texts, positive, on_step=on_step), truth, *facts)
        for split, truth, facts in zip(marked, truths, known, strict=True)
    )
    decide = decider(model, positive)
    suspects = suspect_words(train.readings, train.truth, train.groups, _name_of(model), plan.candidates)[
        : plan.candidates
    ]
    choice = None if plan.words else _choose(validation, decide, suspects, plan, on_step)
    to_remove = words_for(model, choice.words) if choice else plan.words
    words = tuple(i for word in find_words(model, to_remove) for i in word.dimensions) if to_remove else ()
    measured = words or _concept_words(train, plan)
    edits = _edits(model, train, measured, plan)
    concepts = train.labelled(), test.labelled()
    leakage = measure_leakage(*concepts, edits, most_texts=plan.probe_texts, seed=plan.seed, on_step=on_step)
    edits = {BEFORE: ZeroWords(frozenset()), **edits}
    listed = model.dimensions.clean_mask
    # What is removed is always named.
    shown = [word for word in suspects if listed[word.dimension] or word.dimension in measured]
    results = {
        "concept": plan.concept,
        "positive": list(plan.positive),
        "data": dataset.name,
        "texts": {"train": len(train.split), "validation": len(validation.split), "test": len(test.split)},
        "words": model.dimensions.names(words),
        "words_given": bool(plan.words),
        "measured_words": model.dimensions.names(measured),
        "suspects": [word.as_dict() for word in shown],
        "suspect_pieces": len(suspects) - len(shown),
        "methods": method_figures(model, test, positive, edits, leakage, plan, on_step),
        "others": {
            other.name: method_figures(model, split, positive, edits, None, plan, on_step)
            for other, split in zip(others, elsewhere, strict=True)
        },
        "closed_with": {
            name: model.dimensions.names(sorted(e.dimensions)) for name, e in edits.items() if isinstance(e, ZeroWords)
        },
        "ceilings": probe_figures(leakage),
        "choice": choice_figures(choice, model, train, validation, test, decide, plan) if choice else None,
    }
    return Study(to_remove, words, leakage, results)


def require_known(dataset: TextDataset, plan: SurgeryPlan) -> None:
    """Refuse a concept or a label that the data does not have, before anything long is begun."""
    for label in plan.positive:
        label_index(dataset.label_names, label, "positive label")
    if plan.concept not in plan.group_words:
        concept_of(dataset.test, plan.concept)


def words_for(model: LexicalSAE, dimensions: Sequence[int]) -> tuple[str, ...]:
    """Words that a lexicon can forbid to close these dimensions, each of which may close its variants too.

    Example: the dimensions of "sailor" and "sailors" -> `("sailor",)`
    """
    words: list[str] = []
    covered: set[int] = set()
    for i in dimensions:
        if i not in covered:
            words.append(model.dimensions[i].name)
            covered |= set(find_words(model, words[-1])[0].dimensions)
    return tuple(words)


def _name_of(model: LexicalSAE) -> NameOf:
    return lambda index: model.dimensions[index].name


def _model_labels(model: LexicalSAE, dataset: TextDataset, split: TextSplit) -> list[int]:
    """The labels as the model numbers them."""
    places = [label_index(labels_of(model), name, "the data's label") for name in dataset.label_names]
    return [places[label] for label in split.labels]


def _choose(
    split: StudySplit, decide: Decide, suspects: Sequence[SuspectWord], plan: SurgeryPlan, on_step: OnStep
) -> Choice:
    texts = GroupTexts(split.readings.codes, split.truth, split.groups)
    bounds = Bounds(plan.epsilon, plan.delta, plan.most_words)
    return choose_words(texts, decide, [word.dimension for word in suspects], bounds, on_step)


def _concept_words(train: StudySplit, plan: SurgeryPlan) -> tuple[int, ...]:
    """What to measure if no word is removed: the words that correlate with the concept on train, beyond chance."""
    labelled = train.labelled()
    return tuple(correlated_words(labelled.codes, labelled.concept.astype(float), plan.correlated))


def _edits(model: LexicalSAE, train: StudySplit, words: Sequence[int], plan: SurgeryPlan) -> dict[str, Edit]:
    """Every way of removing the concept, fitted on train; without words, only those that need none."""
    labelled = train.labelled()
    concept = labelled.concept.astype(float)
    erasures: dict[str, Edit] = {
        LEACE: fit_leace(labelled.codes, concept),
        MEANS: fit_mean_projection(labelled.codes, concept),
    }
    if not words:
        return erasures
    expanded = {
        *words,
        *inflections(model, words),
        *embedding_neighbours(model, words, plan.neighbours),
        *correlated_words(labelled.codes, concept, plan.correlated),
    }
    return {
        ZEROING: ZeroWords.of(words),
        EXPANDED: ZeroWords.of(expanded),
        **erasures,
        RANDOM: ZeroWords.of(random_words_of_equal_mass(train.readings.codes, words, plan.seed)),
    }
