import io
import re

import pytest
from rich.console import Console

from lexical_sae.report.diff import diff_view
from lexical_sae.report.lexicon import feature_panel, survey_view


def rendered(thing, width=200) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor")
    console.print(thing)
    return console.file.getvalue()


def styled(code, figure, output) -> bool:
    return re.search(rf"\x1b\[{code}m *{re.escape(figure)}", output) is not None


def word(name, contribution, **changes):
    figures = {"low": contribution - 0.125, "high": contribution + 0.125, "frequency": 0.25, "count": 5}
    return {"name": name, "contribution": contribution, **figures, "activation": 1.5, "is_rare": False, **changes}


def survey(name="good", label="positive"):
    own = {
        "label": label,
        "texts": 20,
        "contributes_to": [word(name, 0.5)],
        "contributes_against": [word("bad", -0.75)],
    }
    own["pieces"] = {"count": 3, "contribution": 0.1875}
    empty = {"label": "negative", "texts": 0, "contributes_to": [], "contributes_against": [], "pieces": None}
    group = {"texts": 19, "share": 0.95, "regions": 7, "decisions": {label: 19}, "agreement": 0.875, "margin_r2": 0.5}
    group["words"] = {label: [{"name": name, "weight": 0.25, "contribution": 0.1, "count": 3}], "negative": []}
    return {
        "lexicon": {"texts": 20, "classes": [own, empty]},
        "weights": {label: {name: {"mean": 0.25, "spread": 0.0625, "same_sign": 0.99, "count": 9}}, "negative": {}},
        "steadiness": {"words": 12, "same_sign": 0.9375, "relative_spread": None},
        "atlas": {
            "texts": 40, "sampled": 20, "always_on": 3, "always_off": 4, "switching": [{}] * 5, "regions": 8,
            "groups": [group], "coverage": 0.95, "agreement": 0.985,
        },
    }  # fmt: skip


def page(name="good", text="a good film", span=(2, 6)):
    firing = {"text": text, "row": 0, "activation": 2.5, "span": span, "trigger": "good", "predicted": "positive"}
    firing |= {"contributions": {"positive": 1.0}, "is_written": True}
    return {
        "name": name, "kind": "word", "texts": 40, "active_in": 12, "activation": 1.5, "written_in": 9,
        "active_where_written": 8, "pushes": {"positive": {"mean": 0.75, "low": None, "high": None}},
        "triggers": [{"token": name, "count": 6, "share": 0.5}], "top_texts": [firing],
    }  # fmt: skip


def diff(name="good", label="positive", text="a text"):
    change = {"name": name, "before": 0.125, "after": 0.5, "difference": 0.375, "low": 0.25, "high": 0.5, "count": 17}
    flip_words = [{"name": name, "before": -1.0, "after": 2.0, "difference": 3.0}] * 7
    flip = {"text": text, "row": 0, "before": "negative", "after": label, "margin_before": -1.0, "margin_after": 1.5}
    flip |= {"words": flip_words, "other_words": -21.0, "pieces": {"count": 2, "contribution": 1.0}, "bias": 1.5}
    own = {"label": label, "texts": 20, "gained": [{**change, "is_clear": True}], "lost": [], "pieces": None}
    return {
        "texts": 40, "only_before": 0, "only_after": 3, "classes": [own], "flipped": 1,
        "flips_between": {"negative": {label: 1}}, "flips": [flip],
        "accuracy": {"before": 0.5, "after": 0.75, "fixed": 11, "broken": 1},
    }  # fmt: skip


def test_a_survey_shows_lexicon_weights_steadiness_and_regions():
    output = rendered(survey_view(survey()))
    for expected in (
        "positive: 20 texts", "good", "+0.500", "0.125", "25%", "1.50", "+0.250", "0.062", "99%", "bad", "-0.750",
        "no word contributes to it or against it", "12 words", "93.8%", "–",
        "3 always on, 4 always off", "sample of 20 of 40 texts", "cover 95%", "98.5%", "87.5%", "0.50", "good +0.25",
        "3 pieces and symbols", "+0.188",
    ):  # fmt: skip
        assert expected in output
    assert styled(32, "+0.500", output)
    assert styled(31, "-0.750", output)


