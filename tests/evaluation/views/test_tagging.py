import pytest

from lexical_sae.evaluation.tagging.faithfulness import TagFaithfulness, measure_tags
from lexical_sae.evaluation.views.tagging import tagging_evaluation_figures
from tests.evaluation.tagging.test_faithfulness import SPLIT, tagger


@pytest.fixture(scope="module")
def found():
    return measure_tags(tagger(), SPLIT).as_dict()


def test_each_tier_says_what_it_is_over_and_gives_its_controls(found):
    tables = dict(tagging_evaluation_figures(TagFaithfulness.from_dict(found)))
    for key, who in (
        ("entities", "n {} words tagged as part of an entity"),
        ("all_words", "n all {} words, whatever their tag"),
    ):
        own = [rows for heading, rows in tables.items() if who.format(found[key]["words"]) in heading]
        true, enough, without = own
        told = {name: (value, remark) for name, value, remark in true}
        direct = found[key]["eraser"]["orders"]["direct"]["comprehensiveness"]["mean"]
        random = found[key]["eraser"]["orders"]["random"]["comprehensiveness"]["mean"]
        assert told["sums to the logit"][0] == "at every word"
        assert told["comprehensiveness"][0].startswith(f"{direct:.3f}")
        assert f"random words: {random:.3f}" in told["comprehensiveness"][1]
        assert enough[0][0] == "no words"
        assert all("random" in remark for _, _, remark in enough[1:])
        assert without[-1][0] == "without all words"
    assert "tags at random" in tables["Do tags use different words?"][0][2]


def test_a_tier_without_words_is_left_out(found):
    tables = tagging_evaluation_figures(TagFaithfulness.from_dict({**found, "entities": None}))
    assert not any("entity" in heading for heading, _ in tables)
    assert len(tables) == 4
