"""Explanations in the forms of other libraries: frames, sentences, figures, SHAP."""

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lexical_sae.inference import explain
from lexical_sae.report.charts.waterfall import waterfall
from lexical_sae.report.explanation.shown import ShownExplanations
from lexical_sae.report.explanation.tidy import COLUMNS, sentence, shap_fields
from tests.literal import TEXTS, literal_model


@pytest.fixture(scope="module")
def whys():
    return ShownExplanations(explain(literal_model(), TEXTS))


def test_a_frame_has_a_row_for_each_active_word(whys):
    frame = whys.to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame) == sum(len(why.words) for why in whys)
    for number, why in enumerate(whys):
        rows = frame[frame["text"] == number]
        assert rows["contribution"].sum() + frame.attrs["bias"][number] == pytest.approx(why.explained, abs=1e-5)
        for row in rows.itertuples():
            # Words that the tokenizer splits have a place too; what no word of the text gave has none.
            assert pd.isna(row.start) or why.text[row.start : row.end].lower() == row.word
        np.testing.assert_allclose(rows["if_removed"], -rows["contribution"], atol=1e-4)
    assert ShownExplanations().to_frame().empty
    pd.testing.assert_frame_equal(whys[1].to_frame(), whys[1:2].to_frame())
    assert isinstance(whys[:2], ShownExplanations)
    assert len(whys[:2].plot()) == 2


def test_a_sentence_names_the_decision_the_top_words_and_the_rest(whys):
    for why in whys:
        said = sentence(why)
        assert said.startswith(f"Decided: {why.label} ({why.probability:.0%}): ")
        assert said.endswith(f"for a total of {why.explained:+.2f} in logits.")
        assert said.count(".\n") == 0
        for word in sorted(why.words, key=lambda word: -abs(word.contribution))[:3]:
            assert f"“{word.word}” ({word.contribution:+.2f})" in said
        assert why.sentence() == said
    counts = [len(why.words) for why in whys]
    assert f"{max(counts) - 3} other words and the bias contributed" in sentence(whys[counts.index(max(counts))])


def test_a_sentence_about_another_question_says_so():
    why = explain(literal_model(), TEXTS[0], target="neutral", contrast="positive")
    assert "neutral" in why.sentence()
    assert "positive" in why.sentence()


def test_a_sentence_about_nothing_is_a_sentence():
    empty = explain(literal_model(), "")
    assert "no word contributed to it; the bias contributed" in empty.sentence()


def test_shap_fields_are_exact_and_their_tokens_are_the_text(whys):
    fields = shap_fields(whys)
    for why, values, base, data in zip(whys, fields.values, fields.base_values, fields.data, strict=True):
        assert "".join(data) == why.text
        assert len(values) == len(data)
        assert values.sum() + base == pytest.approx(why.explained, abs=1e-5)
    with pytest.raises(ValueError, match="places=True"):
        shap_fields(explain(literal_model(), TEXTS[:1], places=False))


def test_shap_gets_these_fields(whys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", SimpleNamespace(Explanation=lambda **fields: SimpleNamespace(**fields)))
    made = whys.to_shap()
    assert len(made.values) == len(made.data) == len(made.base_values) == len(whys)
    np.testing.assert_array_equal(whys[1].to_shap().values[0], made.values[1])
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"lexical-sae\[shap\]"):
        whys.to_shap()


def test_shap_itself_takes_them(whys):
    shap = pytest.importorskip("shap")
    assert "film" in shap.plots.text(whys.to_shap(), display=False)


def test_a_record_for_captum_has_the_words_in_order_and_their_values(whys):
    for why, record in zip(whys, whys.to_captum(["true"] * len(whys)), strict=True):
        assert "".join(record.raw_input_ids).replace(" ", "") == why.text.replace(" ", "")
        assert len(record.word_attributions) == len(record.raw_input_ids)
        largest = max(abs(span.score) for span in why.spans) if why.spans else 0.0
        np.testing.assert_allclose(record.word_attributions * largest, [s.score for s in why.spans] or [0.0], atol=1e-6)
        assert record.attr_score + shap_fields([why]).base_values[0] == pytest.approx(why.explained)
        assert (record.pred_class, record.true_class, record.attr_class) == (why.label, "true", why.target)
    assert whys[0].to_captum().true_class == ""


def test_captum_itself_shows_them(whys):
    captum = pytest.importorskip("captum.attr")
    assert captum.visualization.VisualizationDataRecord(*whys[0].to_captum()).raw_input_ids
    pytest.importorskip("IPython")
    assert "film" in captum.visualization.visualize_text(whys.to_captum()).data


def test_a_plot_is_a_figure_where_matplotlib_is_installed_and_else_svg(whys, monkeypatch):
    if importlib.util.find_spec("matplotlib"):
        axes = whys[0].plot().axes[0]
        assert [label.get_text() for label in axes.get_yticklabels()][-1] == "decision"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert whys[0].plot() == whys[0].svg() == waterfall(whys[0])


def test_words_without_a_place_have_a_gap():
    why = explain(literal_model(), "good", places=False)
    assert ShownExplanations([why]).to_frame()["start"].isna().all()
