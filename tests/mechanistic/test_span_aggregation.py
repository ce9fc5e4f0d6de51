import json
from dataclasses import asdict

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lexical_sae.data.batches import tokenize
from lexical_sae.data.dimensions import Dimension, DimensionTable
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.data.words import TextLayout, lay_out
from lexical_sae.mechanistic.attribution import attribute_code
from lexical_sae.mechanistic.span_aggregation import (
    WHOLE_TEXT,
    RoutedFeature,
    SpanScore,
    TextScores,
    aggregate_subword_attributions,
    score_texts,
)
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.sparse_code import SparseCode
from tests import tiny
from tests.strategies import tensors

TOKENIZERS = {"wordpiece": tiny.wordpiece, "byte_bpe": tiny.byte_bpe, "sentencepiece": tiny.sentencepiece}
TABLES = {kind: DimensionTable(Vocabulary(make())) for kind, make in TOKENIZERS.items()}
TEXTS = [
    "the good film was good, not bad!",
    "  Unhappy\n\nunhappy  ",
    "",
    "👩‍👩‍👧 good 🇩🇪 \ud83d",
    "film שלום 電影 cafe\u0301",
    "a very very boring plot " * 20,
]


def layout(kind: str, text: str, max_length: int = 64) -> TextLayout:
    tokenizer = TOKENIZERS[kind]()
    return lay_out(tokenizer, text, tokenize(tokenizer, [text], max_length).ids[0])


def words(scores: TextScores) -> list[tuple[str, float]]:
    return [(word.text, word.score) for word in scores.words]


def score_one(
    found: TextLayout,
    ids: torch.Tensor,
    contributions: torch.Tensor,
    places: torch.Tensor,
    bias: float,
    table: DimensionTable,
) -> TextScores:
    """Scores of one text whose entries stand at these winning positions, or are shared out in these parts."""
    is_shared = places.dim() == 2
    positions = torch.full_like(ids, -1) if is_shared else places
    code = SparseCode(ids, contributions, positions, torch.tensor([0, len(ids)]), len(table))
    biases = torch.tensor([bias], dtype=torch.float64)
    (scores,) = score_texts(code, contributions, biases, [found], table, [places] if is_shared else None)
    return scores


def of_wordpiece(text: str, *entries: tuple[str, float, int], slots: tuple[Dimension, ...] = ()) -> TextScores:
    """Scores of a text from (name of a dimension, contribution, winning position)."""
    table = DimensionTable(TABLES["wordpiece"].vocabulary, slots)
    names = table.names(range(len(table)))
    ids, values, positions = zip(*((names.index(name), value, at) for name, value, at in entries), strict=True)
    contributions = torch.tensor(values, dtype=torch.float64)
    return score_one(layout("wordpiece", text), torch.tensor(ids), contributions, torch.tensor(positions), 0.25, table)


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(text=st.text(st.characters(), max_size=20) | st.sampled_from(TEXTS), draw=st.data())
def test_words_whole_text_and_bias_sum_to_the_logit_on_any_text(kind, text, draw):
    found = layout(kind, text)
    count = draw.draw(st.integers(0, 12))
    contributions, parts = draw.draw(tensors(count)), draw.draw(tensors(len(found), count, low=-1, high=1)).clamp(min=0)
    ids = torch.arange(6, 6 + count)
    logit = float(contributions.sum()) - 0.7
    bound = 1e-10 * max(1.0, float(contributions.abs().sum()))
    scores = score_one(found, ids, contributions, parts, -0.7, TABLES[kind])
    assert abs(scores.total - logit) <= bound


@given(draw=st.data())
def test_scores_equal_a_sum_over_entries_and_tokens_one_by_one(draw):
    found = layout("wordpiece", TEXTS[0])
    contributions = draw.draw(tensors(5))
    parts = draw.draw(tensors(len(found), 5, low=0, high=1))
    scores = score_one(found, torch.arange(6, 11), contributions, parts, 0.0, TABLES["wordpiece"])
    expected = [0.0] * len(found.word_spans)
    whole = 0.0
    for entry in range(5):
        for position, word in enumerate(found.token_words):
            amount = float(contributions[entry] * parts[position, entry] / parts[:, entry].sum())
            if word is None:
                whole += amount
            else:
                expected[word] += amount
    assert [word.score for word in scores.words] == pytest.approx(expected)
    assert scores.whole_text.score == pytest.approx(whole)


