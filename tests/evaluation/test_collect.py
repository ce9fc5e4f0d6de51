import numpy as np
import pandas as pd
import pytest
import torch

from lexical_sae.evaluation.collect import collect, read_corpus
from lexical_sae.inference import explain
from tests import tiny
from tests.evaluation.corpora import TEXTS


@pytest.fixture(scope="module")
def model():
    return tiny.model()


class Keep:
    def __init__(self):
        self.batches = []

    def update(self, batch):
        self.batches.append(batch)


def test_every_text_is_read_once_whatever_the_batches(model):
    for batch_size in (1, 3, 100):
        keep = Keep()
        assert collect(model, TEXTS, [keep], batch_size=batch_size) == len(TEXTS)
        found = {row: text for batch in keep.batches for row, text in zip(batch.rows, batch.texts, strict=True)}
        assert [found[row] for row in range(len(TEXTS))] == TEXTS
        assert max(len(batch.rows) for batch in keep.batches) <= batch_size


def test_contributions_are_those_of_an_explanation(model):
    explanations = explain(model, TEXTS)
    for batch in read_corpus(model, TEXTS, batch_size=3):
        code = batch.state.code
        assert torch.equal(batch.classes, batch.predicted)
        assert torch.allclose(batch.weights * code.values[:, None], batch.contributions, atol=1e-5)
        for i, row in enumerate(batch.rows):
            here = code.text(i)
            names = model.dimensions.names(code.ids[here].tolist())
            ours = dict(zip(names, batch.own_contributions[here].tolist(), strict=True))
            theirs = {word.word: word.contribution for word in explanations[row].words}
            assert ours == pytest.approx(theirs, abs=1e-4)
            assert model.labels["classify"][int(batch.predicted[i])] == explanations[row].label


def test_texts_count_under_their_labels_where_given(model):
    labels = [row % 3 for row in range(len(TEXTS))]
    for batch in read_corpus(model, TEXTS, labels, batch_size=3):
        assert batch.classes.tolist() == [row % 3 for row in batch.rows]
        entries = zip(batch.state.code.rows.tolist(), batch.contributions, strict=True)
        expected = [float(values[batch.classes[i]]) for i, values in entries]
        assert batch.own_contributions.tolist() == expected


def test_a_generator_is_read_batch_by_batch(model):
    given = []

    def texts():
        for row in range(100):
            given.append(row)
            yield "a good film"

    batches = read_corpus(model, texts(), batch_size=1)
    next(batches)
    assert len(given) == 32


def test_progress_ends_at_the_number_of_texts(model):
    steps = []
    collect(model, TEXTS, [], batch_size=3, on_step=steps.append)
    assert [(step.done, step.total) for step in steps] == [(3, 8), (6, 8), (8, 8)]
    steps.clear()
    collect(model, iter(TEXTS), [], batch_size=3, on_step=steps.append)
    assert (steps[-1].done, steps[-1].total) == (8, 8)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("a good film", None, "put your texts in a list"),
        ([], None, "give at least one"),
        (["good", None], None, "text 1 is NoneType"),
        (["good"], [0, 1], "2 labels for 1 texts"),
        (iter(["good"]), [0, 1], "2 labels for 1 texts"),
        (iter(["good", "bad"]), [0], "1 labels for more texts"),
        (["good", "bad"], [0, 3], "text 1: label 3 is not the place of a label; there are 3"),
        (["good", "bad"], [0, 0.5], "text 1: label is float 0.5"),
        (["good", "bad"], [None, 0], "text 0: label is NoneType"),
        (["good"], ["positiv"], "text 0: label 'positiv' is not a label.*did you mean 'positive'"),
    ],
    ids=[
        "one text",
        "none",
        "no string",
        "many labels",
        "late many",
        "few labels",
        "unknown",
        "half",
        "missing",
        "misspelt",
    ],
)
def test_what_cannot_be_read_is_refused(model, texts, labels, message):
    with pytest.raises(ValueError, match=message):
        collect(model, texts, [], labels)


@pytest.mark.parametrize("kind", [pd.Series, list])
def test_labels_are_taken_by_place_whatever_the_rows_of_a_table_were_called(model, kind):
    texts, labels = ["good", "a bad film is", "the plot"], [0, 1, 2]
    given = pd.Series(labels, index=[2, 0, 1]) if kind is pd.Series else labels
    (batch,) = read_corpus(model, texts, given)
    assert dict(zip(batch.rows, batch.classes.tolist(), strict=True)) == {0: 0, 1: 1, 2: 2}


def test_labels_go_by_name_or_place(model):
    (named,) = read_corpus(model, ["good", "bad"], ["positive", "negative"])
    (placed,) = read_corpus(model, ["good", "bad"], np.array([2, 0]))
    assert named.classes.tolist() == placed.classes.tolist() == [2, 0]


def test_a_damaged_model_is_not_averaged():
    model = tiny.model()
    with torch.no_grad():
        model.head().class_bias.fill_(torch.nan)
    with pytest.raises(FloatingPointError, match="weights are damaged"):
        collect(model, TEXTS, [])
