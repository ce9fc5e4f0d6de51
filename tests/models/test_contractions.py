""" "isn't" is one word, with a name of its own, however a tokenizer cuts it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from lexical_sae.data.batches import tokenize
from lexical_sae.data.dimensions import DimensionTable
from lexical_sae.data.language import CONTRACTIONS, NEGATIONS, is_function_word, word_form
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.evaluation.collect import collect
from lexical_sae.evaluation.corpus.features import FeatureCollector
from lexical_sae.evaluation.names.text import distinct_words, replace_word
from lexical_sae.inference import explain
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.cut_words import NO_WORD, frequent_cut_words
from lexical_sae.models.layers.neighbourhood import Neighbourhood
from lexical_sae.models.lexical_sae import LexicalSAE
from tests import tiny

WORDS = "is n ' ’ t don won can need ##n man s than good not win film".split()  # noqa: SIM905


def wordpiece():
    tokens = {name: i for i, name in enumerate([*tiny.SPECIALS, "a", *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(tokens, unk_token="[UNK]"))  # pyright: ignore[reportCallIssue]
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")


def byte_bpe():
    """One token for `'t`, as RoBERTa and ModernBERT have."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=tiny.SPECIALS, show_progress=False)  # pyright: ignore[reportCallIssue]
    tokenizer.train_from_iterator(["I don't, we don't and they can't be a good film"] * 20, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")


def neighbourhood(*cut_words):
    vocabulary = Vocabulary(wordpiece())
    part = Neighbourhood(Neighbourhood.Config(words_per_token=2, cut_words=cut_words), vocabulary)
    # Every whole word is as near as any: the first of them is the word itself.
    part.choose(torch.eye(vocabulary.size))
    return part, vocabulary


def opened(part, vocabulary, text):
    """Names of the words that each token may open, its own first."""
    ids = torch.tensor([vocabulary.tokenizer(text)["input_ids"]])
    table = DimensionTable(vocabulary, part.config.dimensions())
    words = part.words(ids, torch.ones_like(ids, dtype=torch.bool))[0].tolist()
    return [[table[i].name for i in at if i != NO_WORD] for at in words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("is n't good", [["n", "'", "t"]]),
        ("don’t needn't", [["don", "’", "t"], ["need", "##n", "'", "t"]]),
        ("man's than 't", []),
        ("don ' good t n'", []),
        ("t n't", [["n", "'", "t"]]),
        # The letter begins another word.
        ("man 'n' tn", [["t", "##n"]]),
    ],
)
def test_a_negation_with_an_apostrophe_is_one_word_and_nothing_else_with_one_is(text, expected):
    vocabulary = Vocabulary(wordpiece())
    ids, names = vocabulary.tokenizer(text)["input_ids"], vocabulary.tokens
    assert [[names[i] for i in word] for word in vocabulary.split_words(ids)] == expected
    parts = [[names[i] for i in word] for word in vocabulary.split_words(ids, contractions=False)]
    assert parts == [word[:2] for word in expected if "##n" in word]


def test_a_tokenizer_with_one_token_for_its_end_joins_it_too():
    vocabulary = Vocabulary(byte_bpe())
    ids = vocabulary.tokenizer("we don't be")["input_ids"]
    assert "'t" in vocabulary.tokens
    (word,) = vocabulary.split_words(ids)
    assert vocabulary.tokenizer.decode(word).strip() == "don't"
    texts = tokenize(vocabulary.tokenizer, ["we don't", "I don't"], 16).ids
    assert frequent_cut_words(texts, vocabulary, 5) == ("n't",)
    part = Neighbourhood(Neighbourhood.Config(cut_words=("n't",)), vocabulary)
    assert part.own_words(torch.tensor([ids]))[0].tolist().count(vocabulary.size) == 1


@pytest.mark.parametrize("texts", [["is n't good", "n’t"], ["can't", "won’t"], ["needn't", "n't n't"]])
def test_training_texts_give_all_of_them_one_name_whatever_the_apostrophe(texts):
    vocabulary = Vocabulary(wordpiece())
    ids = tokenize(vocabulary.tokenizer, [*texts, "man's", "man's"], 16).ids
    assert frequent_cut_words(ids, vocabulary, 5) == ("n't",)
    assert frequent_cut_words(ids[:1], vocabulary, 5) == ()


