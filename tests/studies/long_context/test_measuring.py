import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from lexical_sae.data import TextSplit
from lexical_sae.data.encoding import encode
from lexical_sae.evaluation.whole_documents import pool_entries, read_whole
from lexical_sae.inference.windows import cut_windows
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.literal_reading import default_activation
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.report.studies.long_context import long_context_page
from lexical_sae.report.tables import tables_html
from lexical_sae.studies.long_context.documents import FILLER_ALONE, PLACES, filler_alone, hide_needle
from lexical_sae.studies.long_context.measuring import (
    LongContextPlan,
    _compare,
    _Decision,
    measure_long_context,
    rank_correlation,
)
from tests import tiny
from tests.literal import batch_of, literal_model, opened


def count(text: str) -> int:
    return len(text.split())


# Documents


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("length", [12, 40, 200])
@pytest.mark.parametrize("seed", range(5))
def test_a_document_is_nearly_as_long_as_asked_and_holds_the_needle_at_its_place(place, length, seed):
    document = hide_needle("NEEDLE in hay", length, place, count, seed)
    assert document is not None
    assert length - 12 <= count(document) <= length
    before, after = (count(part) for part in document.split("NEEDLE in hay"))
    assert {"start": before == 0, "middle": abs(before - after) <= 24, "end": after == 0}[place]


def test_the_needle_is_whole_or_there_is_no_document():
    assert hide_needle("one two three", 3, "middle", count, 0) == "one two three"
    assert hide_needle("one two three", 2, "middle", count, 0) is None
    assert 30 <= count(filler_alone(40, count, 0)) <= 40


# Decisions on whole documents


def test_a_word_is_as_strong_as_in_its_strongest_window():
    rows, ids = torch.tensor([0, 1, 0, 0]), torch.tensor([7, 7, 7, 2])
    pooled = pool_entries(rows, ids, torch.tensor([1.0, 5.0, 3.0, 2.0]), (3, 9))
    dense = torch.zeros(3, 9)
    dense[0, 7], dense[0, 2], dense[1, 7] = 3, 2, 5
    assert torch.equal(pooled.dense(), dense)
    assert torch.equal(SparseCode.from_dense(dense).offsets, pooled.offsets)


@pytest.fixture(scope="module")
def model():
    return tiny.model()


def test_a_short_text_is_decided_as_ever_and_a_long_one_by_all_its_windows(model):
    long = "the acting was terrible and the plot boring " * 20
    texts = ["a good film", long]
    state = read_whole(model, texts)
    cut = [long[start:end] for start, end in cut_windows(model.tokenizer, long, model.max_length, 0.25)]
    assert len(cut) > 2
    short, *windows = (read_whole(model, [text]) for text in (texts[0], *cut))
    torch.testing.assert_close(state.logits[0], short.logits[0], atol=1e-4, rtol=1e-4)
    strongest = torch.stack([window.code.dense()[0] for window in windows]).amax(0)
    torch.testing.assert_close(state.code.dense()[1], strongest, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(state.logits[1], model.head()(strongest[None]).logits[0], atol=1e-3, rtol=1e-4)


def test_literal_words_of_a_long_text_have_its_default_and_the_mean_shift_of_their_windows():
    long = "the acting was terrible and the plot boringly filmed badly " * 20
    model = opened(literal_model(), long)
    short, whole = read_whole(model, ["a good film"]), read_whole(model, [long])
    ids, mask = batch_of(model, "a good film")
    torch.testing.assert_close(short.logits, model.classify_document(ids, mask).logits)
    factors = {}
    for start, end in cut_windows(model.tokenizer, long, model.max_length, 0.25):
        code = read_whole(model, [long[start:end]]).code
        for word, factor in zip(code.ids.tolist(), (code.values / code.defaults).tolist(), strict=True):
            factors.setdefault(word, []).append(factor)
    scale = float(default_activation(torch.tensor([len(encode(model.tokenizer, [long])[0])]))[0])
    expected = [scale * sum(factors[word]) / len(factors[word]) for word in whole.code.ids.tolist()]
    assert len(factors) == len(expected)
    torch.testing.assert_close(whole.code.values, torch.tensor(expected))
    said = model.head().class_bias + (whole.code.values[:, None] * model.head().word_vectors[whole.code.ids]).sum(0)
    torch.testing.assert_close(whole.logits[0], said)


def test_windows_of_a_model_that_does_not_pool_by_the_maximum_are_refused():
    with pytest.raises(ValueError, match="pools by attention; use a model with model.pool max"):
        read_whole(tiny.model(ModelConfig(gate="drelu", pool="attention")), ["a good film"])


# Comparisons


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=9))
def test_rank_correlation_is_spearmans(pairs):
    ours, theirs = ([float(value) for value in side] for side in zip(*pairs, strict=True))
    found = rank_correlation(ours, theirs)
    if len(set(ours)) < 2:
        assert math.isnan(found)
    elif len(set(theirs)) < 2:
        assert found == 0.0
    else:
        assert found == pytest.approx(float(spearmanr(ours, theirs).statistic))  # pyright: ignore[reportAttributeAccessIssue]


def told(predicted: int, **words: float) -> _Decision:
    return _Decision(predicted, {ord(name): torch.tensor([-value, value]).double() for name, value in words.items()})


def test_a_document_that_says_the_same_is_the_same():
    alone = told(1, a=3.0, b=-1.0, c=0.5)
    same = _compare(alone, alone, label=1).tolist()
    assert same == pytest.approx([1, 1, 1, 1, 1, 3])
    filled = _compare(alone, told(0, a=3.0, x=3.0), label=1).tolist()
    assert filled[:2] == [0, 0]
    assert filled[3:] == pytest.approx([1 / 3, 1 / 2, 2])
    empty = _compare(told(1), told(1), label=1)
    assert empty.isnan().tolist() == [False, False, True, True, True, False]


def test_every_length_and_place_is_measured_beside_filler_alone(model):
    split = TextSplit(("a good film", "awful plot and boring acting", "happy dogs " * 30), (2, 0, 1))
    steps = []
    plan = LongContextPlan(lengths=(20, 80), needles=3)
    result = measure_long_context(model, split, plan, steps.append)
    assert [(point.length, point.place) for point in result.points] == [
        (length, place) for length in (20, 80) for place in (*PLACES, FILLER_ALONE)
    ]
    # The third needle is longer than the shorter documents, so their control leaves it out too.
    assert [point.same_label.count for point in result.points] == [2, 2, 2, 2, 3, 3, 3, 3]
    assert (steps[-1].done, steps[-1].total) == (8, 8)
    assert result == measure_long_context(model, split, plan)
    written = json.loads(json.dumps(result.as_dict()))
    page = tables_html(long_context_page(written))
    for part in ("20 tokens", "80 tokens", "middle (2 texts)", FILLER_ALONE):
        assert part in page


def test_a_document_that_is_the_needle_alone_keeps_everything(model):
    split = TextSplit(("a good film", "awful plot and boring acting"), (2, 0))
    result = measure_long_context(model, split, LongContextPlan(lengths=(5,), needles=2))
    for point in result.points[:3]:
        assert point.same_label.mean == point.top_words.mean == point.needle_share.mean == 1.0
        assert point.rank_correlation.mean == pytest.approx(1.0)
        assert point.accuracy == result.alone_accuracy


def test_no_text_is_refused(model):
    with pytest.raises(ValueError, match="at least one"):
        measure_long_context(model, TextSplit((), ()))
