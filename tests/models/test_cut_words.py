import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from transformers import PreTrainedTokenizerFast

from lexical_sae.data.batches import tokenize
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.evaluation.collect import collect
from lexical_sae.evaluation.corpus.features import FeatureCollector
from lexical_sae.evaluation.names.lexical import LexicalSAENames
from lexical_sae.evaluation.names.random_head import with_random_lexical_head
from lexical_sae.inference import explain, explain_model_spans
from lexical_sae.intervene import SuppressedModel
from lexical_sae.intervene.words import find_words
from lexical_sae.models.assembly import dimension_embeddings
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers import cut_words
from lexical_sae.models.layers.cut_words import NO_WORD, CutWords, frequent_cut_words
from lexical_sae.models.layers.neighbourhood import Neighbourhood
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.models.projected_reading import word_logits
from lexical_sae.studies.polysemy.word_states import with_senses_merged
from lexical_sae.training.tasks import Documents, Positions
from tests import tiny

WORDS = ("filmed", "unhappyness", "badly")
BANK = tiny.wordpiece().convert_tokens_to_ids("bank")
TEXT = "a badly filmed plot, not a boringly good film"


def vocabulary():
    return Vocabulary(tiny.wordpiece())


def cut_model(words=WORDS, open_all=False, **others):
    settings = {"gate": "drelu", "neighbourhood": {"words_per_token": 3, "cut_words": words}, **others}
    model = tiny.model(ModelConfig.model_validate(settings))
    model.start_from_backbone()
    if open_all:
        with torch.no_grad():
            model.backbone.decoder.bias += 50
    return model


def batch_of(model, *texts):
    tokens = tokenize(model.tokenizer, texts, model.max_length)
    batch = tokens.batch(range(len(texts)))
    return batch.input_ids, batch.attention_mask


def own_names(model, text):
    ids, mask = batch_of(model, text)
    own = model.neighbourhood.words(ids, mask)[0, :, 0].tolist()
    return [model.dimensions[i].name if i != NO_WORD else None for i in own]


# Finding them in texts


def test_a_word_is_split_where_it_stands_in_several_tokens():
    ids = tiny.wordpiece().convert_tokens_to_ids
    tokens = ids(["[CLS]", "good", "film", "##ing", "##ly", "bad", "great", "##ed", "[SEP]"])
    assert vocabulary().split_words(tokens) == [ids(["film", "##ing", "##ly"]), ids(["great", "##ed"])]
    assert vocabulary().split_words(ids(["[CLS]", "good", "[SEP]"])) == []
    assert vocabulary().split_words([]) == []


def test_words_of_at_least_two_texts_get_a_dimension_the_most_frequent_first():
    texts = ["badly filmed", "badly played badly", "filmed badly", "playing playing", "the good film"]
    ids = tokenize(tiny.wordpiece(), texts, 32).ids
    assert frequent_cut_words(ids, vocabulary(), 10) == ("badly", "filmed")
    assert frequent_cut_words(ids, vocabulary(), 1) == ("badly",)
    assert frequent_cut_words([], vocabulary(), 10) == ()


def test_only_what_reads_as_a_word_gets_a_dimension_and_function_words_on_request(monkeypatch):
    known = vocabulary()
    film, ing, un, happy = tiny.wordpiece().convert_tokens_to_ids(["film", "##ing", "un", "##happy"])
    texts = [[film, ing], [film, ing], [un, happy], [un, happy]]
    assert frequent_cut_words(texts, known, 10) == ("filming", "unhappy")
    monkeypatch.setattr(cut_words, "is_function_word", lambda name: name == "filming")
    assert frequent_cut_words(texts, known, 10) == ("unhappy",)
    assert frequent_cut_words(texts, known, 10, function_words=True) == ("filming", "unhappy")
    # Not what the tokenizer itself would spell another way: `film ##s` is one token.
    plural = tiny.wordpiece().convert_tokens_to_ids(["film", "##s"])
    assert frequent_cut_words([plural, plural], known, 10) == ()


