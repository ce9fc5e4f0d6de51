import itertools

import pytest
import torch

from lexical_sae.mechanistic.attribution import attribute, identity_error
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.projected_reading import word_logits
from tests import tiny

GATES, POOLS, HEADS = ("drelu", "gated_jumprelu", "jumprelu"), ("max", "attention"), ("relu", "bcos")
BANK = tiny.wordpiece().convert_tokens_to_ids("bank")
VPE = {"token_ids": (BANK,), "num_senses": 3}


def settings(gate="drelu", pool="max", head="relu", **others) -> ModelConfig:
    return ModelConfig.model_validate({"gate": gate, "pool": pool, "head": head, **others})


@pytest.mark.parametrize(("gate", "pool", "head"), list(itertools.product(GATES, POOLS, HEADS)))
@pytest.mark.parametrize("saturation", ["log1p", "identity"])
@pytest.mark.parametrize("expander", [None, VPE], ids=["plain", "senses"])
@pytest.mark.parametrize("topk", [0, 3])
def test_identity_holds_for_every_combination_of_parts(gate, pool, head, saturation, expander, topk):
    others = {"saturation": saturation, "expander": expander, "topk_per_position": topk}
    model = tiny.model(settings(gate, pool, head, **others))
    ids, mask = tiny.batch()
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        model = model.to(dtype)
        with torch.no_grad():
            sequence = model(ids, mask)
            document, positions = model.classify(sequence, mask), model.tag_state(sequence, mask)
        assert (document.sparse_vector > 0).any(-1).all()
        assert (identity_error(document) <= tolerance).all()
        assert (identity_error(positions) <= tolerance).all()
        if topk:
            assert ((sequence > 0).sum(-1) <= topk).all()


