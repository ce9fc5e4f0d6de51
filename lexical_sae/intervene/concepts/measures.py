"""The figures of a study: every removal by the same measures on the same test texts, as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from lexical_sae.data import TextSplit
from lexical_sae.evaluation.intervals import paired_bootstrap
from lexical_sae.intervene.concepts.bias_audit import audit, decisions_on
from lexical_sae.intervene.concepts.fairness import Group
from lexical_sae.intervene.concepts.leakage import ConceptTexts, LeakageTable
from lexical_sae.intervene.concepts.plan import SurgeryPlan
from lexical_sae.intervene.concepts.probes import ProbeScore
from lexical_sae.intervene.concepts.removals import Edit, ZeroWords
from lexical_sae.intervene.concepts.swaps import swap_effect, swap_words
from lexical_sae.intervene.concepts.word_choice import Bounds, Choice, GroupTexts, tuned_threshold
from lexical_sae.intervene.concepts.word_matrix import Decide, EditedCodes, Predictions, Readings, decider, read_texts
from lexical_sae.intervene.concepts.word_sets import random_words_of_equal_mass
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.progress import OnStep, Step


@dataclass(frozen=True)
class StudySplit:
    """One split with its activations, labels, groups and concept."""

    split: TextSplit
    readings: Readings
    truth: Bool[ndarray, " N"]
    groups: tuple[Group, ...]
    concept: Float[ndarray, " N"]

    def labelled(self) -> ConceptTexts:
        """The texts annotated for the concept."""
        rows = np.flatnonzero(~np.isnan(self.concept))
        texts = [self.split.texts[i] for i in rows]
        return ConceptTexts(texts, self.readings.codes[rows], self.concept[rows] == 1)


def method_figures(
    model: LexicalSAE,
    test: StudySplit,
    positive: Sequence[int],
    edits: Mapping[str, Edit],
    leakage: LeakageTable | None,
    plan: SurgeryPlan,
    on_step: OnStep,
) -> dict[str, Any]:
    """Gap, accuracy, leakage and swap invariance of each removal on test, and without removal."""
    decide = decider(model, positive)
    swapped = swap_words(test.split.texts, plan.swaps)
    pair = [
        read_texts(model, texts, positive, on_step=on_step).codes for texts in (swapped.before, swapped.after) if texts
    ]
    unchanged = decide(EditedCodes.untouched(test.readings.codes))
    found = {}
    for done, (name, edit) in enumerate(edits.items(), start=1):
        predictions = decide(edit(test.readings.codes))
        one: dict[str, Any] = {
            "audit": audit(decisions_on(predictions, test.truth), test.groups, seed=plan.seed).as_dict(),
            "accuracy_lost": asdict(paired_bootstrap(_right(unchanged, test.truth), _right(predictions, test.truth))),
            "changed": float((predictions.predicted != unchanged.predicted).mean()),
        }
        if leakage is not None:
            one["leakage"] = {**_score(leakage.best(name)), "leaks": leakage.leaks(name)}
        if pair:
            one["swap"] = asdict(swap_effect(*(decide(edit(codes)) for codes in pair)))
        found[name] = one
        on_step(Step("measuring removals", done, len(edits)))
    return found


def _right(predictions: Predictions, truth: Bool[ndarray, " N"]) -> list[bool]:
    return (predictions.flagged == truth).tolist()


def _score(score: ProbeScore) -> dict[str, Any]:
    return {"probe": score.probe, "accuracy": score.accuracy, "low": score.low, "high": score.high}


def probe_figures(leakage: LeakageTable) -> dict[str, Any]:
    """Every probe on every representation, with the majority rate."""
    scores = {name: [_score(score) for score in found] for name, found in leakage.scores.items()}
    return {"majority": leakage.majority, "texts": len(leakage.held_out.texts), "scores": scores}


def choice_figures(
    choice: Choice,
    model: LexicalSAE,
    train: StudySplit,
    validation: StudySplit,
    test: StudySplit,
    decide: Decide,
    plan: SurgeryPlan,
) -> dict[str, Any]:
    """The chosen set on test, with a tuned threshold and random sets of equal mass for comparison."""
    texts = GroupTexts(validation.readings.codes, validation.truth, validation.groups)
    bounds = Bounds(plan.epsilon, plan.delta, plan.most_words)
    threshold = tuned_threshold(texts, decide(EditedCodes.untouched(texts.codes)), bounds)
    predictions = decide(EditedCodes.untouched(test.readings.codes))
    by_threshold = Predictions(predictions.predicted, predictions.score >= threshold, predictions.score)

    def figures(flagged: Predictions) -> dict[str, Any]:
        found = audit(decisions_on(flagged, test.truth), test.groups, seed=plan.seed)
        return {"gap": asdict(found.worst_fpr_gap), "accuracy": asdict(found.accuracy)}

    sets = [
        random_words_of_equal_mass(train.readings.codes, choice.words, plan.seed + n) for n in range(plan.random_sets)
    ]
    at_random = [figures(decide(ZeroWords.of(some)(test.readings.codes))) for some in sets] if choice.words else []
    return {
        "verdict": choice.verdict,
        "is_reached": choice.is_reached,
        "is_smallest": choice.is_smallest,
        "on_validation": {"before": asdict(choice.before), "after": asdict(choice.after)},
        "on_test": {
            "before": figures(predictions),
            "chosen words": figures(decide(ZeroWords.of(choice.words)(test.readings.codes))),
            "tuned threshold": {**figures(by_threshold), "threshold": threshold},
        },
        "random_sets": [{"gap": f["gap"]["mean"], "accuracy": f["accuracy"]["mean"]} for f in at_random],
        "names": model.dimensions.names(choice.words),
    }