def lexical_sae(kind: str, pool: str) -> LexicalSAE:
    tokenizer = TOKENIZERS[kind]()
    backbone = Backbone(tiny.masked_lm(vocab_size=len(tokenizer)), tokenizer)
    model = LexicalSAE(ModelConfig(gate="drelu", pool=pool), backbone, {"classify": ["negative", "positive"]})  # pyright: ignore[reportArgumentType]
    if pool == "attention":
        torch.nn.init.normal_(model.pool.score, std=0.3)  # pyright: ignore[reportArgumentType]
    return model.eval()


def attention_parts(model: LexicalSAE, batch, code: SparseCode, lengths: list[int]) -> list[torch.Tensor]:
    """`alpha[l] * s[l, k]` of each text."""
    sequence = model(batch.input_ids, batch.attention_mask)
    shared = model.pool.weights(sequence, batch.attention_mask)[..., None] * sequence  # pyright: ignore[reportCallIssue]
    return [shared[row, :length][:, code.ids[code.text(row)]] for row, length in enumerate(lengths)]


@pytest.mark.parametrize("pool", ["max", "attention"])
@pytest.mark.parametrize("kind", TOKENIZERS)
@torch.no_grad()
def test_scores_of_a_real_batch_sum_to_the_models_logits(kind, pool):
    model = lexical_sae(kind, pool)
    texts = [TEXTS[0], TEXTS[1], TEXTS[4]]
    tokenized = tokenize(model.tokenizer, texts, 14)
    batch = tokenized.batch(range(len(texts)))
    state = model.read(model.encode_sparse(batch.input_ids, batch.attention_mask))
    labels = state.logits.argmax(-1)
    contributions = attribute_code(state, labels, centered=False)
    biases = state.b_eff.gather(1, labels[:, None]).flatten()
    layouts = [lay_out(model.tokenizer, text, ids) for text, ids in zip(texts, tokenized.ids, strict=True)]
    lengths = [len(ids) for ids in tokenized.ids]
    parts = attention_parts(model, batch, state.code, lengths) if pool == "attention" else None
    found = score_texts(state.code, contributions, biases, layouts, model.dimensions, parts)
    for row, scores in enumerate(found):
        here = state.code.text(row)
        bound = 1e-5 * max(1.0, float(contributions[here].abs().sum()))
        assert abs(scores.total - float(state.logits[row, labels[row]])) <= bound
        assert any(word.score != 0 for word in scores.words)
        places = state.code.positions[here] if parts is None else parts[row]
        bias, ids = float(biases[row]), state.code.ids[here]
        alone = score_one(layouts[row], ids, contributions[here], places, bias, model.dimensions)
        assert alone == scores, "a row does not depend on its batch"


def test_a_word_that_occurs_twice_keeps_its_own_scores():
    scores = of_wordpiece("good film good", ("good", 2.0, 3), ("great", 0.5, 1))
    assert words(scores) == [("good", 0.5), ("film", 0.0), ("good", 2.0)]
    assert [(word.start, word.end) for word in scores.words] == [(0, 4), (5, 9), (10, 14)]


def test_subwords_add_up_to_their_word():
    entries = ("un", 2.0, 1), ("##happy", -3.0, 2), ("film", 0.5, 3)
    assert words(of_wordpiece("unhappy film", *entries)) == [("unhappy", -1.0), ("film", 0.5)]


def test_an_expansion_is_listed_as_such_where_it_was_produced():
    scores = of_wordpiece("Bad film", ("awful", 2.0, 1), ("bad", -3.0, 1), ("bad", 0.1, 2))
    bad, film = scores.words
    assert bad.features == (RoutedFeature("bad", -3.0, False), RoutedFeature("awful", 2.0, True))
    assert film.features == (RoutedFeature("bad", 0.1, True),), "it stands in the text, but not here"


def test_a_piece_of_the_word_is_no_expansion_of_the_word():
    entries = ("un", 1.0, 2), ("happy", 1.0, 2), ("dog", 1.0, 2)
    (word,) = of_wordpiece("unhappy", *entries).words
    assert {f.word: f.is_expansion for f in word.features} == {"un": False, "happy": False, "dog": True}
    whole = of_wordpiece("unhappy", ("un", 2.0, 0), ("dog", 1.0, 0)).whole_text
    assert [f.is_expansion for f in whole.features] == [False, True]


