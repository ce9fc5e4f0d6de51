import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import pad

from lexical_sae.data.batches import tokenize
from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.inference import explain, predict
from lexical_sae.intervene import SuppressedModel, suppress_token_globally
from lexical_sae.models.assembly import add_heads, dimension_embeddings, drop_heads
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.layers.literal_words import multi_piece_words
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.literal_reading import default_activation, read_words
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.recipes import recipe_by_name
from lexical_sae.training.loop import Trainer
from lexical_sae.training.tasks import Positions
from tests import tiny
from tests.literal import SPLIT, TEXTS, UNSEEN, batch_of, literal_model, opened

WRITTEN = [
    ["a", "badly", "filmed", "plot", "and", "not", "a", "good", "film"],
    ["good", "good", "film"],
    ["the", "acting", "was", "wonderful"],
    ["boring", "boring", "boring", "church", "and", "a", "bad", "dog"],
    [],
    ["a", "boringly", "good", "film"],
    ["unhappyness", "filmed", "boringly", "badly"],
]


def read_by(model, *texts):
    """Per text, the names of the words it is read as, in their order."""
    ids, mask = batch_of(model, *texts)
    read = read_words(model, ids, mask, None)
    found = [[] for _ in texts]
    for row, word in zip(read.rows.tolist(), read.words.tolist(), strict=True):
        found[row].append(model.dimensions[word].name)
    return found


def logits_of(model, *texts):
    with torch.no_grad():
        return model.read(model.encode_sparse(*batch_of(model, *texts))).logits


# Which words a text has


def test_every_written_word_has_one_dimension_that_is_named_as_it_is_written():
    texts = [*TEXTS, *UNSEEN]
    model = opened(literal_model(), *texts)
    assert read_by(model, *texts) == WRITTEN
    names = [model.dimensions[i].name for i in range(len(model.dimensions))]
    for word in {word for words in WRITTEN for word in words}:
        assert names.count(word) == 1


def test_an_unseen_word_is_out_of_vocabulary_until_the_model_is_opened_to_it():
    model = literal_model()
    assert read_by(model, *UNSEEN) == [["a", "good", "film"], ["filmed", "badly"]]
    assert read_by(opened(model, *UNSEEN), *UNSEEN) == WRITTEN[5:]


@given(st.lists(st.sampled_from(["good", "badly", "boringly", "filmed", "!", "unhappyness", "films"]), max_size=8))
def test_any_text_is_read_as_its_words(words):
    text = " ".join(words)
    assert read_by(opened(literal_model(), text), text) == [[word for word in words if word != "!"]]


def test_a_new_model_has_a_dimension_for_every_word_of_its_texts_that_is_split(tmp_path):
    settings = recipe_by_name("anchored").model.model_copy(update={"name": str(tiny.saved_encoder(tmp_path))})
    model = LexicalSAE.from_backbone(settings, {"classify": ["n", "p"]}, [*TEXTS, *UNSEEN])
    assert model.config.literal.multi_piece_words == ("badly", "boringly", "filmed", "unhappyness")
    assert opened(model, *TEXTS, *UNSEEN) is model


def test_what_has_no_letter_or_digit_is_no_word():
    vocabulary = Vocabulary(tiny.byte_bpe())
    ids = tokenize(tiny.byte_bpe(), ["good ?!?! film"], 32).ids
    names = multi_piece_words(map(vocabulary.split_words, ids), vocabulary)
    assert not [name for name in names if not any(map(str.isalnum, name))]


def test_padding_and_special_tokens_are_never_words():
    model = literal_model()
    ids, mask = batch_of(model, *TEXTS)
    assert (~mask).any()
    read = read_words(model, ids, mask, None)
    assert mask[read.rows, read.positions].all()
    specials = set(model.tokenizer.all_special_ids)
    assert not specials & set(read.words.tolist())
    everywhere = read_words(model, ids, torch.ones_like(mask), None)
    assert not specials & set(everywhere.words.tolist())


def test_a_text_without_words_is_decided_by_the_bias():
    model = literal_model()
    assert torch.equal(logits_of(model, "!")[0], model.head().class_bias)
    assert explain(model, "!").words == ()
    assert explain(model, "").words == ()


# Opening


def test_a_model_that_knows_every_word_is_opened_as_itself():
    model = literal_model()
    assert opened(model, *TEXTS) is model
    assert tiny.model().opened_to([[3, 6, 4]]) is not None
    view = opened(model, *UNSEEN)
    assert opened(view, *UNSEEN) is view


