import pytest
import torch

from lexical_sae.data.batches import tokenize
from lexical_sae.data.examples import TextSplit
from lexical_sae.evaluation.collect import read_corpus
from lexical_sae.evaluation.metrics.context_use import context_free_logits
from lexical_sae.evaluation.settings import EvaluationSettings
from lexical_sae.evaluation.suite import evaluate
from lexical_sae.evaluation.views.decisions import decision_rows
from lexical_sae.models.literal_reading import default_activation, read_words
from tests import tiny
from tests.literal import TEXTS, UNSEEN, batch_of, literal_model, opened

SETTINGS = EvaluationSettings(edited_texts=2, layer_texts=2, ungated_texts=2, explainer_texts=0)
ALL = (*TEXTS, *UNSEEN)
SPLIT = TextSplit(ALL, tuple(row % 3 for row in range(len(ALL))))


@pytest.fixture(scope="module")
def shifting():
    return opened(literal_model(), *ALL)


def test_context_free_logits_are_the_bias_and_the_rows_of_the_words(shifting):
    """By hand: each distinct word's row times the default activation of its text."""
    head, found = shifting.head(), {}
    for batch in read_corpus(shifting, ALL, SPLIT.labels, batch_size=3):
        for row, logits in zip(batch.rows, context_free_logits(batch, batch.state.code.defaults), strict=True):
            found[row] = logits - logits.mean()
    for row, text in enumerate(ALL):
        ids, mask = batch_of(shifting, text)
        words = read_words(shifting, ids, mask.bool(), None, defaults_only=True).words.unique()
        expected = head.class_bias + default_activation(mask.sum(1)) * head.word_vectors[words].sum(0)
        torch.testing.assert_close(found[row], expected - expected.mean(), atol=1e-5, rtol=1e-5)


def test_a_model_that_shifts_is_told_from_one_that_does_not(shifting):
    moved = evaluate(shifting, SPLIT, SETTINGS)
    still = evaluate(literal_model(shifting=False), SPLIT, SETTINGS)
    # Literal words have no logit that could go without the gate.
    assert moved.downstream is None
    assert moved.context.shifts.mean > 0
    assert moved.context.texts_without.mean < 1
    assert (still.context.shifts.mean, still.context.texts_without.mean) == (0, 1)
    assert still.context.context_free.mean == still.performance.accuracy.mean
    names = [name for name, *_ in decision_rows(moved)]
    assert names[:3] == ["accuracy", "context-free accuracy", "context shifts"]


def test_models_without_defaults_have_no_such_figures():
    found = evaluate(tiny.model(), SPLIT, SETTINGS)
    assert found.downstream is not None
    assert found.context is None
    assert "context shifts" not in [name for name, *_ in decision_rows(found)]


def test_shifts_are_counted_as_the_model_makes_them(shifting):
    tokens = tokenize(shifting.tokenizer, ALL, shifting.max_length)
    expected = 0
    for row in range(len(ALL)):
        batch = tokens.batch([row])
        read = read_words(shifting, batch.input_ids, batch.attention_mask.bool(), None)
        expected += len(read.words[read.shifts.is_shifted].unique())
    assert evaluate(shifting, SPLIT, SETTINGS).context.shifts.mean == pytest.approx(expected / len(ALL))
