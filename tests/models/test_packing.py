import itertools
import logging

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from splade.models import packing
from splade.models.packing import PackedEncoder, PackedRows, plan_rows
from tests import tiny

PACKING_FAMILIES = [family for family in tiny.FAMILIES if family != "deberta-v2"]


def texts(*lengths: int, seed: int = 0) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(6, len(tiny.wordpiece()), (length,), generator=generator).tolist() for length in lengths]


def states_alone(backbone, ids) -> torch.Tensor:
    with torch.no_grad():
        alone = [backbone.hidden(torch.tensor([text]), torch.ones(1, len(text), dtype=torch.bool)) for text in ids]
    return torch.cat([states[0] for states in alone])


@given(st.lists(st.integers(1, 20)), st.integers(1, 20))
def test_every_text_has_one_place_and_no_row_overflows(lengths, capacity):
    rows = plan_rows(lengths, capacity)
    assert sorted(itertools.chain(*rows)) == list(range(len(lengths)))
    for row in rows:
        assert len(row) == 1 or sum(lengths[text] for text in row) <= capacity
    # First fit leaves at most one row half empty or emptier.
    loads = [sum(lengths[text] for text in row) for row in rows]
    assert sum(load <= capacity / 2 for load in loads) <= 1


def test_texts_see_themselves_alone_and_count_from_zero():
    packed = PackedRows.from_texts([[7, 8], [9], [10, 11, 12]], [[2, 1], [0]], pad_id=0)
    assert packed.input_ids.tolist() == [[10, 11, 12, 9], [7, 8, 0, 0]]
    assert packed.positions.tolist() == [[0, 1, 2, 0], [0, 1, 0, 0]]
    assert packed.texts.tolist() == [[2, 2, 2, 1], [0, 0, -1, -1]]
    assert packed.sees[0, 3].tolist() == [False, False, False, True]
    assert packed.sees[1, 3].tolist() == [False, False, True, True]


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("capacity", [12, 40])
def test_packed_states_equal_those_of_each_text_alone(family, capacity):
    backbone = tiny.backbone(family)
    ids = texts(5, 9, 2, 30, 7, 7, 3, 1, 11)
    encoder = PackedEncoder(backbone, capacity)
    flat, offsets = encoder.hidden(ids)
    assert offsets.diff().tolist() == [len(text) for text in ids]
    torch.testing.assert_close(flat, states_alone(backbone, ids), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("family", PACKING_FAMILIES)
def test_family_packs(family):
    assert PackedEncoder(tiny.backbone(family)).packs


def test_windows_of_local_attention_are_kept():
    mlm = tiny.masked_lm("modernbert")
    mlm.config.local_attention = 8
    backbone = packing.Backbone(mlm, tiny.wordpiece()).eval()
    encoder, ids = PackedEncoder(backbone, 64), texts(30, 20, 6)
    assert encoder.packs
    torch.testing.assert_close(encoder.hidden(ids)[0], states_alone(backbone, ids), atol=2e-5, rtol=1e-5)
    near = states_alone(backbone, ids)
    mlm.config.local_attention = 1000
    assert (near - states_alone(backbone, ids)).abs().max() > 1e-2, "the window does not matter to this model"


def test_a_family_that_takes_no_mask_of_pairs_is_padded_and_says_so(caplog):
    encoder = PackedEncoder(tiny.backbone("deberta-v2"))
    with caplog.at_level(logging.WARNING):
        assert not encoder.packs
        assert not encoder.packs
    assert [record.message for record in caplog.records] == [
        "a 'deberta-v2' encoder cannot take several texts in one row: texts are padded instead"
    ]


def test_probe_notices_texts_that_see_each_other(monkeypatch):
    monkeypatch.setattr(PackedRows, "sees", property(lambda self: self.texts[:, :, None] > -2))
    assert not PackedEncoder(tiny.backbone()).packs


def test_probe_notices_positions_that_do_not_start_again(monkeypatch):
    monkeypatch.setattr(packing, "_first_position", lambda _: 1)
    assert not PackedEncoder(tiny.backbone()).packs


def test_probe_leaves_a_training_model_in_training():
    backbone = tiny.backbone().train()
    assert PackedEncoder(backbone).packs
    assert backbone.training


def test_no_texts_give_no_states():
    flat, offsets = PackedEncoder(tiny.backbone()).hidden([])
    assert flat.shape == (0, 32)
    assert offsets.tolist() == [0]


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_texts_without_tokens_or_with_too_many_are_refused(family):
    encoder = PackedEncoder(tiny.backbone(family))
    most = encoder.backbone.max_tokens
    with pytest.raises(ValueError, match="text 1 has no tokens"):
        encoder.hidden([[7], []])
    with pytest.raises(ValueError, match=f"text 0 has {most + 1} tokens, the encoder takes {most}"):
        encoder.hidden(texts(most + 1))
    assert len(encoder.hidden(texts(most))[0]) == most
