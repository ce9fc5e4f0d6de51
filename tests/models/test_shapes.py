import pytest
import torch

from lexical_sae.intervene import SuppressedModel, suppress_token_globally
from lexical_sae.mechanistic.attribution import code_identity_error, identity_error
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.layers.shapes import ShapeFeatures
from lexical_sae.models.lexical_sae import TAG
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.models.sparse_code import SparseCode
from lexical_sae.training.steps import encoder_parameters
from tests import tiny

SHAPES = ShapeFeatures.Config().build(0)


def shaped(**settings):
    return tiny.model(ModelConfig.model_validate({"gate": "drelu", "shapes": {}, **settings}))


def some_positions(model, seed=0):
    ids, mask = tiny.batch(seed=seed)
    generator = torch.Generator().manual_seed(seed)
    chosen = mask & (torch.rand(mask.shape, generator=generator) < 0.6)
    present = mask[..., None] & (torch.rand(*mask.shape, len(model.shapes), generator=generator) < 0.4)
    return ids, mask, chosen, present


@pytest.mark.parametrize(
    ("words", "at", "named"),
    [
        (["Oslo"], 0, {"is capitalised", "opens the sentence"}),
        (["EU", "rejects"], 0, {"all caps", "opens the sentence"}),
        (["the", "U.S.", "team"], 1, {"all caps", "has full stop"}),
        (["McDonald", "won"], 1, {"after a capital"}),
        (["McDonald", "won"], 0, {"is capitalised", "mixed case", "opens the sentence"}),
        (["on", "1996-08-22", "Li"], 1, {"has digit", "is a number", "has hyphen", "before a capital"}),
        (["x", "B-52s"], 1, {"is capitalised", "has digit", "has hyphen"}),
        (["SOCCER", "-", "JAPAN", "WIN"], 1, {"after a capital", "before a capital", "in a headline"}),
        (["-", "A"], 1, {"is capitalised"}),
        (["x", ""], 1, set()),
    ],
)
def test_a_word_has_the_shapes_that_a_reader_would_name(words, at, named):
    row = SHAPES.describe(words)[at]
    assert {name for name, has in zip(SHAPES.config.names, row.tolist(), strict=True) if has} == named


def test_a_sentence_without_words_has_no_shapes():
    assert SHAPES.describe([]).shape == (0, len(SHAPES))


def test_shapes_of_the_word_alone_are_the_first_of_all():
    alone = ShapeFeatures.Config(context=False).build(0)
    words = ["The", "EU", "b-2"]
    assert torch.equal(alone.describe(words), SHAPES.describe(words)[:, : len(alone)])
    assert len(alone) < len(SHAPES)


def test_shapes_are_the_last_dimensions_and_have_names_of_their_own():
    model = shaped(expander={"token_ids": [20], "num_senses": 3})
    names = model.dimensions.names(range(len(model.dimensions)))
    assert tuple(names[model.shapes.first :]) == model.config.shapes.names
    assert {model.dimensions[i].kind for i in range(model.shapes.first, len(names))} == {"shape"}
    assert len(set(names)) == len(names)


