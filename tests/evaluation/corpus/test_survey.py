import json

import pytest

from lexical_sae.evaluation.corpus.survey import survey
from lexical_sae.evaluation.names.tests import strongest_words
from lexical_sae.models.config import ModelConfig
from tests import tiny
from tests.evaluation.corpora import TEXTS
from tests.literal import literal_model

LABELS = [row % 3 for row in range(len(TEXTS))]


@pytest.fixture(scope="module")
def found():
    return survey(tiny.model(), TEXTS, LABELS, batch_size=3)


def test_one_pass_gives_lexicon_weights_and_atlas(found):
    assert found.lexicon.texts == found.atlas.texts == len(TEXTS)
    for own in found.lexicon.classes:
        shown = (*own.contributes_to, *own.contributes_against)
        assert shown
        assert found.weights[own.label].keys() == {word.name for word in shown}
        for word in shown:
            assert found.weights[own.label][word.name].count >= word.count
    assert found.steadiness.words > 0
    assert json.loads(json.dumps(found.as_dict()))["atlas"]["sampled"] == len(TEXTS)


def test_the_strongest_words_of_names_are_those_of_the_lexicon(found):
    strongest = strongest_words(tiny.model(), TEXTS, LABELS)
    for index, own in enumerate(found.lexicon.classes):
        ours = {word.name: word.contribution for word in own.contributes_to}
        assert {word.name: word.contribution for word in strongest[index]} == pytest.approx(ours, abs=1e-4)


def test_a_head_without_regions_has_a_lexicon_but_no_atlas():
    found = survey(tiny.model(ModelConfig(gate="drelu", head="bcos")), TEXTS)
    assert found.atlas is None
    assert any(own.contributes_to for own in found.lexicon.classes)


def test_the_strongest_words_of_names_are_whole_words_unless_all_are_asked_for():
    for all_tokens in (False, True):
        found = strongest_words(tiny.model(), TEXTS, LABELS, 10_000, all_tokens=all_tokens)
        names = [word.name for words in found.values() for word in words]
        assert any(not name[:1].isalpha() for name in names) == all_tokens
        assert any(name[:1].isalpha() for name in names)


def test_merged_forms_are_named_as_the_corpus_has_them_and_say_their_sum():
    texts = ["a good film", "good films", "the films and a film", "dogs"]
    model = literal_model(shifting=False)

    def said(**option):
        (own, *_) = survey(model, texts, [0, 0, 0, 1], top=100, **option).lexicon.classes
        return {word.name: word.contribution for word in (*own.contributes_to, *own.contributes_against)}

    alone, merged = said(), said(merge_inflections=True)
    assert merged["film/films"] == pytest.approx(alone["film"] + alone["films"])
    assert {name: merged[name] for name in merged if "/" not in name} == pytest.approx(
        {name: alone[name] for name in alone if name not in ("film", "films")}
    )