def test_opening_shares_every_weight_and_leaves_the_model_as_it_was():
    model = literal_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    sizes = len(model.dimensions), len(model.gate.closed), len(model.context.size)
    view = opened(model, *UNSEEN)
    assert len(view.dimensions) == sizes[0] + 2
    assert (len(model.dimensions), len(model.gate.closed), len(model.context.size)) == sizes
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    shared = {p.data_ptr() for p in model.parameters()}
    own = {name for name, p in view.named_parameters() if p.data_ptr() not in shared}
    assert own == {"heads.classify.word_vectors", "heads.tag.word_vectors"}


def test_texts_without_new_words_get_the_same_decision_bitwise():
    model = literal_model()
    assert torch.equal(logits_of(opened(model, *UNSEEN), *TEXTS), logits_of(model, *TEXTS))


def test_a_view_is_opened_further_and_keeps_the_words_it_has():
    model = literal_model()
    step_by_step = opened(opened(model, UNSEEN[0]), UNSEEN[1])
    at_once = opened(model, *UNSEEN)
    assert read_by(step_by_step, *UNSEEN) == WRITTEN[5:]
    assert len(step_by_step.dimensions) == len(at_once.dimensions)
    torch.testing.assert_close(logits_of(step_by_step, *UNSEEN), logits_of(at_once, *UNSEEN))


def test_the_row_of_a_new_word_follows_from_its_spelling():
    model = literal_model()
    view = opened(model, *UNSEEN)
    pieces = tiny.wordpiece()("boringly", add_special_tokens=False)["input_ids"]
    assert len(pieces) == 2
    embedding = model.backbone.input_embeddings()[pieces].mean(0)
    expected = embedding @ model.head().unseen_weights[:-1] + model.head().unseen_weights[-1]
    (place,) = view.dimensions.find("boringly")
    torch.testing.assert_close(view.head().word_vectors[place], expected)
    torch.testing.assert_close(view.context.size[place], expected.abs().max())


def test_a_new_word_whose_row_is_empty_is_closed():
    model = literal_model()
    with torch.no_grad():
        model.head().unseen_weights.mul_(1e-3)
    view = opened(model, *UNSEEN)
    assert view.gate.closed[-2:].tolist() == [True, True]
    assert read_by(view, *UNSEEN) == [["a", "good", "film"], ["filmed", "badly"]]


def test_temporary_heads_of_training_do_not_decide_which_new_words_have_weight():
    """Else a text would be read in one way while a model is trained, and in another when it is used."""
    model = literal_model()
    with torch.no_grad():
        model.head().unseen_weights.mul_(1e-3)
    add_heads(model, ["classify_without_0"], like="classify")
    with torch.no_grad():
        model.head("classify_without_0").unseen_weights.fill_(9.0)
    view = opened(model, *UNSEEN)
    assert view.gate.closed[-2:].all()
    assert (view.context.size[-2:] == 0).all()
    drop_heads(model, ["classify_without_0"])
    assert list(model.heads) == list(model.labels) == ["classify", "tag"]


def test_predictions_and_explanations_know_words_that_the_model_never_met():
    model = literal_model()
    why = explain(model, UNSEEN[0], all_tokens=True)
    assert {word.word for word in why.words} == {"a", "boringly", "good", "film"}
    assert not any(word.is_expansion for word in why.words)
    (boringly,) = [word for word in why.words if word.word == "boringly"]
    assert UNSEEN[0][boringly.start : boringly.end] == "boringly"
    assert boringly.contribution != 0
    expected = logits_of(opened(model, *UNSEEN), *UNSEEN).argmax(-1).tolist()
    assert list(predict(model, UNSEEN)) == [model.labels["classify"][i] for i in expected]


# What they are worth


def test_the_routes_from_text_to_decision_agree():
    model = opened(literal_model(), *TEXTS, *UNSEEN)
    ids, mask = batch_of(model, *TEXTS, *UNSEEN)
    with torch.no_grad():
        slow = model.classify(model(ids, mask), mask)
        fast = model.classify_document(ids, mask)
        code = model.encode_sparse(ids, mask)
        live = model.encode_document(ids, mask, live_only=True)
        pooled = model.decide(live.sparse_vector, "classify", live.words)
    assert len(live.words) < len(model.dimensions)
    for vector in (
        fast.sparse_vector,
        code.dense(),
        torch.zeros_like(code.dense()).index_copy(1, live.words, live.sparse_vector),
    ):
        torch.testing.assert_close(vector, slow.sparse_vector)
    for logits in (fast.logits, model.read(code).logits, pooled.logits):
        torch.testing.assert_close(logits, slow.logits)
    read = read_words(model, ids, mask, None)
    assert read.shifts.is_shifted.any()
    assert not read.shifts.is_shifted.all()