def test_digits_may_follow_letters_and_not_lead_them():
    tokens = {name: i for i, name in enumerate([*tiny.SPECIALS, "a", "d", "3", "##3", "##d", "."])}
    tokenizer = Tokenizer(WordPiece(tokens, unk_token="[UNK]"))  # pyright: ignore[reportCallIssue]
    tokenizer.pre_tokenizer, tokenizer.decoder = BertPreTokenizer(), decoders.WordPiece()
    known = Vocabulary(PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]"))
    texts = [[tokens["3"], tokens["##d"], tokens["d"], tokens["##3"]]] * 2
    assert [known.tokenizer.decode(word) for word in known.split_words(texts[0])] == ["3d", "d3"]
    assert frequent_cut_words(texts, known, 10) == ("d3",)


def test_a_word_that_is_one_token_after_a_space_gets_no_second_dimension():
    known = Vocabulary(tiny.byte_bpe())
    texts = tokenize(tiny.byte_bpe(), ["good film", "good plot", "wonderfulgood", "wonderfulgood film"], 32).ids
    assert frequent_cut_words(texts, known, 10) == ("wonderfulgood",)
    with pytest.raises(ValueError, match="does not cut 'good' into parts"):
        CutWords(["good"], known)


def test_a_new_model_takes_them_from_the_texts_it_is_given(tmp_path):
    folder = str(tiny.saved_encoder(tmp_path))
    settings = {"name": folder, "neighbourhood": {"most_cut_words": 5}}
    labels = {"classify": ["n", "p"]}
    texts = ["badly filmed", "badly made", "good film"]
    model = LexicalSAE.from_backbone(ModelConfig.model_validate(settings), labels, texts)
    assert model.config.neighbourhood.cut_words == ("badly",)
    assert model.dimensions[model.backbone.vocab_size].name == "badly"
    settings["neighbourhood"]["cut_words"] = ("filmed",)
    given = LexicalSAE.from_backbone(ModelConfig.model_validate(settings), labels, texts)
    assert given.config.neighbourhood.cut_words == ("filmed",)


def test_a_word_that_is_not_cut_and_a_word_given_twice_are_refused():
    with pytest.raises(ValueError, match="does not cut 'film' into parts"):
        cut_model(("film",))
    with pytest.raises(ValueError, match="does not cut 'bad plot' into parts"):
        cut_model(("bad plot",))
    with pytest.raises(ValueError, match="names a word twice: badly"):
        cut_model(("badly", "filmed", "badly"))
    with pytest.raises(ValueError, match="'Badly' and 'badly' are the same word to the tokenizer"):
        cut_model(("Badly", "badly"))


def test_bytes_that_spell_a_word_two_ways_are_one_word():
    known = Vocabulary(tiny.byte_bpe())
    (found,) = known.spellings(["goodfilm"])
    assert len(found) == 2
    part = CutWords(["goodfilm"], known)
    for spelling in found:
        ids = torch.tensor([spelling])
        joined = torch.ones(1, len(spelling) - 1, dtype=torch.bool)
        assert part.find(ids, joined).tolist() == [[0] + [NO_WORD] * (len(spelling) - 1)]


@given(st.data())
def test_the_trie_finds_what_a_table_of_whole_words_finds(data):
    known = vocabulary()
    part = Neighbourhood.Config(cut_words=(*WORDS, "filmedly", "gooding")).build(known)
    names = st.sampled_from(["[CLS]", "film", "##ed", "##ly", "un", "##happy", "##ness", "bad", "good", "##ing", ","])
    rows = data.draw(st.lists(st.lists(names, min_size=8, max_size=8), min_size=1, max_size=3))
    ids = torch.tensor([tiny.wordpiece().convert_tokens_to_ids(row) for row in rows])
    table = {tuple(s): i for i, found in enumerate(known.spellings(part.config.cut_words)) for s in found}
    expected = torch.full_like(ids, NO_WORD)
    for row, tokens in enumerate(ids.tolist()):
        at = 0
        while at < len(tokens):
            end = at + 1
            while end < len(tokens) and part.can_go_on[tokens[end - 1]] and part.goes_on[tokens[end]]:
                end += 1
            expected[row, at] = table.get(tuple(tokens[at:end]), NO_WORD)
            at = end
    assert torch.equal(part.cut.find(ids, part.goes_on_after(ids)), expected)


# In a model


