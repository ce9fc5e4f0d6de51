import json

import pytest

from lexical_sae.evaluation.collect import collect
from lexical_sae.evaluation.corpus.features import FeatureCollector
from lexical_sae.evaluation.intervals import mean_and_interval
from lexical_sae.evaluation.names.lexical import LexicalSAENames
from lexical_sae.models.config import ModelConfig
from tests import tiny
from tests.evaluation.corpora import TEXTS

LONG = "the " * 100 + "good"


@pytest.fixture(scope="module")
def model():
    return tiny.model()


def pages_of(model, dimensions, texts, top=3, batch_size=3):
    collectors = [FeatureCollector(model, i, top) for i in dimensions]
    collect(model, texts, collectors, batch_size=batch_size)
    return [collector.page() for collector in collectors]


def test_a_page_says_what_reading_text_by_text_says(model):
    readings = LexicalSAENames(model).contributions(TEXTS)
    words = range(len(tiny.SPECIALS), len(model.dimensions))
    is_seen = False
    for dimension, page in zip(words, pages_of(model, words, TEXTS), strict=True):
        found = {row: w for row, r in enumerate(readings) for w in r.words if w.dimension == dimension}
        letters = model.dimensions[dimension].name.removeprefix("##")
        own = {i for i in words if model.dimensions[i].name.removeprefix("##") == letters}
        written = {row for row, reading in enumerate(readings) if own & reading.written}
        assert (page.texts, page.active_in) == (len(TEXTS), len(found))
        assert page.name == model.dimensions[dimension].name
        if not found:
            assert (page.activation, page.pushes, page.triggers, page.top_texts) == (None, {}, (), ())
            continue
        is_seen = True
        assert page.activation == pytest.approx(sum(w.activation for w in found.values()) / len(found), abs=1e-5)
        for index, label in enumerate(model.labels["classify"]):
            expected = mean_and_interval([word.contributions[index] for word in found.values()])
            push = page.pushes[label]
            assert push.mean == pytest.approx(expected.mean, abs=1e-5)
            assert (push.low, push.high) == (
                pytest.approx(expected.low, abs=1e-4),
                pytest.approx(expected.high, abs=1e-4),
            )
        strongest = sorted(found, key=lambda row: (-found[row].activation, row))[:3]
        assert [firing.activation for firing in page.top_texts] == pytest.approx(
            [found[row].activation for row in strongest], abs=1e-5
        )
        for firing in page.top_texts:
            word = found[firing.row]
            assert firing.text == TEXTS[firing.row]
            assert firing.span == word.span
            assert firing.trigger == ("(whole text)" if word.span is None else firing.text[slice(*word.span)])
            assert firing.predicted == model.labels["classify"][readings[firing.row].label]
            assert list(firing.contributions.values()) == pytest.approx(list(word.contributions), abs=1e-5)
            assert firing.is_written == (firing.row in written)
        assert sum(trigger.count for trigger in page.triggers) == len(found)
        assert page.triggers[0].share == page.triggers[0].count / len(found)
        assert page.written_in == len(written)
        assert page.active_where_written == len(written & found.keys())
    assert is_seen


def test_pages_do_not_depend_on_the_batches(model):
    one, other = (pages_of(model, range(6, 40), TEXTS, batch_size=size) for size in (1, 8))
    for a, b in zip(one, other, strict=True):
        assert (a.active_in, a.triggers, a.written_in) == (b.active_in, b.triggers, b.written_in)
        assert [firing.activation for firing in a.top_texts] == pytest.approx(
            [firing.activation for firing in b.top_texts], abs=1e-4
        )


def test_the_word_is_written_in_any_case_and_only_where_the_model_saw_it(model):
    (good,) = model.dimensions.find("good")
    (page,) = pages_of(model, [good], ["GOOD", "goodness", "a Good film", LONG, "bad"])
    assert page.written_in == 3  # "goodness" is cut into good and ##ness; the end of the long text was not read


def test_a_word_in_pieces_is_written_too(model):
    (page,) = pages_of(model, [model.dimensions.find("happy")[0]], ["unhappy", "happy", "sad"])
    # ##happy has the letters of the word.
    assert page.written_in == 2


def test_of_equally_strong_texts_the_first_stay(model):
    texts = ["a good film"] * 5
    dimension = next(i for i, page in enumerate(pages_of(model, range(len(model.dimensions)), texts)) if page.active_in)
    (page,) = pages_of(model, [dimension], texts, top=2, batch_size=5)
    assert [firing.row for firing in page.top_texts] == [0, 1]


def test_attention_pooling_names_the_whole_text():
    model = tiny.model(ModelConfig(gate="drelu", pool="attention"))
    pages = [page for page in pages_of(model, range(len(model.dimensions)), TEXTS) if page.active_in]
    assert pages
    for page in pages:
        assert [trigger.token for trigger in page.triggers] == ["(whole text)"]
        assert all(firing.span is None for firing in page.top_texts)


def test_pages_are_plain_data(model):
    pages = pages_of(model, range(len(model.dimensions)), [*TEXTS, "lone \ud800 surrogate"])
    plain = json.loads(json.dumps([page.as_dict() for page in pages]))
    assert [page["name"] for page in plain] == [page.name for page in pages]


def test_unknown_tokens_are_triggers_and_special_ones_the_whole_text(model):
    collector = FeatureCollector(model, 6)
    ids = [model.tokenizer.cls_token_id, model.tokenizer.unk_token_id, 9]
    assert [collector._trigger(ids, position) for position in (0, 1, 2, -1)] == [None, ids[1], 9, None]


def test_triggers_that_are_no_words_are_summed_unless_all_are_asked_for(model):
    found = False
    collectors = [FeatureCollector(model, i) for i in range(len(tiny.SPECIALS), len(model.dimensions))]
    collect(model, TEXTS, collectors)
    for collector in collectors:
        listed, every = (collector.page(99, all_tokens=all_tokens).triggers for all_tokens in (False, True))
        noise = [trigger for trigger in every if trigger.token[:1] != "(" and not trigger.token[:1].isalpha()]
        kept = [trigger for trigger in every if trigger not in noise]
        assert list(listed[: len(kept)]) == kept
        assert [trigger.count for trigger in listed[len(kept) :]] == [sum(t.count for t in noise)][: len(noise)]
        found |= bool(noise)
    assert found