def test_live_columns_have_the_gradients_of_all_columns():
    grads = []
    for live_only in (False, True):
        model = literal_model()
        ids, mask = batch_of(model, *TEXTS)
        encoded = model.encode_document(ids, mask, live_only=live_only)
        logits = model.decide(encoded.sparse_vector, "classify", encoded.words).logits
        (logits.square().sum() + encoded.gate.open_prob.sum()).backward()
        grads.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert grads[0].keys() == grads[1].keys()
    assert grads[0]["context.layer.weight"].abs().sum() > 0
    for name, grad in grads[0].items():
        torch.testing.assert_close(grads[1][name], grad)


def test_states_that_are_there_already_are_not_made_again():
    model = literal_model()
    ids, mask = batch_of(model, *TEXTS)
    with torch.no_grad():
        states = model.encoder_states(ids, mask)
        expected = model.encode_sparse(ids, mask)
        model.backbone.encoder_states = None
        assert torch.equal(model.encode_sparse(ids, mask, states).values, expected.values)


def test_without_context_every_word_of_a_text_has_the_same_activation_and_repeated_ones_no_more():
    model = literal_model(shifting=False)
    ids, mask = batch_of(model, *TEXTS)
    code = model.encode_sparse(ids, mask)
    tokens = mask.sum(1)
    torch.testing.assert_close(code.values, (16 / tokens[code.rows]).sqrt())
    assert torch.equal(code.values, code.defaults)
    assert default_activation(torch.tensor([64, 16, 0])).tolist() == [0.5, 1.0, 4.0]
    assert int(code.counts[1]) == 2


def test_a_word_that_occurs_several_times_has_the_mean_over_its_occurrences():
    model = literal_model()
    ids, mask = batch_of(model, TEXTS[3])
    (boring,) = model.dimensions.find("boring")
    model.context.size[boring] = 9.0
    read = read_words(model, ids, mask, None)
    here = read.words == boring
    assert int(here.sum()) == 3
    assert read.shifts.factor[here].unique().numel() > 1
    value = model.encode_document(ids, mask).sparse_vector[0, boring]
    torch.testing.assert_close(value, default_activation(mask.sum(1))[0] * read.shifts.factor[here].mean())


def test_a_word_stands_where_context_shifts_it_most():
    model = literal_model()
    ids, mask = batch_of(model, TEXTS[3])
    (boring,) = model.dimensions.find("boring")
    model.context.size[boring] = 9.0
    read = read_words(model, ids, mask, None)
    here = read.words == boring
    most = read.positions[here][(read.shifts.factor[here] - 1).abs().argmax()]
    code = model.encode_sparse(ids, mask)
    assert code.positions[code.ids == boring].tolist() == [int(most)]
    still = literal_model(shifting=False).encode_sparse(ids, mask)
    assert still.positions[still.ids == boring].tolist() == [int(read.positions[here].min())]


def test_the_state_of_a_word_is_the_mean_over_its_tokens():
    model = literal_model()
    ids, mask = batch_of(model, *TEXTS)
    states = torch.randn(*ids.shape, 5)
    words = model.own_words(ids).masked_fill(~mask, NO_WORD)
    found = model.literal.word_states(states, ids, words != NO_WORD)
    slow = []
    for row, at in (words != NO_WORD).nonzero().tolist():
        end = at + 1
        while end < ids.shape[1] and tiny.wordpiece().convert_ids_to_tokens(int(ids[row, end])).startswith("##"):
            end += 1
        slow.append(states[row, at:end].mean(0))
    torch.testing.assert_close(found, torch.stack(slow))


def test_a_model_without_context_asks_no_encoder():
    model = literal_model(context=None)
    expected = logits_of(literal_model(shifting=False), *TEXTS)
    model.backbone.encoder_states = None
    assert torch.equal(logits_of(model, *TEXTS), expected)


def test_contributions_and_bias_sum_to_the_logit():
    model = literal_model()
    for text in (*TEXTS, *UNSEEN):
        why = explain(model, text, target="positive", all_tokens=True)
        logits = logits_of(opened(model, text), text)[0]
        expected = float(logits[2] - logits.mean())
        assert sum(word.contribution for word in why.words) + why.bias == pytest.approx(expected, abs=1e-5)
        assert not any(word.is_expansion for word in why.words)


