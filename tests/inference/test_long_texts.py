"""Long texts read whole: one decision, one exact sum, places in all of the text, and filler that stays filler."""

import threading

import pytest
import torch

from lexical_sae.data.sources.neutral_filler import neutral_sentences
from lexical_sae.evaluation.collect import opened_to_corpus, read_corpus
from lexical_sae.evaluation.explainers.attention import received_attention
from lexical_sae.evaluation.explainers.case import read_case
from lexical_sae.evaluation.metrics.layerwise import attribute_layers
from lexical_sae.evaluation.whole_documents import read_whole
from lexical_sae.explorer.occurrences import read_occurrences
from lexical_sae.inference import explain, explain_windows, find_reasons, predict, predict_proba
from lexical_sae.inference.reading import answers
from lexical_sae.intervene.suppression import SuppressedModel
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.word_views import cut_to_window, without_context
from tests.literal import batch_of, literal_model

PART = "the dogs play near the bank, and money is not happy! a very boring church. "
LONG = f"{PART * 3}it was a badly filmed plot, not a wonderful film. {PART * 2}and the acting was terrible"
DECIDING = "acting"


@pytest.fixture(scope="module")
def model():
    return literal_model(max_length=16)


def logits_of(model, *texts, batch_size=32):
    return torch.stack(list(answers(model, texts, batch_size, lambda read: read.state.logits)))


def test_the_decision_on_a_long_text_is_one_exact_sum(model):
    why = explain(model, LONG)
    assert len(why.spans) > 2 * model.window
    assert why.tokens_cut == 0
    assert why.identity_error < 1e-5
    for total in (sum(word.contribution for word in why.words), sum(span.score for span in why.spans) + why.whole_text):
        assert total + why.bias == pytest.approx(why.explained, abs=1e-4)
    assert sum(bool(word.context) for word in why.words) > 1


def test_places_are_those_of_the_whole_text(model):
    why = explain(model, LONG)
    assert [LONG[span.start : span.end] for span in why.spans] == [span.text for span in why.spans]
    assert why.spans[-1].text == "terrible"
    (last,) = [word for word in why.words if word.word == "terrible"]
    assert LONG[last.start : last.end] == "terrible"


def test_removing_a_word_of_several_windows_is_suppressing_it(model):
    why = explain(model, LONG)
    everywhere = next(word for word in why.words if word.word == "church")
    before, without = logits_of(model, LONG)[0], logits_of(SuppressedModel(model, ["church"]), LONG)[0]
    target = model.labels["classify"].index(why.target)

    def centred(logits):
        return float(logits[target] - logits.mean())

    assert LONG.count("church") > 3
    assert centred(without) - centred(before) == pytest.approx(-everywhere.contribution, abs=1e-5)
    assert everywhere.if_removed == pytest.approx(-everywhere.contribution, abs=1e-5)


def test_the_smallest_flip_set_of_a_long_text_flips_it(model):
    reasons = find_reasons(model, LONG)
    assert reasons.tokens_cut == 0
    assert reasons.flip.words
    assert predict(SuppressedModel(model, reasons.flip.words), LONG) == reasons.flip.label != reasons.label


def test_batches_threads_and_order_change_nothing(model):
    texts = [LONG, PART, f"{LONG} {LONG}", "a good film", LONG[:60]]
    alone = torch.cat([logits_of(model, text) for text in texts])
    for batch_size in (1, 2, 5):
        assert torch.allclose(logits_of(model, *texts, batch_size=batch_size), alone, atol=1e-5)
    assert torch.allclose(logits_of(model, *reversed(texts)).flip(0), alone, atol=1e-5)
    found = [None] * 4

    def read(i):
        found[i] = logits_of(model, *texts)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(one, found[0]) for one in found)