def test_it_activates_itself_and_its_parts_activate_nothing():
    part, vocabulary = neighbourhood("n't")
    assert opened(part, vocabulary, "won film")[0][0] == "won"
    for text in ("won't film", "won’t film", "can't film"):
        assert opened(part, vocabulary, text)[:3] == [["n't"], [], []]
        assert opened(part, vocabulary, text)[3][0] == "film"
    ids = vocabulary.tokenizer("is n't good can't")["input_ids"]
    negation = [vocabulary.size, NO_WORD, NO_WORD]
    assert part.own_words(torch.tensor([ids]))[0].tolist() == [ids[0], *negation, ids[4], *negation]
    assert part.oov_words(ids) == []
    table = DimensionTable(vocabulary, part.config.dimensions())
    assert table.find("won't") == table.find("n't") == (vocabulary.size,)
    # Its decoder row is that of "n't" itself.
    assert part.cut.first_tokens.tolist() == [vocabulary.tokens.index("n")]


def test_a_model_without_any_reads_texts_as_it_did():
    part, vocabulary = neighbourhood("needn")
    ids = vocabulary.tokenizer("won't film")["input_ids"]
    assert opened(part, vocabulary, "won't film")[0][0] == "won"
    assert part.oov_words(ids) == []


@given(
    st.lists(st.sampled_from(range(len(tiny.SPECIALS), len(tiny.SPECIALS) + 1 + len(WORDS))), min_size=1, max_size=12)
)
def test_a_batch_is_joined_as_each_text_is(ids):
    part, vocabulary = neighbourhood("n't")
    joined = part.goes_on_after(torch.tensor([ids], dtype=torch.long))[0].tolist()
    expected = [False] * max(0, len(ids) - 1)
    at = 0
    for word in vocabulary.split_words(ids):
        at = next(i for i in range(at, len(ids)) if ids[i : i + len(word)] == word)
        expected[at : at + len(word) - 1] = [True] * (len(word) - 1)
        at += len(word)
    assert joined == expected


def test_a_text_with_several_of_them_counts_once():
    vocabulary = Vocabulary(wordpiece())
    texts = tokenize(vocabulary.tokenizer, ["don't can't n’t", "good film"], 16).ids
    assert frequent_cut_words(texts, vocabulary, 5) == ()


def test_only_the_common_name_can_be_given():
    with pytest.raises(ValueError, match="cut_words has 'Won’t'; write .n't., which stands for all"):
        Neighbourhood.Config(cut_words=("Won’t",))


def test_words_are_compared_as_one_whatever_stands_before_the_apostrophe():
    assert [word_form(word) for word in ("Isn’t", "n't", "DON'T", "Film", "man's")] == [*["n't"] * 3, "film", "man's"]
    # The deletion test takes all of them away: they feed one dimension.
    text = "It isn't good, i Don’t play, is n't it"
    assert replace_word(text, (3, 8), "[MASK]") == "It [MASK] good, i [MASK] play, is [MASK] it"
    assert "n't" in distinct_words("you Can’t")
    assert "n't" not in distinct_words("the man's")


@pytest.fixture(scope="module")
def model():
    tokenizer, config = wordpiece(), {"words_per_token": 2, "cut_words": ("n't",)}
    backbone = Backbone(tiny.masked_lm(vocab_size=len(tokenizer)), tokenizer).eval()
    settings = ModelConfig.model_validate({"gate": "drelu", "neighbourhood": config})
    torch.manual_seed(1)
    model = LexicalSAE(settings, backbone, {"classify": ["negative", "positive"]}).eval()
    model.start_from_backbone()
    with torch.no_grad():
        model.backbone.decoder.bias += 50
    return model


@pytest.mark.parametrize("text", ["won't film", "film is n’t good"])
def test_an_explanation_knows_that_it_is_written(model, text):
    (why,) = explain(model, [text])
    assert [word.is_expansion for word in why.words if word.word == "n't"] == [False]


def test_its_page_says_where_it_is_written(model):
    texts = ["won't film", "film is n’t good", "can't", "good film", "a good win", "not good"]
    collector = FeatureCollector(model, *model.dimensions.find("n't"))
    collect(model, texts, [collector])
    assert (collector.written_in, collector.active_where_written) == (3, 3)


def test_all_of_them_are_negations_and_none_is_a_function_word():
    assert CONTRACTIONS <= NEGATIONS
    assert not any(map(is_function_word, CONTRACTIONS))
    assert "can" not in NEGATIONS