SETTINGS = [
    {},
    {"gate": "jumprelu"},
    {"head": "bcos"},
    {"topk_per_position": 3},
    {"neighbourhood": {"words_per_token": 4}},
    {"expander": {"token_ids": [20, 30], "num_senses": 3}},
    {"shapes": {"in_encoder": True}},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_all_roads_to_a_position_agree_and_decompose(settings):
    model = shaped(**settings)
    model.start_from_backbone()
    ids, mask, chosen, present = some_positions(model)
    if model.shape_vectors is not None:
        torch.nn.init.normal_(model.shape_vectors)
    with torch.no_grad():
        slow = model.encode(ids, mask, shapes=present)
        dense = model.encode_at(ids, mask, chosen, shapes=present)
        state = model.decide(dense.sparse_vector, TAG)
        sparse = model.read(model.encode_positions(ids, mask, chosen, present), TAG)
    torch.testing.assert_close(dense.sparse_vector, slow.sparse_sequence[chosen])
    torch.testing.assert_close(dense.logits, slow.logits[chosen])
    torch.testing.assert_close(sparse.code.dense(), dense.sparse_vector)
    assert torch.equal(dense.sparse_vector[:, model.shapes.first :], present[chosen].float())
    torch.testing.assert_close(sparse.logits, state.logits)
    assert identity_error(state).max().item() < 1e-5
    assert code_identity_error(sparse).max().item() < 1e-5


@pytest.mark.parametrize("settings", [{}, {"neighbourhood": {"words_per_token": 4}}], ids=str)
def test_without_shapes_chosen_positions_are_those_of_all_positions(settings):
    model = tiny.model(ModelConfig.model_validate({"gate": "drelu", **settings}))
    model.start_from_backbone()
    ids, mask = tiny.batch()
    with torch.no_grad():
        slow, fast = model.encode(ids, mask), model.encode_at(ids, mask, mask)
    torch.testing.assert_close(fast.sparse_vector, slow.sparse_sequence[mask])
    for ours, theirs in zip(vars(fast.gate).values(), vars(slow.gate).values(), strict=True):
        torch.testing.assert_close(ours, theirs[mask])


def test_shapes_change_no_decision_on_documents():
    plain, model = tiny.model(ModelConfig(gate="drelu")), shaped()
    model.load_state_dict(plain.state_dict() | _same_start(plain, model))
    ids, mask = tiny.batch()
    with torch.no_grad():
        ours, theirs = model.classify_document(ids, mask), plain.classify_document(ids, mask)
        code = model.encode_sparse(ids, mask)
    assert torch.equal(ours.logits, theirs.logits)
    assert torch.equal(ours.sparse_vector[:, : len(plain.dimensions)], theirs.sparse_vector)
    assert not ours.sparse_vector[:, len(plain.dimensions) :].any()
    assert int(code.ids.max()) < model.shapes.first


def _same_start(plain, model):
    """The shaped model's tensors with a row per dimension, their first rows those of the plain model."""
    ours, theirs = model.state_dict(), plain.state_dict()
    grown = {name: tensor.clone() for name, tensor in ours.items() if tensor.shape != theirs[name].shape}
    for name, tensor in grown.items():
        tensor[: len(theirs[name])] = theirs[name]
    assert grown
    return grown


def test_a_suppressed_shape_contributes_nothing_but_did_before():
    model = shaped()
    ids, mask, chosen, present = some_positions(model)
    present[..., 0] = mask
    capital = model.shapes.first
    view = SuppressedModel(model, ["is capitalised"])
    before, after = (m.encode_positions(ids, mask, chosen, present) for m in (model, view))
    assert (before.ids == capital).sum() == len(before)
    assert not (after.ids == capital).any()
    assert not view.encode_at(ids, mask, chosen, shapes=present).sparse_vector[:, capital].any()
    done = suppress_token_globally(model, "is capitalised")
    assert done.newly_closed == (capital,)
    assert not (model.encode_positions(ids, mask, chosen, present).ids == capital).any()
    done.undo()
    assert torch.equal(model.encode_positions(ids, mask, chosen, present).ids, before.ids)


def test_a_cap_counts_words_and_leaves_shapes():
    code = SparseCode.from_dense(torch.tensor([[0.2, 3.0, 0.0, 1.0, 1.0], [0.0, 0.5, 0.4, 0.0, 1.0]]))
    kept = ShapeFeatures.Config().build(3).keep_strongest_words(code, 1)
    assert kept.dense().tolist() == [[0.0, 3.0, 0.0, 1.0, 1.0], [0.0, 0.5, 0.0, 0.0, 1.0]]


def test_a_tagger_with_shapes_is_not_asked_without_them_nor_the_other_way_round():
    model = shaped()
    ids, mask, chosen, present = some_positions(model)
    for way in (model.encode_positions, model.encode_at):
        with pytest.raises(ValueError, match="how words are written: give `shapes`"):
            way(ids, mask, chosen)
    with pytest.raises(ValueError, match="has no shape features"):
        tiny.model().encode_positions(ids, mask, chosen, present)


def test_a_saved_tagger_keeps_its_shapes(tmp_path):
    model = shaped(shapes={"context": False})
    loaded = from_pretrained(save_pretrained(model, tmp_path / "model"))
    ids, mask, chosen, present = some_positions(model)
    ours, theirs = (m.read(m.encode_positions(ids, mask, chosen, present), TAG).logits for m in (model, loaded))
    assert torch.equal(ours, theirs)


def words_open(model, ids, mask, chosen, present):
    code = model.encode_positions(ids, mask, chosen, present)
    return code.dense()[:, : model.shapes.first]


def test_an_encoder_that_gets_shapes_reads_every_word_by_them():
    model, ids, mask = shaped(shapes={"in_encoder": True}), *tiny.batch()
    first = torch.zeros_like(mask)
    first[:, 1] = True
    plain = torch.zeros(*ids.shape, len(model.shapes), dtype=torch.bool)
    last = plain.clone()
    # A shape of another word than the one that is read.
    last[:, 2, 0] = True
    assert torch.equal(words_open(model, ids, mask, first, last), words_open(model, ids, mask, first, plain))
    torch.nn.init.normal_(model.shape_vectors)
    assert not torch.equal(words_open(model, ids, mask, first, last), words_open(model, ids, mask, first, plain))


def test_an_encoder_without_shapes_reads_none():
    model = shaped()
    assert model.shape_vectors is None
    ids, mask, chosen, present = some_positions(model)
    assert torch.equal(
        words_open(model, ids, mask, chosen, present), words_open(model, ids, mask, chosen, torch.zeros_like(present))
    )


def test_padding_on_the_left_moves_shapes_with_their_words():
    model = shaped(shapes={"in_encoder": True})
    torch.nn.init.normal_(model.shape_vectors)
    ids, mask, chosen, present = some_positions(model)
    right = words_open(model, ids, mask, chosen, present)
    turned = [torch.cat([torch.zeros_like(part[:, :2]), part], 1) for part in (ids, mask, chosen, present)]
    torch.testing.assert_close(words_open(model, *turned), right)


@pytest.mark.parametrize("in_encoder", [True, False])
def test_vectors_of_shapes_learn_with_the_encoder_and_are_saved(in_encoder, tmp_path):
    model = shaped(shapes={"in_encoder": in_encoder})
    ids, mask, chosen, present = some_positions(model)
    model.decide(model.encode_at(ids, mask, chosen, shapes=present).sparse_vector, TAG).logits.sum().backward()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert ("shape_vectors" in [names[id(p)] for p in encoder_parameters(model)]) == in_encoder
    if in_encoder:
        assert model.shape_vectors.grad.abs().sum().item() > 0
        torch.nn.init.normal_(model.shape_vectors)
    loaded = from_pretrained(save_pretrained(model, tmp_path / "model"))
    assert torch.equal(words_open(model, ids, mask, chosen, present), words_open(loaded, ids, mask, chosen, present))


def test_shapes_start_apart_from_each_other():
    model = shaped(head={"kind": "relu", "start_from_embeddings": True})
    model.start_from_backbone()
    rows = torch.nn.functional.normalize(model.head(TAG).word_vectors.detach()[model.shapes.first :], dim=-1)
    likeness = (rows @ rows.T).fill_diagonal_(0)
    assert likeness.abs().max().item() < 0.9
