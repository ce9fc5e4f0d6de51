import pytest

from lexical_sae.data.batches import tokenize
from lexical_sae.data.words import word_spans
from lexical_sae.inference import explain, explain_windows
from lexical_sae.inference.windows import cut_windows
from tests import tiny

TOKENIZERS = {"wordpiece": tiny.wordpiece, "byte_bpe": tiny.byte_bpe, "sentencepiece": tiny.sentencepiece}
TEXTS = {
    "plain": "the good film was wonderful and the acting great " * 12,
    "punctuation": "good!?,.good " * 40,
    "scripts": "film שלום 電影 cafe\u0301 👩‍👩‍👧 good " * 12,
    "padded": "  " + "a bad film  \n" * 60 + "  ",
}


@pytest.fixture(scope="module")
def model():
    return tiny.model()


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("overlap", [0.0, 0.25, 0.9])
def test_every_word_is_read_whole_in_a_window_and_none_is_cut(kind, name, overlap):
    tokenizer, text = TOKENIZERS[kind](), TEXTS[name]
    windows = list(cut_windows(tokenizer, text, 32, overlap))
    assert len(windows) > 1
    assert windows[0][0] == 0
    assert windows[-1][1] == len(text)
    for word in word_spans(text):
        assert any(start <= word[0] and word[1] <= end for start, end in windows)
    assert not any(tokenize(tokenizer, [text[start:end] for start, end in windows], 32).tokens_cut)
    starts, ends = zip(*windows, strict=True)
    assert all(a < b for a, b in zip(starts, starts[1:], strict=False))
    assert all(a < b for a, b in zip(ends, ends[1:], strict=False))


def test_neighbours_share_what_was_asked_for():
    text = TEXTS["plain"]
    for overlap in (0.0, 0.25, 0.5):
        windows = list(cut_windows(tiny.wordpiece(), text, 32, overlap))
        shared = [len(text[b:e].split()) for (_, e), (b, _) in zip(windows, windows[1:], strict=False)]
        # 30 tokens without the special ones, one of them spare; every word of this text is one token.
        assert all(count == int(29 * overlap) for count in shared)


def test_each_window_is_explained_as_a_text_of_its_own(model):
    text = TEXTS["plain"] + TEXTS["plain"]
    windows = explain_windows(model, text, overlap=0.1, contrast="negative", method="path", batch_size=1)
    assert len(windows) > 2
    for window in windows:
        assert window.explanation == explain(model, text[window.start : window.end], contrast="negative", method="path")
        for span in window.explanation.spans:
            assert text[window.start + span.start : window.start + span.end] == span.text


def test_a_text_that_fits_is_one_window(model):
    for text in ("a good film", "", "   "):
        (window,) = explain_windows(model, text)
        assert (window.start, window.end) == (0, len(text))
        assert window.explanation == explain(model, text)


def test_a_word_longer_than_the_model_reads_is_cut_and_that_is_noted():
    tokenizer = tiny.byte_bpe()
    text = "good " + "x" * 500 + " film"
    windows = list(cut_windows(tokenizer, text, 32, 0.25))
    cut = tokenize(tokenizer, [text[start:end] for start, end in windows], 32).tokens_cut
    assert any(cut)
    assert windows[-1][1] == len(text)
    assert len(windows) <= 3


@pytest.mark.parametrize("overlap", [-0.1, 1.0])
def test_an_overlap_that_is_no_share_is_refused(model, overlap):
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        explain_windows(model, "good", overlap=overlap)


def test_several_texts_are_refused(model):
    with pytest.raises(ValueError, match="takes one string"):
        explain_windows(model, ["good"])