def test_a_deciding_word_after_the_first_window_is_found():
    """A planted table: only one word has weight, and it stands behind what one window reads."""
    planted = literal_model(max_length=16, shifting=False)
    head = planted.head()
    with torch.no_grad():
        head.word_vectors.zero_()
        head.class_bias.copy_(torch.tensor([1.0, 0.0, 0.0]))
        head.word_vectors[planted.dimensions.vocabulary.names.index(DECIDING)] = torch.tensor([-9.0, 0.0, 9.0])
        head.unseen_weights.zero_()
    filler = PART * 4
    assert predict(planted, filler) == "negative"
    assert predict(planted, filler + DECIDING) == "positive"
    assert predict(cut_to_window(planted), filler + DECIDING) == "negative"
    (word,) = [word for word in explain(planted, filler + DECIDING).words if word.contribution]
    assert (word.start, word.end) == (len(filler), len(filler) + len(DECIDING))


def test_filler_far_away_changes_no_state(model):
    """In another order: a word's state is that of its own window, wherever that stands in the text."""
    source = neutral_sentences(3)
    filler = [next(source) for _ in range(12)]
    texts = [f"{PART * 4}{' '.join(order)} {PART * 4}" for order in (filler, filler[::-1])]
    ids, mask = batch_of(model, *texts)
    assert not ids[0].equal(ids[1])
    with torch.no_grad():
        one, other = model.encoder_states(ids, mask)
    kept = 4 * len(model.tokenizer(PART).input_ids) - 2 * model.window
    assert kept > model.window
    assert torch.allclose(one[:kept], other[:kept], atol=1e-6)
    assert torch.allclose(one[-kept:], other[-kept:], atol=1e-6)
    assert not torch.allclose(one, other, atol=1e-3)


def test_the_table_alone_reads_whole_and_asks_no_encoder(model):
    table = without_context(model)
    assert not table.asks_encoder
    assert explain(table, LONG).words[0].context == 0
    assert len(explain(table, LONG).words) == len(explain(model, LONG).words)


def test_beyond_the_most_windows_a_text_is_cut_and_says_so(caplog):
    few = literal_model(max_length=16, most_windows=2)
    why = explain(few, LONG)
    assert why.tokens_cut > 0
    assert any("not read" in note for note in why.not_explained)
    assert f"{few.max_length} tokens" in caplog.text
    assert few.max_length == 16 + 14 - 3


def test_a_model_that_cuts_reads_one_window(model):
    cut = cut_to_window(model)
    assert isinstance(cut, LexicalSAE)
    assert cut.max_length == 16
    assert explain(cut, LONG).tokens_cut > 0
    assert [word.word for word in explain(cut, LONG).words] != [word.word for word in explain(model, LONG).words]


def test_every_reader_reads_whole(model):
    probabilities = predict_proba(model, LONG)
    expected = logits_of(model, LONG)[0]
    assert torch.allclose(model.probabilities(expected), probabilities, atol=1e-6)
    opened, texts = opened_to_corpus(model, [LONG])
    (batch,) = read_corpus(opened, texts)
    assert torch.allclose(batch.state.logits[0], expected, atol=1e-5)
    assert torch.allclose(read_whole(model, [LONG]).logits[0], expected, atol=1e-5)
    _, (words,) = read_occurrences(model, [LONG])
    assert words.starts[-1] == LONG.rindex("terrible")
    assert words.tokens_cut == 0


def test_windows_can_still_be_explained_one_by_one(model):
    parts = explain_windows(model, LONG)
    assert len(parts) > 3
    assert parts[-1].end == len(LONG)


def test_causes_of_shifts_are_looked_for_in_their_window(model):
    caused = [word for word in explain(model, LONG, causes=True).words if word.cause]
    assert caused
    for word in caused:
        assert LONG[word.cause.start : word.cause.end] == word.cause.word
        assert abs(word.cause.start - word.start) < len(PART) + 20


def test_layers_are_counted_once_however_many_windows(model, monkeypatch):
    from lexical_sae.models import long_texts

    monkeypatch.setattr(long_texts, "WINDOWS_AT_ONCE", 2)
    found = attribute_layers(model, [LONG, PART])
    assert len(found.layers) == 2


def test_gradient_methods_get_the_first_window(model):
    case = read_case(cut_to_window(model), 0, LONG)
    assert received_attention(case).shape == (model.window,)
