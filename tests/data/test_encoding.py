"""What comes of a text is what the tokenizer's own call makes of it, by itself and undisturbed."""

import ast
import functools
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, normalizers, processors
from transformers import (
    AlbertTokenizer,
    BertTokenizer,
    DebertaTokenizer,
    DebertaV2Tokenizer,
    DistilBertTokenizer,
    ElectraTokenizer,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)

import lexical_sae
from lexical_sae.data.encoding import EncodedText, encode
from tests import tiny

TEXTS = [
    "",
    " ",
    "good",
    "a good film",
    "  the unhappy dogs,\tplaying!  not very\n\nwonderful ",
    "a [SEP] typed </s> token [MASK]<mask> and [CLS]",
    "Muslims naïve 日本語 \N{GRINNING FACE} fi",
    "the good film was wonderful and the acting great " * 4,
]
ROOT = Path(lexical_sae.__file__).parent
CALLS_OF_A_TOKENIZER = {
    "tokenizer",
    "backend_tokenizer",
    "tokenize",
    "encode_plus",
    "encode_batch",
    "encode_batch_fast",
}
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def _parts(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return json.loads(tokenizer.backend_tokenizer.to_str())["model"]


def _merged(kind: Any, **settings: Any) -> PreTrainedTokenizerFast:
    model = _parts(tiny.byte_bpe())
    vocabulary = model["vocab"] | {token: len(model["vocab"]) + i for i, token in enumerate(SPECIALS)}
    return kind(vocab=vocabulary, merges=[tuple(pair) for pair in model["merges"]], **settings)


def _pieces(kind: Any) -> PreTrainedTokenizerFast:
    specials = [(token, 0.0) for token in SPECIALS]
    return kind(vocab=[*specials, *map(tuple, _parts(tiny.sentencepiece())["vocab"])])


def _modernbert() -> PreTrainedTokenizerFast:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tiny.byte_bpe().backend_tokenizer, cls_token="[CLS]")
    template = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, tiny.SPECIALS.index(token)) for token in ("[CLS]", "[SEP]")]
    )
    tokenizer.backend_tokenizer.normalizer = normalizers.NFC()
    tokenizer.backend_tokenizer.post_processor = processors.Sequence([processors.ByteLevel(), template])
    return tokenizer


WORDPIECES = {word: i for i, word in enumerate([*tiny.SPECIALS, *tiny.WORDS])}
MADE = {
    "tiny wordpiece": tiny.wordpiece,
    "tiny byte_bpe": tiny.byte_bpe,
    "tiny sentencepiece": tiny.sentencepiece,
    "bert": lambda: BertTokenizer(vocab=WORDPIECES),
    "distilbert": lambda: DistilBertTokenizer(vocab=WORDPIECES),
    "electra": lambda: ElectraTokenizer(vocab=WORDPIECES),
    "roberta": lambda: _merged(RobertaTokenizer),
    "roberta with a space before": lambda: _merged(RobertaTokenizer, add_prefix_space=True),
    "deberta": lambda: _merged(DebertaTokenizer),
    "deberta-v2": lambda: _pieces(DebertaV2Tokenizer),
    "albert": lambda: _pieces(AlbertTokenizer),
    "xlm-roberta": lambda: _pieces(XLMRobertaTokenizer),
    "modernbert": _modernbert,
}


@functools.cache
def tokenizer_of(family: str, side: str = "right") -> PreTrainedTokenizerFast:
    """One for each side: none that is shared is changed."""
    made = MADE[family]() if side == "right" or not family.startswith("tiny") else _copied(MADE[family]())
    made.truncation_side = side
    return made


def _copied(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)


def oracle(tokenizer: Any, text: str, max_length: int | None = None, *, typed: bool = False, **settings: Any) -> Any:
    """Ids, offsets, words, added tokens and number of tokens cut, by transformers' call with truncation."""
    limit = {} if max_length is None else {"truncation": True, "max_length": max_length}
    found = tokenizer(
        [text],
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        split_special_tokens=not typed,
        verbose=False,
        **limit,
        **settings,
    )
    added = [sum(mask) for mask in found["special_tokens_mask"]]
    cut = sum(map(len, found["input_ids"][1:])) - sum(added[1:])
    is_special = list(map(bool, found["special_tokens_mask"][0]))
    return found["input_ids"][0], found["offset_mapping"][0], found.word_ids(0), is_special, cut


