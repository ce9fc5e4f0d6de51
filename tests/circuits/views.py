"""Step views of tiny real models, as training will make them."""

import torch

from lexical_sae.circuits.objective import StepView
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import CLASSIFY, TAG, LexicalSAE
from lexical_sae.models.projected_reading import word_logits
from tests import tiny

LABELS = torch.tensor([0, 1, 2, 0, 1, 2])


def model(gate: str = "jumprelu", **others) -> LexicalSAE:
    settings = {"kind": gate, "initial_threshold": 0.5}
    settings |= {"bandwidth": 0.5} if gate == "jumprelu" else {}
    return tiny.model(ModelConfig.model_validate({"gate": settings, **others}))


def document_view(model: LexicalSAE, rows: slice = slice(None)) -> StepView:
    """Six documents, two of each class."""
    ids, mask = (tensor[rows] for tensor in tiny.batch(rows=6))
    zmax = model.max_logits(ids, mask)
    gate = model.gate(zmax)
    own = torch.zeros_like(zmax, dtype=torch.bool).scatter_(1, ids, True)
    return StepView(
        state=model.decide(model.saturation(gate.activated), CLASSIFY),
        gate=gate,
        labels=LABELS[rows],
        head=model.heads[CLASSIFY],
        thresholds=model.gate.thresholds(),
        excess=zmax - model.gate.openings(),
        own=own,
    )


def position_view(model: LexicalSAE) -> StepView:
    """All real positions of six texts, tagged."""
    ids, mask = tiny.batch(rows=6)
    encoded = model.encode(ids, mask)
    gate = encoded.gate.map(lambda part: part[mask])
    zmax = word_logits(model, ids, mask)[mask]
    return StepView(
        state=model.tag_state(encoded.sparse_sequence, mask),
        gate=gate,
        labels=torch.arange(int(mask.sum())) % 4,
        head=model.heads[TAG],
        thresholds=model.gate.thresholds(),
        excess=zmax - model.gate.openings(),
        own=torch.zeros_like(zmax, dtype=torch.bool).scatter_(1, ids[mask][:, None], True),
    )
