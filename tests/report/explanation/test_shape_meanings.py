import re

from lexical_sae.models.layers.shapes import ShapeFeatures
from lexical_sae.report.explanation.tagged_page import SHAPE_MEANINGS

SHAPES = ShapeFeatures.Config(context=True).build(0)


def test_every_shape_has_a_meaning_in_its_order():
    assert tuple(SHAPE_MEANINGS) == SHAPES.config.names


def test_the_examples_are_examples():
    for name, meaning in SHAPE_MEANINGS.items():
        _, _, examples = meaning.partition(": ")
        for word in re.split(r",? or |, ", examples) if examples else []:
            assert SHAPES.describe(["a", word])[1, SHAPES.config.names.index(name)], (name, word)
