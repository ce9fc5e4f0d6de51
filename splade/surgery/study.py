"""A removal studied from all sides: what it closes, what it costs, and what still leaks.

1. Texts are read once: train fits and suggests, validation chooses, test reports.
2. Words are given, or chosen so that the gap between groups closes (`optimiser`). Where none is chosen, nothing will be
   removed, but the words that correlate with the concept are measured all the same.
3. Zeroing them is put beside nothing, their closure, LEACE, the projection of the means, and random words of equal
   mass; each by gap, accuracy, leakage and invariance to swapped words, all on test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from splade.config.surgery_plan import SurgeryPlan
from splade.data import TextDataset, TextSplit
from splade.data.lots import rows_by_lot
from splade.evaluation.collect import opened_to_corpus
from splade.evaluation.lexicon import NameOf
from splade.inference.labels import label_index, labels_of
from splade.intervene import find_words, opened_to_words
from splade.models.lexical_sae import LexicalSAE
from splade.progress import OnStep, silent
from splade.surgery.auditing import groups_of, is_positive
from splade.surgery.candidates import SuspectWord, suspect_words
from splade.surgery.closure import correlated_words, embedding_neighbours, inflections, random_words_of_equal_mass
from splade.surgery.codes import Decide, decider, read_texts
from splade.surgery.concepts import concept_of, with_word_groups
from splade.surgery.edits import Edit, ZeroWords
from splade.surgery.leace import fit_leace, fit_mean_projection
from splade.surgery.leakage import BEFORE, LeakageTable, measure_leakage
from splade.surgery.measures import StudySplit, choice_figures, method_figures, probe_figures
from splade.surgery.optimiser import Bounds, Choice, GroupTexts, choose_words

ZEROING, CLOSURE, LEACE = "zeroing", "closure", "LEACE"
MEANS, RANDOM = "mean projection", "random words"


@dataclass(frozen=True)
class Study:
    """What was found."""

    forbid: tuple[str, ...]
    """Words to remove, for a lexicon; none if nothing was given and there was nothing to mend."""
    dimensions: tuple[int, ...]
    """What stands for them: variants, plurals and senses included."""
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
    """Choose words, or take those given, and measure what their removal does, also on other texts.

    Example: `study_removal(model, dataset, SurgeryPlan(concept="women", positive=("toxic",))).results["methods"]`
    """
    positive = [label_index(labels_of(model), label, "positive label") for label in plan.positive]
    read = rows_by_lot(len(dataset.train), plan.train_texts, plan.seed)
    roles = (dataset.train.take(read), dataset.validation, dataset.test)
    # Refused before the encoder reads a single text.
    marked = [with_word_groups(split, plan.group_words) for split in (*roles, *(other.split for other in others))]
    known = [(groups_of(split), concept_of(split, plan.concept)) for split in marked]
    truths = [is_positive(_model_labels(model, dataset, split), positive) for split in roles]
    truths += [is_positive(other.split.labels, other.positive) for other in others]
    model, _ = opened_to_corpus(model, [text for split in marked for text in split.texts])
    model = opened_to_words(model, (*plan.words, *plan.swaps, *plan.swaps.values()))
    train, validation, test, *elsewhere = (
        StudySplit(split, read_texts(model, split.texts, positive, on_step=on_step), truth, *facts)
        for split, truth, facts in zip(marked, truths, known, strict=True)
    )
    decide = decider(model, positive)
    suspects = suspect_words(train.readings, train.truth, train.groups, _name_of(model), plan.candidates)[
        : plan.candidates
    ]
    choice = None if plan.words else _choose(validation, decide, suspects, plan, on_step)
    asked_for = words_for(model, choice.words) if choice else plan.words
    words = tuple(i for word in find_words(model, asked_for) for i in word.dimensions) if asked_for else ()
    measured = words or _concept_words(train, plan)
    edits = _edits(model, train, measured, plan)
    asked = train.asked(), test.asked()
    leakage = measure_leakage(*asked, edits, most_texts=plan.probe_texts, seed=plan.seed, on_step=on_step)
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
    return Study(asked_for, words, leakage, results)


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
    """What to measure where no word is to go: the words that correlate with the concept on train, beyond chance."""
    asked = train.asked()
    return tuple(correlated_words(asked.codes, asked.concept.astype(float), plan.correlated))


def _edits(model: LexicalSAE, train: StudySplit, words: Sequence[int], plan: SurgeryPlan) -> dict[str, Edit]:
    """Every way of removing the concept, fitted on train; without words, those alone that need none."""
    asked = train.asked()
    concept = asked.concept.astype(float)
    erasures: dict[str, Edit] = {
        LEACE: fit_leace(asked.codes, concept),
        MEANS: fit_mean_projection(asked.codes, concept),
    }
    if not words:
        return erasures
    closure = {
        *words,
        *inflections(model, words),
        *embedding_neighbours(model, words, plan.neighbours),
        *correlated_words(asked.codes, concept, plan.correlated),
    }
    return {
        ZEROING: ZeroWords.of(words),
        CLOSURE: ZeroWords.of(closure),
        **erasures,
        RANDOM: ZeroWords.of(random_words_of_equal_mass(train.readings.codes, words, plan.seed)),
    }
