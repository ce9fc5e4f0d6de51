"""The exact answers on whole models: every head, saturation, pool and sense slot, for texts and for positions."""

import itertools

import pytest
import torch

from lexical_sae.mechanistic.attribution import code_identity_error
from lexical_sae.mechanistic.exact import along_path, leave_one_out
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import CLASSIFY, TAG
from tests import tiny

BANK = tiny.wordpiece().convert_tokens_to_ids("bank")
VPE = {"token_ids": (BANK,), "num_senses": 3}
PARTS = list(itertools.product(("relu", "bcos"), ("log1p", "identity"), ("max", "attention"), (None, VPE)))
IDS = ["-".join((*names, "senses" if senses else "plain")) for *names, senses in PARTS]


@pytest.fixture(params=PARTS, ids=IDS)
def model(request):
    head, saturation, pool, expander = request.param
    config = {"gate": "drelu", "head": head, "saturation": saturation, "pool": pool, "expander": expander}
    made = tiny.model(ModelConfig.model_validate(config)).double()
    with torch.no_grad():
        for name in (CLASSIFY, TAG):
            for key, parameter in made.head(name).named_parameters():
                if "bias" in key:
                    parameter.normal_(std=0.3)
    return made


def codes(model):
    """The words of some texts and of all their positions, each with the name of the head that reads them."""
    ids, mask = tiny.batch(length=6, rows=3)
    ids[0, 2] = BANK
    return {CLASSIFY: model.encode_sparse(ids, mask), TAG: model.encode_positions(ids, mask, mask)}


@torch.no_grad()
def test_leaving_one_word_out_equals_deciding_again_for_texts_and_positions(model):
    for name, code in codes(model).items():
        head, vectors = model.head(name), code.dense()
        assert len(model.dimensions) == vectors.shape[1]
        found = leave_one_out(head, model.read(code, name))
        left = vectors[code.rows].scatter(1, code.ids[:, None], 0.0)
        expected = head(vectors).logits[code.rows] - head(left).logits
        torch.testing.assert_close(found.effects.per_class, expected, atol=1e-10, rtol=1e-10)
        assert found.effects.per_class.abs().max() > 1e-3


@torch.no_grad()
def test_direct_and_path_attributions_sum_to_the_logits_of_texts_and_positions(model):
    for name, code in codes(model).items():
        head, state = model.head(name), model.read(code, name)
        assert (code_identity_error(state) <= 1e-10).all()
        if head.is_piecewise_linear:
            path = along_path(head, state)
            assert (code_identity_error(path) <= 1e-10).all()
            empty = head(torch.zeros(len(code), code.size, dtype=torch.float64)).logits
            torch.testing.assert_close(path.b_eff, empty, atol=1e-10, rtol=1e-10)