@pytest.mark.parametrize("text", ["Unhappy", "Ünhappý film"], ids=["cut", "cut, with accents"])
def test_the_word_itself_is_no_expansion_even_where_the_tokenizer_cuts_it_and_knows_no_accents(text):
    slots = (Dimension("unhappy", "word"),)
    for position in (2, 0):
        scores = of_wordpiece(text, ("unhappy", 1.0, position), slots=slots)
        (feature,) = (scores.words[0] if position else scores.whole_text).features
        assert not feature.is_expansion


def test_another_word_of_the_text_is_an_expansion_at_a_word_with_accents():
    (feature,) = of_wordpiece("Ünhappý film", ("film", 1.0, 2)).words[0].features
    assert feature.is_expansion


def test_a_sense_of_the_word_is_no_expansion():
    slots = (Dimension("bank@sense1", "sense"), Dimension("film@sense1", "sense"))
    scores = of_wordpiece("bank", ("bank@sense1", 1.0, 1), ("film@sense1", 2.0, 1), slots=slots)
    assert [(f.word, f.is_expansion) for f in scores.words[0].features] == [
        ("film@sense1", True),
        ("bank@sense1", False),
    ]


def test_case_and_leading_space_make_no_expansion():
    found, table = layout("byte_bpe", "Muslim"), TABLES["byte_bpe"]
    ids = torch.tensor(table.find("muslim"))
    scores = score_one(found, ids, torch.ones(len(ids)), torch.ones(len(found), len(ids)), 0.0, table)
    written = {f.word: f.is_expansion for f in scores.words[0].features}
    assert written["muslim"] is False
    assert written["Muslim"] is False
    assert written["MUSLIM"] is False
    assert written["Muslims"] is True


def test_special_tokens_and_entries_without_position_are_one_row():
    scores = of_wordpiece("good film", ("good", 1.0, 0), ("dog", 0.5, 3), ("awful", -4.0, -1), ("film", 1.0, 2))
    assert words(scores) == [("good", 0.0), ("film", 1.0)]
    assert scores.whole_text == SpanScore(
        WHOLE_TEXT,
        0,
        9,
        -2.5,
        (RoutedFeature("awful", -4.0, True), RoutedFeature("good", 1.0, False), RoutedFeature("dog", 0.5, True)),
    )
    assert scores.total == -2.5 + 1.0 + 0.25


def test_an_empty_text_is_all_whole_text():
    scores = of_wordpiece("", ("good", 1.0, 0))
    assert (scores.words, scores.whole_text.score) == ((), 1.0)


def test_a_feature_that_contributes_nothing_is_still_listed():
    assert of_wordpiece("good", ("good", 0.0, 1)).words[0].features == (RoutedFeature("good", 0.0, False),)


def test_attention_shares_an_entry_among_its_positions():
    found = layout("wordpiece", "good film")
    parts = torch.tensor([[0.1, 0], [0.3, 0], [0, 0.5], [0, 0]])
    scores = score_one(
        found, torch.tensor([9, 11]), torch.tensor([4.0, -2.0]), parts.double(), 0.0, TABLES["wordpiece"]
    )
    assert words(scores) == [("good", pytest.approx(3.0)), ("film", -2.0)]
    assert scores.whole_text.score == pytest.approx(1.0)


def test_one_winner_is_attention_on_one_position():
    found, ids, values = layout("wordpiece", "good film"), torch.tensor([9, 11]), torch.tensor([4.0, -2.0])
    code = SparseCode(ids, values, torch.tensor([2, -1]), torch.tensor([0, 2]), len(TABLES["wordpiece"]))
    attended = torch.tensor([[0, 0], [0, 0], [0.37, 0], [0, 0]])
    bias = torch.zeros(1)
    by_winner = score_texts(code, values, bias, [found], TABLES["wordpiece"])
    assert by_winner == score_texts(code, values, bias, [found], TABLES["wordpiece"], [attended])