@pytest.mark.parametrize(("gate", "pool"), list(itertools.product(GATES, POOLS)))
@pytest.mark.parametrize("others", [{}, {"expander": VPE}, {"topk_per_position": 3}], ids=str)
def test_both_routes_to_a_document_agree(gate, pool, others):
    model = tiny.model(settings(gate, pool, **others))
    ids, mask = tiny.batch()
    with torch.no_grad():
        slow = model.classify(model(ids, mask), mask)
        fast = model.classify_document(ids, mask)
    torch.testing.assert_close(fast.sparse_vector, slow.sparse_vector, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(fast.logits, slow.logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("gate", "pool"), list(itertools.product(GATES, POOLS)))
@pytest.mark.parametrize("others", [{}, {"expander": VPE}, {"topk_per_position": 3}], ids=str)
def test_sparse_code_holds_the_documents_words_and_where_they_came_from(gate, pool, others):
    model = tiny.model(settings(gate, pool, **others))
    ids, mask = tiny.batch()
    mask[2] = False
    with torch.no_grad():
        sequence = model(ids, mask)
        expected = model.classify(sequence, mask)
        code = model.encode_sparse(ids, mask)
        decision = model.read(code)
    torch.testing.assert_close(code.dense(), expected.sparse_vector, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(decision.logits, expected.logits, atol=1e-5, rtol=1e-5)
    assert code.counts[2] == 0
    if pool == "attention":
        assert (code.positions == -1).all()
        return
    assert mask[code.rows, code.positions].all()
    strongest = sequence[code.rows, code.positions, code.ids]
    torch.testing.assert_close(strongest, code.values, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("others", [{}, {"expander": VPE}, {"topk_per_position": 3}], ids=str)
def test_sparse_positions_hold_the_words_of_each_position(gate, others):
    model = tiny.model(settings(gate, **others))
    with torch.no_grad():
        if gate == "drelu":
            model.gate.theta.sub_(1.0)  # negative thresholds open logits below zero
    ids, mask = tiny.batch()
    chosen = mask.clone()
    chosen[:, 0] = False
    with torch.no_grad():
        sequence = model(ids, mask)
        code = model.encode_positions(ids, mask, chosen)
        tags = model.read(code, "tag").logits
    torch.testing.assert_close(code.dense(), sequence[chosen], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(tags, model.tag(sequence)[chosen], atol=1e-5, rtol=1e-5)
    assert torch.equal(code.positions, chosen.nonzero()[:, 1][code.rows])


def test_only_real_positions_can_be_chosen():
    model = tiny.model()
    ids, mask = tiny.batch()
    with pytest.raises(ValueError, match=f"{int((~mask).sum())} of the chosen positions are padding"):
        model.encode_positions(ids, mask, torch.ones_like(mask))
    # The tests check shapes and types as well, before the model can.
    with pytest.raises(Exception, match="chosen"):
        model.encode_positions(ids, mask, mask.long())
    assert len(model.encode_positions(ids, mask, torch.zeros_like(mask))) == 0


def test_topk_cuts_chosen_positions_at_inference_only():
    model = tiny.model(settings(topk_per_position=3))
    ids, mask = tiny.batch()
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    for training in (False, True):
        model.train(training)
        with torch.no_grad():
            code, sequence = model.encode_positions(ids, mask, mask), model(ids, mask)
        torch.testing.assert_close(code.dense(), sequence[mask], atol=1e-5, rtol=1e-5)
        assert (code.counts > 3).any() == training


def test_an_active_sense_slot_is_found_at_its_position():
    model = tiny.model(settings(expander=VPE))
    ids, mask = tiny.batch()
    ids[:, 1] = BANK
    appended = model.backbone.vocab_size
    with torch.no_grad():
        model.expander.scores.bias.copy_(torch.tensor([0.0, 0.0, 1e4]))
        model.gate.theta.sub_(10.0)
        code = model.encode_positions(ids, mask, mask)
        expected = model(ids, mask)[mask]
    assert (code.dense()[:, appended + 1] > 0).any()
    assert (code.dense()[:, [BANK, appended]] == 0).all()
    torch.testing.assert_close(code.dense(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("others", [{}, {"expander": VPE}], ids=str)
def test_a_training_model_gives_sparse_codes_and_learns_nothing_from_them(gate, others):
    model = tiny.model(settings(gate, **others))
    ids, mask = tiny.batch()
    before = {name: buffer.clone() for name, buffer in model.gate.named_buffers()}
    expected = model.encode_sparse(ids, mask)
    model.gate.train()
    code = model.encode_sparse(ids, mask)
    torch.testing.assert_close(code.dense(), expected.dense(), atol=1e-5, rtol=1e-5)
    model.encode_positions(ids, mask, mask)
    for name, buffer in model.gate.named_buffers():
        assert torch.equal(buffer, before[name])
    if gate == "jumprelu":
        model.encode_document(ids, mask)
        assert model.gate.spread_is_known


def test_openings_of_words_and_slots_leave_ties_to_the_gate_in_half_precision_too():
    model = tiny.model(settings(expander=VPE))
    with torch.no_grad():
        model.gate.theta.copy_(torch.linspace(-3, 3, len(model.gate.theta)))
    exact = model.gate.opening_logits()
    near = model.projection._opening()
    is_open = exact.isfinite()
    assert (near[is_open] < exact[is_open]).all()
    assert torch.equal(near[~is_open], exact[~is_open])
    model.gate.half()
    half = model.projection._opening()
    assert (half[is_open] < model.gate.opening_logits()[is_open]).all()
    assert torch.equal(half.isfinite(), is_open)
    torch.testing.assert_close(half, near, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_every_encoder_family_classifies_and_tags_with_one_instance(family):
    model = tiny.model(family=family)
    ids, mask = tiny.batch()
    with torch.no_grad():
        sequence = model(ids, mask)
        assert sequence.shape == (4, 9, len(tiny.wordpiece()))
        assert model.classify(sequence, mask).logits.shape == (4, 3)
        tags = model.tag(sequence)
        assert tags.shape == (4, 9, 4)
        torch.testing.assert_close(model.tag_state(sequence, mask).logits, tags[mask])


@pytest.mark.parametrize("gate", GATES)
def test_padding_is_zero_at_every_word(gate):
    model = tiny.model(settings(gate))
    with torch.no_grad():
        model.gate.thresholds().sub_(5) if gate == "drelu" else None  # negative thresholds open closed logits
    ids, mask = tiny.batch()
    with torch.no_grad():
        sequence = model(ids, mask)
    assert (sequence[~mask] == 0).all()
    assert (sequence[mask] > 0).any()


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("pool", POOLS)
def test_batching_order_and_padding_side_change_no_logit_or_attribution(family, pool):
    model = tiny.model(settings(pool=pool), family=family)
    ids, mask = tiny.batch(rows=6)
    lengths = mask.sum(1).tolist()
    left = torch.argsort(mask.to(torch.int8), dim=1, stable=True)
    shuffle = torch.tensor([3, 1, 5, 0, 2, 4])
    classes = torch.arange(6) % 3
    with torch.no_grad():
        together = model.classify_document(ids, mask)
        reference = attribute(together, classes)
        near_threshold = (_pooled_logits(model, ids, mask) - model.gate.thresholds()).abs() < 1e-4
        variants = {
            "one by one": [
                model.classify_document(ids[i : i + 1, :n], mask[i : i + 1, :n]) for i, n in enumerate(lengths)
            ],
            "left": [model.classify_document(ids.gather(1, left), mask.gather(1, left))],
            "shuffled": [model.classify_document(ids[shuffle], mask[shuffle])],
        }
    assert near_threshold.float().mean() < 0.01
    for name, states in variants.items():
        logits = torch.cat([state.logits for state in states])
        rows = shuffle if name == "shuffled" else torch.arange(6)
        torch.testing.assert_close(logits, together.logits[rows], atol=1e-5, rtol=1e-5, msg=name)
        starts = itertools.accumulate([0, *(len(state.logits) for state in states[:-1])])
        found = [attribute(s, classes[rows][k : k + len(s.logits)]) for k, s in zip(starts, states, strict=True)]
        gap = (torch.cat(found) - reference[rows]).masked_fill(near_threshold[rows], 0).abs()
        assert gap.max() <= 1e-5, name


def test_special_and_spare_dimensions_are_never_active():
    model = tiny.model(vocab_size=len(tiny.wordpiece()) + 7)
    ids, mask = tiny.batch()
    with torch.no_grad():
        model.backbone.decoder.bias.fill_(50.0)  # the bias alone opens every gate
        sequence = model(ids, mask)
    assert (sequence[mask][:, 6 : len(tiny.wordpiece())] > 0).all()
    assert (sequence[..., :6] == 0).all()
    assert (sequence[..., len(tiny.wordpiece()) :] == 0).all()


def test_closing_a_word_leaves_the_tied_input_embedding_alone():
    model = tiny.model()
    before = model.backbone.decoder.weight.detach().clone()
    ids, mask = tiny.batch()
    good = tiny.wordpiece().convert_tokens_to_ids("good")
    ids[0, 1] = good
    closed = torch.zeros(len(model.dimensions), dtype=torch.bool)
    closed[good] = True
    with torch.no_grad():
        model.backbone.decoder.bias[good] = 9.0
        assert (model(ids, mask)[mask][:, good] > 0).all()
        model.gate.close(closed)
        after = model(ids, mask)
    assert (after[..., good] == 0).all()
    assert torch.equal(model.backbone.decoder.weight, before)
    assert model.backbone.decoder.weight is model.backbone.encoder.get_input_embeddings().weight


def test_training_sends_a_gradient_to_every_part():
    model = tiny.model(settings("jumprelu", expander=VPE)).train()
    ids, mask = tiny.batch(rows=8)
    document = model.encode_document(ids, mask)
    loss = model.decide(document.sparse_vector, "classify").logits.square().sum() + document.gate.open_prob.sum()
    loss.backward()
    silent = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0}
    assert not {name for name in silent if not name.startswith("heads.tag")}


def test_longest_text_is_the_configs_wish_within_the_backbones_limit():
    assert tiny.model(ModelConfig(max_length=12)).max_length == 12
    assert tiny.model(ModelConfig(max_length=500)).max_length == 64


def test_words_are_masked_before_the_head_in_training_only():
    model = tiny.model(settings(masking={"low": 1.0, "high": 1.0}))
    words = torch.rand(2, len(model.dimensions))
    assert (model.decide(words, "classify").sparse_vector > 0).any()
    assert (model.train().decide(words, "classify").sparse_vector == 0).all()


def test_topk_does_not_cut_in_training():
    model = tiny.model(settings(topk_per_position=1))
    ids, mask = tiny.batch()
    with torch.no_grad():
        cut = model.encode_document(ids, mask).sparse_vector
        whole = model.train().encode_document(ids, mask).sparse_vector
    assert (cut > 0).sum() < (whole > 0).sum()


@pytest.mark.parametrize(("gate", "pool"), list(itertools.product(GATES, POOLS)))
def test_gate_of_a_document_is_the_gate_of_its_greatest_logits(gate, pool):
    model = tiny.model(settings(gate, pool))
    ids, mask = tiny.batch()
    with torch.no_grad():
        found = model.encode_document(ids, mask).gate
        expected = model.gate(word_logits(model, ids, mask).amax(1))
        torch.testing.assert_close(model.max_logits(ids, mask), word_logits(model, ids, mask).amax(1))
    for one, other in zip(vars(found).values(), vars(expected).values(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_a_missing_head_is_named():
    model = LexicalSAE(ModelConfig(), tiny.backbone(), {"classify": ["no", "yes"]})
    with pytest.raises(ValueError, match="no head 'tag'; it has: classify"):
        model.tag(torch.zeros(1, len(model.dimensions)))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({}, "at least one head"),
        ({"classify": ["one"]}, "two labels"),
        ({"classify": ["a", "a"]}, "twice"),
        ({"a.b": ["x", "y"]}, "plain name"),
    ],
)
def test_impossible_labels_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        LexicalSAE(ModelConfig(), tiny.backbone(), labels)


def _pooled_logits(model, ids, mask):
    return word_logits(model, ids, mask).amax(1)


def test_sense_slots_of_another_encoders_tokens_are_refused_in_words():
    config = ModelConfig.model_validate({"expander": {"token_ids": [50_000]}})
    with pytest.raises(ValueError, match="50000.* not words of this encoder's vocabulary"):
        tiny.model(config)
