"""Removing a concept: which words carry it, what their removal closes and costs, and what still leaks.

    run_surgery                     a study, the edited model, its certificate and a page, in a folder
    study_removal, SurgeryPlan      everything below, on one model and data set
    measure_leakage                 how well probes still read the concept from the words that are left
    fit_leace, fit_mean_projection  erasure by linear algebra, to compare with
    swap_words, swap_effect         whether swapping a word in the text moves the score
    evaluate_bias, audit            gaps between groups, with intervals
    choose_words                    the smallest set of words that closes a gap

Zeroing a word is exact about the word (`splade.intervene`). What is here measures the concept, which is another thing.
"""

from splade.config.surgery_plan import SurgeryPlan
from splade.surgery.auditing import BiasAudit, audit, evaluate_bias
from splade.surgery.candidates import suspect_words
from splade.surgery.codes import decider, read_texts
from splade.surgery.edits import Erasure, ZeroWords
from splade.surgery.leace import fit_leace, fit_mean_projection
from splade.surgery.leakage import ConceptTexts, LeakageTable, measure_leakage
from splade.surgery.optimiser import Bounds, GroupTexts, choose_words
from splade.surgery.running import run_surgery
from splade.surgery.study import OtherTexts, Study, require_known, study_removal
from splade.surgery.swaps import swap_effect, swap_words

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
