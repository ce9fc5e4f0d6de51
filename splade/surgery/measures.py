"""Removals in figures: every one by the same measures on the same test texts, as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from splade.config.surgery_plan import SurgeryPlan
from splade.data import TextSplit
from splade.evaluation.intervals import paired_bootstrap
from splade.fairness import Group
from splade.models.lexical_sae import LexicalSAE
from splade.progress import OnStep, Step
from splade.surgery.auditing import audit, decisions_on
from splade.surgery.closure import random_words_of_equal_mass
from splade.surgery.codes import Answers, Decide, EditedCodes, Readings, decider, read_texts
from splade.surgery.edits import Edit, ZeroWords
from splade.surgery.leakage import ConceptTexts, LeakageTable
from splade.surgery.optimiser import Bounds, Choice, GroupTexts, tuned_threshold
from splade.surgery.probes import ProbeScore
from splade.surgery.swaps import swap_effect, swap_words


@dataclass(frozen=True)
class StudySplit:
    """Texts of one role with all that is known of them."""

    split: TextSplit
    readings: Readings
    truth: Bool[ndarray, " N"]
    groups: tuple[Group, ...]
    concept: Float[ndarray, " N"]

    def asked(self) -> ConceptTexts:
        """The texts of which it is known whether they speak of the concept."""
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
    """Gap, accuracy, leakage and invariance of each removal on test, and of none."""
    decide = decider(model, positive)
    swapped = swap_words(test.split.texts, plan.swaps)
    pair = [
        read_texts(model, texts, positive, on_step=on_step).codes for texts in (swapped.before, swapped.after) if texts
    ]
    unchanged = decide(EditedCodes.untouched(test.readings.codes))
    found = {}
    for done, (name, edit) in enumerate(edits.items(), start=1):
        answers = decide(edit(test.readings.codes))
        one: dict[str, Any] = {
            "audit": audit(decisions_on(answers, test.truth), test.groups, seed=plan.seed).as_dict(),
            "accuracy_lost": asdict(paired_bootstrap(_right(unchanged, test.truth), _right(answers, test.truth))),
            "changed": float((answers.predicted != unchanged.predicted).mean()),
        }
        if leakage is not None:
            one["leakage"] = {**_score(leakage.best(name)), "leaks": leakage.leaks(name)}
        if pair:
            one["swap"] = asdict(swap_effect(*(decide(edit(codes)) for codes in pair)))
        found[name] = one
        on_step(Step("measuring removals", done, len(edits)))
    return found


def _right(answers: Answers, truth: Bool[ndarray, " N"]) -> list[bool]:
    return (answers.said == truth).tolist()


def _score(score: ProbeScore) -> dict[str, Any]:
    return {"probe": score.probe, "accuracy": score.accuracy, "low": score.low, "high": score.high}


def probe_figures(leakage: LeakageTable) -> dict[str, Any]:
    """Every probe on every representation, with the floor."""
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
    """The chosen set, on test beside a tuned threshold and random sets of equal mass."""
    texts = GroupTexts(validation.readings.codes, validation.truth, validation.groups)
    bounds = Bounds(plan.epsilon, plan.delta, plan.most_words)
    threshold = tuned_threshold(texts, decide(EditedCodes.untouched(texts.codes)), bounds)
    answers = decide(EditedCodes.untouched(test.readings.codes))
    by_threshold = Answers(answers.predicted, answers.score >= threshold, answers.score)

    def figures(said: Answers) -> dict[str, Any]:
        found = audit(decisions_on(said, test.truth), test.groups, seed=plan.seed)
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
            "before": figures(answers),
            "chosen words": figures(decide(ZeroWords.of(choice.words)(test.readings.codes))),
            "tuned threshold": {**figures(by_threshold), "threshold": threshold},
        },
        "random_sets": [{"gap": f["gap"]["mean"], "accuracy": f["accuracy"]["mean"]} for f in at_random],
        "names": model.dimensions.names(choice.words),
    }