# Taking them away


@pytest.mark.parametrize("way", ["view", "for good"])
@pytest.mark.parametrize("word", ["good", "badly"])
def test_a_removed_word_is_bitwise_zero_and_the_others_contribute_as_before(way, word):
    model = literal_model()
    ids, mask = batch_of(model, *TEXTS)
    with torch.no_grad():
        before = model.encode_document(ids, mask).sparse_vector
    (place,) = model.dimensions.find(word)
    assert (before[:, place] != 0).any()
    if way == "view":
        without = SuppressedModel(model, word)
    else:
        without = model
        suppression = suppress_token_globally(model, word)
    # Forms that were never met have a dimension now, so that they stay away too.
    expected = pad(before, (0, len(without.dimensions) - before.shape[1]))
    expected[:, place] = 0.0
    with torch.no_grad():
        assert torch.equal(without.encode_document(ids, mask).sparse_vector, expected)
        assert torch.equal(without.encode_sparse(ids, mask).dense(), expected)
        assert torch.equal(without.classify(without(ids, mask), mask).sparse_vector != 0, expected != 0)
        if way == "for good":
            suppression.undo()
        assert torch.equal(model.encode_document(ids, mask).sparse_vector, before)


def test_a_removed_word_stays_removed_in_texts_with_new_words():
    model = literal_model()
    suppressed = SuppressedModel(model, "good")
    assert "good" not in {word.word for word in explain(suppressed, UNSEEN[0], all_tokens=True).words}
    assert "good" in {word.word for word in explain(model, UNSEEN[0], all_tokens=True).words}


# Kept, and refused


def test_a_saved_model_reads_and_decides_as_before(tmp_path):
    model = literal_model()
    suppress_token_globally(model, "church")
    save_pretrained(model, tmp_path / "model")
    back = from_pretrained(tmp_path / "model")
    assert back.config.literal.multi_piece_words == SPLIT
    texts = [*TEXTS, *UNSEEN]
    assert torch.equal(logits_of(opened(back, *texts), *texts), logits_of(opened(model, *texts), *texts))
    assert torch.equal(back.context.size, model.context.size)


def test_a_tagger_on_literal_words_is_refused_with_the_remedy():
    model = literal_model()
    ids, mask = batch_of(model, *TEXTS)
    for route in (model.encode_positions, model.encode_at):
        with pytest.raises(ValueError, match="decides on documents.*Tag with recipe: neighbours"):
            route(ids, mask, mask)
    tokens = tokenize(model.tokenizer, TEXTS, 32)
    tagged = Positions(tokens, [[0] * len(row) for row in tokens.ids])
    with pytest.raises(ValueError, match="documents with a label each; tag with recipe: neighbours"):
        Trainer(model, tagged, tagged, recipe_by_name("anchored").training)


LITERAL = {"literal": {}, "gate": "presence", "pool": "sum", "head": "table"}


@pytest.mark.parametrize(
    "other",
    [
        {"gate": "drelu"},
        {"pool": "max"},
        {"head": "relu"},
        {"neighbourhood": {}},
        {"expander": {"token_ids": (9,), "num_senses": 2}},
        {"shapes": {}},
    ],
    ids=str,
)
def test_parts_that_literal_words_cannot_use_are_refused(other):
    ModelConfig.model_validate(LITERAL)
    with pytest.raises(ValueError, match="model.literal needs gate: presence, pool: sum and head: table"):
        ModelConfig.model_validate({**LITERAL, **other})


@pytest.mark.parametrize("part", [{"gate": "presence"}, {"pool": "sum"}, {"head": "table"}, {"context": {}}], ids=str)
def test_parts_of_literal_words_are_refused_without_them(part):
    with pytest.raises(ValueError, match="are for model.literal; set it"):
        ModelConfig.model_validate(part)


def test_a_word_given_twice_is_refused():
    with pytest.raises(ValueError, match="names a word twice: badly"):
        literal_model(words=("badly", "filmed", "badly"))


def test_words_that_were_added_have_embeddings_after_the_others():
    model = literal_model()
    view = opened(model, *UNSEEN)
    assert len(dimension_embeddings(view)) == len(view.dimensions) > len(model.dimensions)
    assert dimension_embeddings(view)[: len(model.dimensions)].equal(dimension_embeddings(model))
