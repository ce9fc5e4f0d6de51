import pytest
import torch

from lexical_sae.evaluation.metrics.layerwise import attribute_layers
from tests import tiny
from tests.evaluation.corpora import TEXTS


def centered(logits, predicted):
    return (logits - logits.mean(-1, keepdim=True)).gather(1, predicted[:, None]).squeeze(1)


@pytest.mark.parametrize("family", sorted(tiny.FAMILIES))
def test_every_family_has_its_two_layers(family):
    model = tiny.model(family=family)
    before = model(*tiny.batch())
    found = attribute_layers(model, TEXTS[:3])
    assert [layer.layer for layer in found.layers] == [1, 2]
    assert all(abs(layer.contribution.mean) > 1e-4 for layer in found.layers)
    total = sum(layer.contribution.mean for layer in found.layers) + found.remainder.mean
    assert total == pytest.approx(found.full.mean - found.without_layers.mean, abs=1e-4)
    assert torch.equal(model(*tiny.batch()), before), "the encoder is as it was"


def test_a_skipped_layer_is_a_layer_that_is_not_there():
    model, texts = tiny.model(), ["a good film and the dogs play"]
    tokens = model.tokenizer(texts, return_tensors="pt")
    given = tokens["input_ids"], tokens["attention_mask"]
    found = attribute_layers(model, texts)
    with torch.no_grad():
        full = model.classify_document(*given).logits
        predicted = full.argmax(-1)
        layers, left = model.backbone.encoder.encoder.layer, {}
        for name, kept in {"1": layers[1:], "2": layers[:1], "both": layers[:0]}.items():
            model.backbone.encoder.encoder.layer = kept
            left[name] = centered(model.classify_document(*given).logits, predicted)
        model.backbone.encoder.encoder.layer = layers
    said = centered(full, predicted)
    for layer in found.layers:
        assert layer.contribution.mean == pytest.approx(float(said - left[str(layer.layer)]), abs=1e-4)
    assert found.without_layers.mean == pytest.approx(float(left["both"]), abs=1e-4)


def test_an_encoder_without_layers_is_refused():
    model = tiny.model()
    model.backbone.encoder.encoder.layer = torch.nn.ModuleList()
    with pytest.raises(ValueError, match="has no list of layers"):
        attribute_layers(model, ["a good film"])