def without_blanks(text: str, found: Any) -> Any:
    """The same, each token's characters without blanks around them.

    Some tokenizers take the blank before a token for one that they put before the text, if a cut makes it the first.
    """
    ids, offsets, *rest = found
    written = [text[start:end] for start, end in offsets]
    places = [
        (end - len(part.lstrip()), start + len(part.rstrip()))
        for (start, end), part in zip(offsets, written, strict=True)
    ]
    return ids, [at if part.strip() else None for at, part in zip(places, written, strict=True)], *rest


def fields(encoded: EncodedText) -> Any:
    assert len(encoded) == len(encoded.ids)
    return encoded.ids, encoded.offsets, encoded.word_ids, encoded.is_special, encoded.tokens_cut


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", MADE)
def test_texts_are_cut_as_transformers_cuts_them(family, side):
    tokenizer = tokenizer_of(family, side)
    for max_length in (2, 3, 5, 12, 1000):
        for text, found in zip(TEXTS, encode(tokenizer, TEXTS, max_length), strict=True):
            cut, expected = fields(found), oracle(tokenizer, text, max_length)
            assert without_blanks(text, cut) == without_blanks(text, expected)
            assert side == "left" or cut == expected


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("add_special_tokens", [True, False])
@pytest.mark.parametrize("family", MADE)
def test_special_tokens_are_added_and_read_as_asked(family, add_special_tokens, typed):
    tokenizer = tokenizer_of(family)
    asked: Any = {"add_special_tokens": add_special_tokens}
    for max_length in (4, None):
        found = encode(tokenizer, TEXTS, max_length, reads_special_tokens=typed, **asked)
        assert [fields(each) for each in found] == [
            oracle(tokenizer, text, max_length, typed=typed, **asked) for text in TEXTS
        ]


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.integers(2, 20), st.sampled_from(list(MADE)))
def test_any_text_is_cut_as_transformers_cuts_it(text, max_length, family):
    tokenizer = tokenizer_of(family)
    (found,) = encode(tokenizer, [text], max_length)
    assert fields(found) == oracle(tokenizer, text, max_length)


@pytest.mark.parametrize("family", MADE)
def test_tokens_that_a_user_adds_are_read_at_once(family):
    tokenizer = _copied(tokenizer_of(family))
    text = "a newword film <extra> un newword"
    (before,) = encode(tokenizer, [text])
    tokenizer.add_tokens([AddedToken("newword"), AddedToken("<extra>", special=True)])
    (after,) = encode(tokenizer, [text])
    assert tokenizer.convert_tokens_to_ids("newword") in after.ids
    assert fields(after) == oracle(tokenizer, text) != fields(before)


@pytest.mark.parametrize("family", MADE)
def test_settings_of_the_tokenizer_are_neither_read_nor_changed(family):
    tokenizer = _copied(tokenizer_of(family))
    backend = tokenizer.backend_tokenizer
    expected = [fields(each) for each in encode(tokenizer, TEXTS, 7)]
    backend.enable_truncation(max_length=3, direction="left")
    backend.enable_padding(length=50)
    for reads in (True, False):
        backend.encode_special_tokens = reads
        before = backend.to_str(), backend.truncation, backend.padding
        assert [fields(each) for each in encode(tokenizer, TEXTS, 7)] == expected
        assert (backend.to_str(), backend.truncation, backend.padding) == before
        assert backend.encode_special_tokens is reads


def test_nothing_else_calls_a_tokenizer():
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _name(node.func) in CALLS_OF_A_TOKENIZER
    ]
    assert [place.rpartition(":")[0] for place in calls] == ["data/encoding.py"], calls


def _name(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    # `tokenize` by itself is the project's own, which calls `encode`.
    return None if (name := getattr(function, "id", None)) == "tokenize" else name


def test_special_tokens_stay_where_not_even_they_fit():
    (found,) = encode(tiny.wordpiece(), ["a good film"], 1)
    assert (found.ids, found.tokens_cut) == ([3, 4], 3)


def test_cutting_a_very_long_line_costs_little_beside_encoding_it():
    tokenizer, text = tiny.wordpiece(), "good film " * 20_000
    start = time.process_time()
    (whole,) = encode(tokenizer, [text])
    encoding = time.process_time() - start
    start = time.process_time()
    ids = EncodedText(whole._encoding, 64).ids
    assert len(ids) == 64
    assert time.process_time() - start < encoding / 4
