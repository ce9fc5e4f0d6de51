"""Whatever the text, its words, the whole text and the bias sum to what is explained, and places are real places."""

import math

import pytest
import torch

from lexical_sae.explanation import Explanation
from lexical_sae.inference import explain, explain_model_spans, explain_windows, predict
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from tests import tiny

TOKENIZERS = {"wordpiece": tiny.wordpiece, "byte_bpe": tiny.byte_bpe, "sentencepiece": tiny.sentencepiece}
TEXTS = {
    "empty": "",
    "blank": " \t\u00a0\u3000 ",
    "one letter": "a",
    "only specials": "[CLS] [SEP] [MASK] [PAD] [UNK] <s> </s>",
    "emoji": "👩‍👩‍👧🇩🇪👍🏽",
    "unknown": "ꙮ ꙮꙮ",
    "right to left": "שלום film سلام good",
    "line ends": "good\r\nbad\rfilm\n\n",
    "zero width": "go\u200bod\u200d \ufeff film\u2060",
    "accents apart": "cafe\u0301 n\u0303 good",
    "control": "good\x00\x01\x07 film\x7f",
    "half a pair": "good \ud83d film \udc00",
    "duplicates": "good good GOOD good, good",
    "long": "a good film is not a bad film " * 60,
    "long word": "film" * 5000,
    "html": '<script>alert("good")</script> {{7*7}} \x1b[31mred [bold]film',
}


@pytest.fixture(scope="module", params=TOKENIZERS)
def model(request):
    """A tiny model on each kind of tokenizer, its head in double precision."""
    tokenizer = TOKENIZERS[request.param]()
    torch.manual_seed(1)
    backbone = Backbone(tiny.masked_lm(vocab_size=len(tokenizer)), tokenizer).eval()
    made = LexicalSAE(ModelConfig(gate="drelu"), backbone, {"classify": ["no", "yes"]}).eval()
    made.head().double()
    with torch.no_grad():
        made.head().hidden_bias.normal_(std=0.1)
        made.head().class_bias.normal_(std=0.1)
    return made


@pytest.mark.parametrize("method", ["dla", "leave_one_out", "path"])
def test_places_and_words_each_sum_to_the_decision(model, method):
    explained = explain(model, TEXTS.values(), method=method)
    for name, why in zip(TEXTS, explained, strict=True):
        words = math.fsum(word.contribution for word in why.words)
        spans = math.fsum(span.score for span in why.spans) + why.whole_text
        assert words + why.bias == pytest.approx(why.explained, abs=1e-10), name
        assert spans == pytest.approx(words, abs=1e-10), name
        assert all(why.text[span.start : span.end] == span.text for span in why.spans), name
        places = [(span.start, span.end) for span in why.spans]
        assert places == sorted(set(places)), name
        assert Explanation.from_json(why.to_json()) == Explanation(**vars(why.listed())), name


def test_predictions_and_short_forms_agree_with_explanations(model):
    explained = explain(model, TEXTS.values())
    assert predict(model, TEXTS.values()) == [why.label for why in explained]
    short = explain_model_spans(model, TEXTS.values())
    assert short == [[(span.text, span.score) for span in why.spans] for why in explained]


@pytest.mark.parametrize("name", TEXTS)
def test_windows_cover_the_text(model, name):
    windows = explain_windows(model, TEXTS[name], effects=False)
    length = len(explain(model, TEXTS[name], effects=False).text)
    assert windows[0].start == 0
    assert windows[-1].end == length
    for before, after in zip(windows, windows[1:], strict=False):
        assert before.start < after.start
        # Between neighbours that do not meet stand only blanks.
        assert not TEXTS[name][before.end : after.start].strip()
