"""Whatever reads texts with a model of literal words gives every written word a dimension, also those it never met."""

import pytest

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.evaluation.collect import collect, opened_to_corpus
from lexical_sae.evaluation.context.measuring import measure_context
from lexical_sae.evaluation.corpus.diff import diff_models
from lexical_sae.evaluation.corpus.survey import survey
from lexical_sae.evaluation.explainers.benchmark import compare_explainers
from lexical_sae.evaluation.explainers.explainer import ArenaSettings
from lexical_sae.evaluation.metrics.layerwise import attribute_layers
from lexical_sae.evaluation.metrics.scaling_metrics import compute_downstream_loss
from lexical_sae.evaluation.metrics.stability import measure_stability
from lexical_sae.evaluation.names.tests import measure_names, strongest_words
from lexical_sae.evaluation.settings import EvaluationSettings
from lexical_sae.evaluation.suite import evaluate
from lexical_sae.evaluation.whole_documents import read_whole
from lexical_sae.inference import (
    explain,
    explain_model_spans,
    explain_windows,
    find_reasons,
    predict,
    predict_proba,
    score,
)
from lexical_sae.intervene.certificate import NamedTexts
from lexical_sae.intervene.certificate.effect import measure_effect
from lexical_sae.intervene.concepts import SurgeryPlan
from lexical_sae.intervene.concepts.bias_audit import evaluate_bias
from lexical_sae.intervene.concepts.study import study_removal
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.runs.calibrating import calibrate
from lexical_sae.runs.measuring.scoring import score as score_split
from lexical_sae.studies.long_context.measuring import LongContextPlan, measure_long_context
from lexical_sae.studies.post_hoc_sae.comparing import compare_with_saes
from lexical_sae.studies.post_hoc_sae.fitting import SAESettings
from tests.literal import literal_model

NEW = ("boringly", "unhappyness", "filmography", "doggedly", "badness")
TEXTS = tuple(f"{word} {i % 5} {other} film" for i, word in enumerate(NEW * 6) for other in ("a good", "the bad"))
LABELS = tuple(i % 3 for i in range(len(TEXTS)))
SPLIT = TextSplit(TEXTS, LABELS, {"film": tuple(float(i % 2) for i in range(len(TEXTS)))})
DATASET = TextDataset("made", ("negative", "neutral", "positive"), SPLIT, SPLIT, SPLIT)
SMALL = ArenaSettings(texts=2, seeds=1, path_steps=2, shapley_orders=2, captum_steps=2, lime_samples=5, memory_texts=0)
PLAN = SurgeryPlan(
    concept="film",
    positive=("positive",),
    words=("film",),
    swaps={"film": "filmlessness"},
    neighbours=1,
    correlated=2,
)

WAYS = {
    "predict": lambda model: predict(model, TEXTS),
    "predict_proba": lambda model: predict_proba(model, TEXTS),
    "score": lambda model: score(model, TEXTS, LABELS),
    "explain": lambda model: explain(model, TEXTS[:3]),
    "explain_windows": lambda model: explain_windows(model, " ".join(TEXTS)),
    "explain_model_spans": lambda model: explain_model_spans(model, TEXTS[:3]),
    "find_reasons": lambda model: find_reasons(model, TEXTS[0]),
    "calibrate": lambda model: calibrate(model, DATASET),
    "test score": lambda model: score_split(model, SPLIT),
    "evaluate": lambda model: evaluate(model, SPLIT, EvaluationSettings(explainer_texts=0)),
    "stability": lambda model: measure_stability(model, TEXTS[:6]),
    "layers": lambda model: attribute_layers(model, TEXTS[:6]),
    "gate": lambda model: compute_downstream_loss(model, TEXTS[:6], LABELS[:6]),
    "explainers": lambda model: compare_explainers(model, TEXTS[:3], settings=SMALL),
    "names": lambda model: measure_names(model, TEXTS, ("plainlessness",), limit=4),
    "strongest words": lambda model: strongest_words(model, TEXTS, LABELS),
    "context": lambda model: measure_context(model, TEXTS, LABELS, TEXTS, LABELS, DATASET.label_names, limit=4),
    "survey": lambda model: survey(model, TEXTS),
    "diff": lambda model: diff_models(model, literal_model(("badly",)), TEXTS),
    "whole documents": lambda model: read_whole(model, [" ".join(TEXTS), TEXTS[0]]),
    "long context": lambda model: measure_long_context(model, SPLIT, LongContextPlan(lengths=(40,), needles=2)),
    "post-hoc SAE": lambda model: compare_with_saes(model, DATASET, SAESettings(steps=2), train_texts=20, test_texts=9),
    "bias audit": lambda model: evaluate_bias(model, SPLIT, [2]),
    "removal": lambda model: study_removal(model, DATASET, PLAN),
    "certificate": lambda model: measure_effect(model, literal_model(), [7], NamedTexts("made", TEXTS, LABELS)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_written_word_has_a_dimension_wherever_texts_are_read(way, monkeypatch):
    read, own_words = [], LexicalSAE.own_words

    def watched(model, input_ids):
        assert model.literal.new_words(input_ids.tolist()) == ()
        read.append(len(input_ids))
        return own_words(model, input_ids)

    model = literal_model()
    assert model.opened_to([model.tokenizer(TEXTS[0]).input_ids]) is not model, "these words are new"
    monkeypatch.setattr(LexicalSAE, "own_words", watched)
    WAYS[way](model)
    assert read


def test_a_corpus_with_words_that_have_no_dimension_is_refused():
    model = literal_model()
    with pytest.raises(ValueError, match="words without a dimension.*opened_to_corpus"):
        collect(model, TEXTS, [])
    assert collect(*opened_to_corpus(model, TEXTS), []) == len(TEXTS)
