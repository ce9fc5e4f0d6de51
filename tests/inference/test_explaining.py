import math

import pytest
import torch

from lexical_sae.data.batches import tokenize
from lexical_sae.inference import explain, explain_model_spans, explain_stream, predict
from lexical_sae.inference.labels import check_method
from lexical_sae.models.config import ModelConfig
from tests import tiny

TEXTS = ["a good film", "", "terrible boring plot and awful acting", "good", "very " * 100]
METHODS = ["dla", "leave_one_out", "path"]


@pytest.fixture(scope="module")
def model():
    """A tiny model whose head computes in double precision, so that identities are sharp."""
    made = tiny.model()
    made.head().double()
    with torch.no_grad():
        # A new head has no biases, and then all methods agree.
        made.head().hidden_bias.normal_(std=0.1)
        made.head().class_bias.normal_(std=0.1)
    return made


def dense_state(model, text):
    batch = tokenize(model.tokenizer, [text], model.max_length).batch([0])
    with torch.no_grad():
        return model.classify_document(batch.input_ids, batch.attention_mask)


def in_direction(logits, target, contrast):
    return float(logits[target] - (logits.mean() if contrast is None else logits[contrast]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("target", "contrast"), [(None, None), (0, None), (None, 1), (2, 0)])
def test_words_and_spans_each_sum_with_the_bias_to_what_is_explained(model, method, target, contrast):
    names = model.labels["classify"]
    for text, why in zip(TEXTS, explain(model, TEXTS, target, contrast, method), strict=True):
        logits = dense_state(model, text).logits[0]
        expected = in_direction(logits, names.index(why.target), contrast)
        assert why.explained == pytest.approx(expected, abs=1e-5)
        words = math.fsum(word.contribution for word in why.words)
        assert words + why.bias == pytest.approx(why.explained, abs=1e-10)
        assert math.fsum(span.score for span in why.spans) + why.whole_text == pytest.approx(words, abs=1e-10)
        assert why.identity_error <= 1e-10
        assert why.contrast == (None if contrast is None else names[contrast])
        assert why.method == method
        assert why.label == names[int(logits.argmax())]
        assert dict(why.probabilities) == pytest.approx(dict(zip(names, logits.softmax(-1).tolist(), strict=True)))
        assert why.probability == max(dict(why.probabilities).values())


@pytest.mark.parametrize("contrast", [None, 1])
def test_without_it_is_what_happens_when_the_word_is_zeroed(model, contrast):
    names, dimensions = model.labels["classify"], model.dimensions
    place = {dimensions[i].name: i for i in range(len(dimensions))}
    for text in TEXTS[:3]:
        why = explain(model, text, contrast=contrast)
        vector = dense_state(model, text).sparse_vector[0]
        target = names.index(why.target)
        head = model.head()
        on = head.word_vectors.T @ vector + head.hidden_bias > 0
        for word in why.words:
            less = vector.clone()
            less[place[word.word]] = 0
            with torch.no_grad():
                before, after = head(vector).logits, head(less).logits
            fall = in_direction(before, target, contrast) - in_direction(after, target, contrast)
            assert word.if_removed == pytest.approx(-fall, abs=1e-6)
            assert word.label_if_removed == names[int(after.argmax())]
            assert word.region_changed == bool(((head.word_vectors.T @ less + head.hidden_bias > 0) != on).any())


def test_methods_answer_different_questions_and_leave_one_out_is_removal(model):
    by_method = {method: explain(model, TEXTS[2], method=method) for method in METHODS}
    contributions = {m: {w.word: w.contribution for w in why.words} for m, why in by_method.items()}
    assert contributions["dla"] != contributions["path"] != contributions["leave_one_out"]
    assert all(word.contribution == -word.if_removed for word in by_method["leave_one_out"].words)
    empty = torch.zeros(len(model.dimensions), dtype=torch.float64)
    with torch.no_grad():
        logits = model.head()(empty).logits
    target = model.labels["classify"].index(by_method["path"].target)
    assert by_method["path"].bias == pytest.approx(in_direction(logits, target, None), abs=1e-10)


def test_a_place_is_a_word_of_the_text_and_holds_what_was_won_there(model):
    why = explain(model, "a good film and a good plot")
    spans = {(span.start, span.end): span for span in why.spans}
    assert [span.text for span in why.spans] == ["a", "good", "film", "and", "a", "good", "plot"]
    for (start, end), span in spans.items():
        won = [word.contribution for word in why.words if (word.start, word.end) == (start, end)]
        assert math.fsum(won) == pytest.approx(span.score, abs=1e-10)
    nowhere = [word.contribution for word in why.words if word.start is None]
    assert math.fsum(nowhere) == pytest.approx(why.whole_text, abs=1e-10)
    placed = [word for word in why.words if word.start is not None]
    assert placed
    for word in placed:
        assert word.is_expansion == (why.text[word.start : word.end] != word.word)


def test_attention_shares_a_word_among_the_places_that_gave_it():
    model = tiny.model(ModelConfig(gate="drelu", pool="attention"))
    why = explain(model, TEXTS[2])
    total = math.fsum(span.score for span in why.spans) + why.whole_text + why.bias
    assert total == pytest.approx(why.explained, abs=1e-4)
    assert any(span.score for span in why.spans)
    assert any(word.start is None for word in why.words)


def test_a_bcos_head_explains_but_has_no_path():
    model = tiny.model(ModelConfig(gate="drelu", head="bcos"))
    why = explain(model, TEXTS[0])
    assert why.bias == 0
    assert math.fsum(w.contribution for w in why.words) == pytest.approx(why.explained, abs=1e-4)
    with pytest.raises(ValueError, match="no path attribution"):
        explain(model, TEXTS[0], method="path")


def test_the_top_attributed_word_comes_first(model):
    for why in explain(model, TEXTS):
        sizes = [abs(word.contribution) for word in why.words]
        assert sizes == sorted(sizes, reverse=True)
        assert all(word.activation > 0 for word in why.words)


def test_one_text_gives_one_explanation_and_a_list_gives_a_list(model):
    alone, (listed,) = explain(model, "good"), explain(model, ["good"])
    assert alone == listed
    assert alone.label == listed.label


def test_answers_come_in_the_order_of_the_texts_whatever_the_batches(model):
    together = explain(model, TEXTS, batch_size=2)
    assert [why.text for why in together] == TEXTS
    for text, why in zip(TEXTS, together, strict=True):
        alone = explain(model, text)
        assert alone.label == why.label
        assert alone.probability == pytest.approx(why.probability, abs=1e-5)


def test_what_was_not_asked_for_is_not_there(model):
    why = explain(model, TEXTS[0], effects=False, places=False)
    assert why.spans is None
    assert why.whole_text is None
    for w in why.words:
        assert w.if_removed is w.region_changed is w.label_if_removed is w.start is w.is_expansion is None
    full = explain(model, TEXTS[0])
    assert [(w.word, w.contribution) for w in full.words] == [(w.word, w.contribution) for w in why.words]


@pytest.mark.parametrize("contrast", ["negative", "neutral", "positive"])
def test_with_a_contrast_the_most_probable_other_label_speaks(model, contrast):
    for why in explain(model, TEXTS, contrast=contrast):
        others = {label: p for label, p in why.probabilities if label != contrast}
        assert why.target == max(others, key=others.__getitem__)


def test_labels_go_by_name_or_place(model):
    assert explain(model, "good", target="positive") == explain(model, "good", target=2)
    assert explain(model, "good", contrast="negative") == explain(model, "good", contrast=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "positiv"}, "target 'positiv' is not a label.*did you mean 'positive'.*'negative', 'neutral'"),
        ({"contrast": 3}, "contrast 3 is not the place of a label; there are 3"),
        ({"target": -1}, "target -1 is not the place"),
        ({"target": True}, "target is bool True"),
        ({"target": "neutral", "contrast": 1}, "target and contrast are both 'neutral'"),
        ({"method": "pth"}, "method 'pth' is unknown; did you mean 'path'"),
        ({"batch_size": 0}, "batch_size is 0"),
    ],
    ids=["name", "place", "negative", "bool", "itself", "method", "batch"],
)
def test_what_the_model_does_not_have_is_refused(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        explain(model, "good", **arguments)


@pytest.mark.parametrize("method", [None, ["dla"], 3, "DLA "])
def test_a_method_that_is_no_name_is_refused_too(method):
    with pytest.raises(ValueError, match="is unknown.*Choose dla, path"):
        check_method(method, ("dla", "path"))


def test_a_model_that_only_tags_says_so():
    model = tiny.model()
    del model.heads["classify"]
    with pytest.raises(ValueError, match="no head 'classify'; it has: tag"):
        explain(model, "good")


def test_no_special_token_is_ever_a_reason(model):
    names = {word.word for why in explain(model, TEXTS) for word in why.words}
    assert names
    assert not names & set(tiny.SPECIALS)


def test_a_stream_reads_ahead_only_a_few_batches(model):
    taken = []

    def endless():
        while True:
            taken.append(len(taken))
            yield "good"

    stream = explain_stream(model, endless(), batch_size=1, places=False)
    assert not taken
    assert [next(stream) for _ in range(3)] == [explain(model, "good", places=False)] * 3
    assert len(taken) <= 20


def test_a_stream_refuses_a_wrong_label_before_it_reads(model):
    with pytest.raises(ValueError, match="not a label"):
        explain_stream(model, ["good"], target="nonsense")


def test_spans_are_words_and_never_subwords(model):
    text = "unhappy films"
    for method in ("routed", "sum", "max_abs"):
        assert [word for word, _ in explain_model_spans(model, text, method)] == ["unhappy", "films"]
    routed = explain_model_spans(model, [text, "good"])
    assert routed[0] == [(span.text, span.score) for span in explain(model, text).spans]
    assert len(routed) == 2
    for texts in (text, []):
        with pytest.raises(ValueError, match="method 'mean' is unknown.*Choose routed, sum, max_abs"):
            explain_model_spans(model, texts, "mean")


def test_own_subwords_score_what_their_dimensions_contribute(model):
    text = "a good film and a bad plot"
    said = {word.word: word.contribution for word in explain(model, text, contrast=0).words}
    for method in ("sum", "max_abs"):
        scores = explain_model_spans(model, text, method, contrast=0)
        assert scores == [(word, pytest.approx(said.get(word, 0.0), abs=1e-12)) for word in text.split()]
    assert set(said) & set(text.split())


def test_explaining_needs_no_more_passes_of_the_encoder_than_predicting(model):
    passes = []
    watch = model.backbone.encoder.register_forward_pre_hook(lambda *_: passes.append(1))
    predict(model, TEXTS, batch_size=2)
    assert len(passes) == 3
    for method in METHODS:
        passes.clear()
        explain(model, TEXTS, method=method, batch_size=2)
        assert len(passes) == 3
    watch.remove()


def test_words_that_the_tokenizer_cuts_up_are_named_where_no_part_may_speak():
    piece = next(name for name in tiny.WORDS if name.startswith("##"))
    text = f"good film{piece.removeprefix('##')} bad"
    settings = {"gate": "drelu", "neighbourhood": {"words_per_token": 4}}
    near = tiny.model(ModelConfig.model_validate(settings))
    near.start_from_backbone()
    assert f'"film{piece.removeprefix("##")}"' in explain(near, text).not_explained[0]
    assert not any("cuts up" in line for line in explain(near, "good film").not_explained)
    free = tiny.model(ModelConfig.model_validate({"gate": "drelu"}))
    assert not any("cuts up" in line for line in explain(free, text).not_explained)