def test_a_multi_piece_word_activates_itself_at_its_first_token_and_others_nothing():
    model = cut_model()
    names = own_names(model, TEXT)
    said = [name for name in names if name is not None]
    assert said == ["badly", "filmed", "plot", "not", "good", "film"]
    ids, mask = batch_of(model, TEXT)
    words = model.neighbourhood.words(ids, mask)
    assert (words[0, names.index("badly"), 1:] == NO_WORD).all()
    tokens = ids[0].tolist()
    (mute,) = model.neighbourhood.oov_words(tokens)
    assert model.tokenizer.decode(mute) == "boringly"


@pytest.mark.parametrize("gate", ["drelu", "gated_jumprelu", "jumprelu"])
@pytest.mark.parametrize(
    "others",
    [{}, {"expander": {"token_ids": (BANK,), "num_senses": 3}}, {"shapes": {}}, {"pool": "attention"}],
    ids=["plain", "senses", "shapes", "attention"],
)
def test_every_route_gives_a_cut_word_the_same_strength(gate, others):
    model = cut_model(gate=gate, **others)
    ids, mask = batch_of(model, TEXT, "the bank was badly filmed", "unhappyness")
    with torch.no_grad():
        slow = model.pool(model(ids, mask), mask)
        torch.testing.assert_close(model.encode_document(ids, mask).sparse_vector, slow)
        torch.testing.assert_close(model.encode_sparse(ids, mask).dense(), slow)
    size = model.backbone.vocab_size
    assert model.dimensions.num_words == size + len(WORDS)
    assert model.dimensions.find("badly") == (size + WORDS.index("badly"),)
    with torch.no_grad():
        model.backbone.decoder.bias += 50
        opened = model.encode_document(ids, mask).sparse_vector[:, size : size + len(WORDS)] > 0
    assert opened.tolist() == [[True, False, True], [True, False, True], [False, True, False]]


def test_positions_of_a_tagger_give_a_cut_word_the_same_strength():
    model = cut_model()
    ids, mask = batch_of(model, TEXT)
    with torch.no_grad():
        slow = model(ids, mask)[mask]
        torch.testing.assert_close(model.encode_at(ids, mask, mask).sparse_vector, slow)
        torch.testing.assert_close(model.encode_positions(ids, mask, mask).dense(), slow)


def test_it_is_read_by_the_decoder_row_of_its_first_token():
    model = cut_model()
    ids, mask = batch_of(model, "badly")
    bad, dimension = ids[0, 1], model.dimensions.find("badly")[0]
    with torch.no_grad():
        plain = model.backbone.decoder(model.backbone.hidden(ids, mask))
        assert torch.equal(word_logits(model, ids, mask)[0, 1, dimension], plain[0, 1, bad])


@pytest.mark.parametrize("live_only", [False, True])
@pytest.mark.parametrize("tags", [False, True])
def test_a_text_asks_its_cut_words_to_open_as_it_asks_its_others(live_only, tags):
    model = cut_model(gate={"kind": "jumprelu", "kernel": "rectangle", "offset": True, "bandwidth": 0.01})
    with torch.no_grad():
        # Far from opening: only a text's own words are live.
        model.gate.offset -= 50
    tokens = tokenize(model.tokenizer, [TEXT], model.max_length)
    task = Positions(tokens, [[0] * len(tokens.ids[0])]) if tags else Documents(tokens, torch.tensor([0]))
    encoded = task.encode(model, [0], live_only=live_only)
    assert (encoded.words is not None) == live_only
    columns = encoded.own.any(0).nonzero().flatten()
    own = columns if encoded.words is None else encoded.words[columns]
    # "boringly" is cut and has no name: its first token, which is near to others, is not its word.
    assert {model.dimensions[int(i)].name for i in own} == {"badly", "filmed", "plot", "not", "good", "film"}
    if live_only:
        assert set(own.tolist()) == set(encoded.words.tolist())


def test_the_dimension_at_each_position_is_that_of_the_word_which_stands_there():
    model = cut_model()
    ids, _ = batch_of(model, "badly boringly film")
    found = [model.dimensions[i].name if i != NO_WORD else None for i in model.own_words(ids)[0].tolist()]
    assert found == ["[CLS]", "badly", None, None, None, "film", "[SEP]"]


