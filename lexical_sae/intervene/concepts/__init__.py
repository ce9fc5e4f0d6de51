"""Concept removal: which words carry a concept, what their removal changes and costs, and what still leaks.

    run_surgery                     a study, the edited model, its certificate and a page, in a folder
    study_removal, SurgeryPlan      everything below, on one model and data set
    measure_leakage                 how well probes still read the concept from the words that are left
    fit_leace, fit_mean_projection  linear concept erasure, as baselines
    swap_words, swap_effect         whether swapping a word in the text moves the score
    evaluate_bias, audit            gaps between groups, with confidence intervals
    choose_words                    the smallest set of words that closes a gap

Suppressing a word (`lexical_sae.intervene`) is exact, but about the word. This package measures the concept.
"""

from lexical_sae.intervene.concepts.bias_audit import BiasAudit, audit, evaluate_bias
from lexical_sae.intervene.concepts.candidates import suspect_words
from lexical_sae.intervene.concepts.leace import fit_leace, fit_mean_projection
from lexical_sae.intervene.concepts.leakage import ConceptTexts, LeakageTable, measure_leakage
from lexical_sae.intervene.concepts.plan import SurgeryPlan
from lexical_sae.intervene.concepts.removals import Erasure, ZeroWords
from lexical_sae.intervene.concepts.running import run_surgery
from lexical_sae.intervene.concepts.study import OtherTexts, Study, require_known, study_removal
from lexical_sae.intervene.concepts.swaps import swap_effect, swap_words
from lexical_sae.intervene.concepts.word_choice import Bounds, GroupTexts, choose_words
from lexical_sae.intervene.concepts.word_matrix import decider, read_texts

__all__ = [
    "BiasAudit",
    "Bounds",
    "ConceptTexts",
    "Erasure",
    "GroupTexts",
    "LeakageTable",
    "OtherTexts",
    "Study",
    "SurgeryPlan",
    "ZeroWords",
    "audit",
    "choose_words",
    "decider",
    "evaluate_bias",
    "fit_leace",
    "fit_mean_projection",
    "measure_leakage",
    "read_texts",
    "require_known",
    "run_surgery",
    "study_removal",
    "suspect_words",
    "swap_effect",
    "swap_words",
]