def test_one_class_alone_can_be_shown():
    assert "negative: 0 texts" not in rendered(survey_view(survey(), ["positive"]))
    assert "positive: 20 texts" not in rendered(survey_view(survey(), ["negative"]))


@pytest.mark.parametrize("width", [40, 50, 60, 80])
def test_nothing_is_cut_in_a_narrow_terminal(width):
    long = "extraordinarily"
    data = survey(long)
    data["lexicon"]["classes"][0]["contributes_to"][0]["is_rare"] = True
    for view, figures in ((survey_view(data), "+0.500"), (diff_view(diff(long)), "+0.375")):
        output = re.sub("\x1b\\[[0-9;]*m", "", rendered(view, width))
        assert "…" not in output
        assert all(len(line) <= width for line in output.splitlines())
        assert any(long in line and figures in line for line in output.splitlines())
    has_weights = bool(re.search("weight +spread", re.sub("\x1b\\[[0-9;]*m", "", rendered(survey_view(data), width))))
    assert has_weights == (width >= 74)


def test_rare_words_are_grey():
    data = survey()
    data["lexicon"]["classes"][0]["contributes_to"] = [word("good", 0.5, is_rare=True, low=None, high=None)]
    output = rendered(survey_view(data))
    assert styled(2, "+0.500", output)
    assert "good (rare)" in output
    assert not styled(32, "+0.500", output)


def test_steadiness_of_no_words_is_not_shown():
    data = {**survey(), "steadiness": {"words": 0, "same_sign": None, "relative_spread": None}}
    assert "How steady" not in rendered(survey_view(data))


def test_a_model_without_regions_shows_none():
    assert "Regions" not in rendered(survey_view({**survey(), "atlas": None}))


def test_a_page_shows_counts_pushes_triggers_and_texts_with_the_trigger_marked():
    output = rendered(feature_panel(page()))
    for expected in ("12", "of 40 texts", "active in 8", "+0.750", "good 50%", "2.50", "| good → positive"):
        assert expected in output
    assert "\x1b[1;7mgood" in output
    data = page(span=None)
    data["top_texts"][0]["trigger"] = "(whole text)"
    assert "| (whole text) → positive" in rendered(feature_panel(data))


def test_a_word_that_never_fires_has_a_page():
    data = {**page(), "active_in": 0, "activation": None, "pushes": {}, "triggers": [], "top_texts": []}
    output = rendered(feature_panel(data))
    assert "of 40 texts" in output
    assert "activated by" not in output


def test_a_diff_shows_changes_and_flips_that_add_up():
    output = rendered(diff_view(diff()))
    for expected in (
        "of 40 texts", "only the second 3", "75.0%", "before 50.0%; 11 fixed, 1 broken", "from negative to positive",
        "+0.125", "+0.500", "+0.375", "17", "negative → positive", "-1.00 → +2.00", "-15.00", "+1.50",
        "2 pieces and symbols", "+1.00", "-1.00 → +1.50",
    ):  # fmt: skip
        assert expected in output
    assert output.count("-1.00 → +2.00") == 5
    assert styled(32, "+0.375", output)


def test_a_change_that_is_not_clear_is_grey():
    data = diff()
    data["classes"][0]["gained"][0]["is_clear"] = False
    assert styled(2, "+0.375", rendered(diff_view(data)))
    data["classes"][0]["gained"] = []
    assert "no word changed" in rendered(diff_view(data))


def test_models_of_one_vocabulary_and_without_labels_show_less():
    output = rendered(diff_view({**diff(), "only_after": 0, "accuracy": None}))
    assert "vocabulary" not in output
    assert "accuracy" not in output


@pytest.mark.parametrize("nasty", ["[red]x[/red]", "\x1b[35mescape", "bell\x07", "[/]"], ids=repr)
def test_text_from_outside_is_shown_and_never_obeyed(nasty):
    views = [
        survey_view(survey(nasty, nasty)),
        feature_panel(page(nasty, nasty, (0, 2))),
        diff_view(diff(nasty, nasty, nasty)),
    ]
    for view in views:
        output = rendered(view)
        assert "\x07" not in output
        assert "\x1b[35m" not in output
        if nasty == "[/]":
            assert "[/]" in output.replace("\x1b[0m", "").replace("\x1b[1;7m", "").replace("\x1b[1m", "")