def test_its_vector_starts_from_the_mean_of_its_tokens_rows():
    model = cut_model()
    rows = model.backbone.decoder.weight.detach()
    tokens = tiny.wordpiece()("unhappyness", add_special_tokens=False)["input_ids"]
    (dimension,) = model.dimensions.find("unhappyness")
    torch.testing.assert_close(dimension_embeddings(model)[dimension], rows[tokens].mean(0))
    assert len(tokens) == 3


def test_senses_come_after_cut_words():
    model = cut_model(expander={"token_ids": (BANK,), "num_senses": 3})
    (bank,) = find_words(model, "bank")
    assert model.dimensions.names(bank.dimensions) == ["bank", "bank@sense1", "bank@sense2"]
    (by_number,) = find_words(model, BANK)
    assert by_number.dimensions == bank.dimensions
    assert LexicalSAENames(model).dimensions_of(["bank"]) == [bank.dimensions]
    ids, mask = batch_of(model, "the bank was badly filmed")
    code = model.encode_sparse(ids, mask)
    merged = with_senses_merged(code, model.expander, model.dimensions.num_words)
    assert not set(merged.ids.tolist()) & set(bank.dimensions[1:])
    assert set(code.ids.tolist()) - set(bank.dimensions) == set(merged.ids.tolist()) - {BANK}


def test_a_removed_cut_word_is_zero_and_its_name_is_found_in_any_case():
    model = cut_model(open_all=True)
    ids, mask = batch_of(model, TEXT)
    (dimension,) = model.dimensions.find("badly")
    assert model.encode_document(ids, mask).sparse_vector[0, dimension] > 0
    # Accents and case are the tokenizer's business.
    for spelled in ("Badly", "bàdly"):
        assert SuppressedModel(model, spelled).encode_document(ids, mask).sparse_vector[0, dimension] == 0
    with pytest.raises(ValueError, match="'boringly' has no dimension of its own"):
        SuppressedModel(model, "boringly")


def test_a_saved_model_keeps_its_cut_words(tmp_path):
    model = cut_model()
    save_pretrained(model, tmp_path / "model")
    back = from_pretrained(tmp_path / "model")
    ids, mask = batch_of(model, TEXT)
    assert back.dimensions.appended == model.dimensions.appended
    with torch.no_grad():
        assert torch.equal(back.classify_document(ids, mask).logits, model.classify_document(ids, mask).logits)


def test_an_explanation_shows_a_multi_piece_word_at_its_place_and_lists_only_out_of_vocabulary_ones():
    model = cut_model(open_all=True)
    why = explain(model, TEXT)
    word = next(word for word in why.words if word.word == "badly")
    assert TEXT[word.start : word.end] == "badly"
    assert word.is_expansion is False
    assert word.kind == "word"
    (line,) = [line for line in why.not_explained if "cuts up" in line]
    assert '"boringly"' in line
    assert "badly" not in line
    said = dict(explain_model_spans(model, TEXT, "sum"))
    assert said["badly"] == pytest.approx(word.contribution)


def test_names_know_a_cut_word_and_the_control_gives_it_to_another():
    model = cut_model(open_all=True)
    names = LexicalSAENames(model)
    dimension = model.dimensions.find("badly")
    assert names.dimensions_of(["badly", "boringly"]) == [dimension, ()]
    (reading,) = names.contributions([TEXT])
    (word,) = [word for word in reading.words if word.dimension == dimension[0]]
    assert TEXT[slice(*word.span)] == "badly"
    assert dimension[0] in reading.written
    written = "badly filmed unhappyness"
    control = with_random_lexical_head(model, seed=1)
    opened = [name for name in own_names(control, written) if name is not None]
    assert sorted(opened) == sorted(WORDS)
    assert opened != written.split()
    ids, mask = batch_of(model, written)
    with torch.no_grad():
        ours, theirs = (word_logits(one, ids, mask).sort(-1).values for one in (model, control))
    torch.testing.assert_close(ours, theirs)
    # What is written stays written: only the names have changed places.
    (reading,) = LexicalSAENames(control).contributions([written])
    assert reading.written == LexicalSAENames(model).contributions([written])[0].written


def test_the_page_of_a_cut_word_names_it_as_what_opens_it():
    model = cut_model(open_all=True)
    collector = FeatureCollector(model, *model.dimensions.find("badly"))
    collect(model, [TEXT, "a good film"], [collector])
    assert [trigger.token for trigger in collector.page().triggers] == ["badly"]