def test_joined_words_are_scored_as_one_and_the_sum_stays():
    found = layout("wordpiece", "a good film, not bad")
    contributions = torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64)
    entries = torch.tensor([9, 11, 10, 12]), contributions, torch.tensor([2, 3, 6, 0]), 0.5, TABLES["wordpiece"]
    single, joined = score_one(found, *entries), score_one(found.joined([(2, 11)]), *entries)
    assert [word for word in words(joined) if word[1]] == [("good film", 3.0), ("bad", 4.0)]
    assert joined.total == single.total == 15.5


def test_scores_survive_json():
    def read(row: dict) -> SpanScore:
        return SpanScore(**{**row, "features": tuple(RoutedFeature(**feature) for feature in row["features"])})

    scores = of_wordpiece("unhappy film", ("awful", -3.1, 2), ("film", 0.1, 3), ("good", 1 / 3, 0))
    plain = json.loads(json.dumps(asdict(scores)))
    back = TextScores(tuple(map(read, plain["words"])), read(plain["whole_text"]), plain["bias"])
    assert back == scores


def test_what_does_not_belong_together_is_refused():
    table, found = TABLES["wordpiece"], layout("wordpiece", "good film")
    ids, one = torch.tensor([9]), torch.ones(1)
    with pytest.raises(ValueError, match="won by token 4, but the text has 4 tokens"):
        score_one(found, torch.tensor([9, 10]), torch.ones(2), torch.tensor([1, 4]), 0.0, table)
    with pytest.raises(ValueError, match="parts has 6 positions but the text has 4 tokens"):
        score_one(found, ids, one, torch.ones(6, 1), 0.0, table)
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="no position gives less than nothing"):
            score_one(found, ids, one, torch.full((4, 1), wrong), 0.0, table)
    code = SparseCode(ids, one, torch.tensor([1]), torch.tensor([0, 1]), len(table))
    with pytest.raises(ValueError, match="1 texts but there are 2 layouts"):
        score_texts(code, one, torch.zeros(1), [found, found], table)


def vocabulary_scores(**scores: float) -> torch.Tensor:
    names = TABLES["wordpiece"].vocabulary.names
    return torch.tensor([scores.get(name.replace("##", "_"), 100.0) for name in names], dtype=torch.float64)


@pytest.mark.parametrize(
    ("method", "unhappy"), [("sum", pytest.approx(-0.1)), ("max_abs", -0.8)], ids=["sum", "max_abs"]
)
def test_subwords_are_merged_by_sum_or_by_the_largest_with_its_sign(method, unhappy):
    tokenizer, text = tiny.wordpiece(), "Unhappy film, film"
    scores = vocabulary_scores(un=0.7, _happy=-0.8, film=0.5)
    scores[TABLES["wordpiece"].vocabulary.tokens.index(",")] = 0.0
    merged = aggregate_subword_attributions(tokenizer(text)["input_ids"], scores, tokenizer, text, method)
    assert merged == [("Unhappy", unhappy), ("film", 0.5), (",", 0.0), ("film", 0.5)]


def test_scores_per_position_are_read_at_each_tokens_own_place():
    tokenizer, text = tiny.wordpiece(), "film film"
    ids = tokenizer(text)["input_ids"]
    scores = torch.full((4, len(tokenizer)), 100.0)
    scores[1, ids[1]], scores[2, ids[2]] = 1.0, -2.0
    assert aggregate_subword_attributions(ids, scores, tokenizer, text) == [("film", 1.0), ("film", -2.0)]
    with pytest.raises(ValueError, match="3 positions but there are 4 tokens"):
        aggregate_subword_attributions(ids, scores[:3], tokenizer, text)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("text", TEXTS)
def test_any_text_gives_its_words_in_order(kind, text):
    tokenizer = TOKENIZERS[kind]()
    (ids,) = tokenize(tokenizer, [text], 64).ids
    scores = torch.ones(len(tokenizer), dtype=torch.float64)
    merged = aggregate_subword_attributions(list(ids), scores, tokenizer, text)
    found = layout(kind, text)
    assert [word for word, _ in merged] == [found.written(span) for span in found.word_spans]
    assert [score for _, score in merged] == [found.token_words.count(i) for i in range(len(merged))]


def test_an_unknown_method_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'max_abs'"):
        aggregate_subword_attributions([], torch.zeros(3), tiny.wordpiece(), "", "maxabs")
