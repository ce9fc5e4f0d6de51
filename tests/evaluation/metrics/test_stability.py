import pytest

from lexical_sae.evaluation.collect import collect, read_corpus
from lexical_sae.evaluation.metrics import stability
from lexical_sae.evaluation.metrics.stability import (
    HARMLESS_EDITS,
    curl_apostrophes,
    in_quotation_marks,
    measure_stability,
    toggle_capital,
    toggle_full_stop,
    widen_blanks,
    write_out,
)
from tests import tiny

TEXTS = ["a good film", "the acting was terrible.", "awful plot and boring acting", "happy dogs play!", ""]


@pytest.fixture(scope="module")
def model():
    return tiny.model()


@pytest.mark.parametrize(
    ("edit", "text", "edited"),
    [
        (toggle_full_stop, "Good film. ", "Good film"),
        (toggle_full_stop, "Good film", "Good film."),
        (toggle_full_stop, "Good film...", "Good film..."),
        (toggle_full_stop, "Good film!", "Good film!"),
        (toggle_full_stop, " ", " "),
        (toggle_capital, "Good", "good"),
        (toggle_capital, "", ""),
        (widen_blanks, "a b", "a  b"),
        (curl_apostrophes, "isn't", "isn’t"),
        (in_quotation_marks, "a b", '"a b"'),
        (in_quotation_marks, 'say "b"', 'say "b"'),
        (in_quotation_marks, "", ""),
        (write_out, "It's bad and doesn't work; can't", "it is bad and does not work; cannot"),
        (write_out, "he's here", "he's here"),
        (write_out, "wont", "wont"),
    ],
    ids=range(15),
)
def test_edits_are_what_they_say(edit, text, edited):
    assert edit(text) == edited
    assert edit in HARMLESS_EDITS.values()


def test_edits_that_the_tokenizer_does_not_see_do_not_count(model):
    found = measure_stability(model, TEXTS, {"blanks": widen_blanks, "capital": toggle_capital})
    assert found.edits == ()
    assert found.all_edits.top_words.count == 0
    assert found.texts == len(TEXTS)


def test_edits_that_the_tokenizer_does_not_see_are_not_read_again(model, monkeypatch):
    seen = []

    def noted(one, texts, **options):
        seen.append(list(texts))
        return read_corpus(one, texts, **options)

    monkeypatch.setattr(stability, "read_corpus", noted)
    edits = {"blanks": widen_blanks, "capital": toggle_capital, "stop": toggle_full_stop}
    found = measure_stability(model, TEXTS, edits)
    assert seen == [[*TEXTS, "a good film.", "the acting was terrible", "awful plot and boring acting."]]
    assert [(edit.edit, edit.texts) for edit in found.edits] == [("stop", 3)]


def test_an_edit_that_replaces_the_text_is_as_unlike_as_another_text(model):
    same = measure_stability(model, TEXTS, {"stop": toggle_full_stop})
    gone = measure_stability(model, TEXTS, {"gone": lambda text: "the bank near the river has money" if text else text})
    assert same.all_edits.top_words.mean > gone.all_edits.top_words.mean
    assert same.all_edits.contributions.mean > gone.all_edits.contributions.mean
    assert [(edit.edit, edit.texts) for edit in gone.edits] == [("gone", 4)]


class Keep:
    def __init__(self):
        self.contributions = {}

    def update(self, batch):
        for i, row in enumerate(batch.rows):
            here = batch.state.code.text(i)
            values = batch.contributions[here]
            said = dict(zip(batch.state.code.ids[here].tolist(), values, strict=True))
            self.contributions[row] = int(batch.predicted[i]), said


def test_likeness_is_that_of_the_contributions(model):
    keep = Keep()
    collect(model, ["a good film", "a good film."], [keep])
    (label, before), (after_label, after) = keep.contributions[0], keep.contributions[1]
    ours, theirs = ({i: float(v[label]) for i, v in said.items()} for said in (before, after))
    dot = sum(ours[i] * theirs[i] for i in ours.keys() & theirs.keys())
    lengths = [sum(v * v for v in said.values()) ** 0.5 for said in (ours, theirs)]
    tops = [set(sorted(said, key=lambda i: (-abs(said[i]), i))[:10]) for said in (ours, theirs)]
    found = measure_stability(model, ["a good film"], {"stop": toggle_full_stop}).all_edits
    assert found.contributions.mean == pytest.approx(dot / (lengths[0] * lengths[1]), abs=1e-5)
    assert found.top_words.mean == pytest.approx(len(tops[0] & tops[1]) / len(tops[0] | tops[1]))
    assert found.same_label.mean == float(label == after_label)


def test_a_text_alone_has_no_other_to_be_compared_with(model):
    found = measure_stability(model, ["a good film"])
    assert found.other_texts.top_words.count == 0
    assert measure_stability(model, ["a good film"] * 2).other_texts.top_words.mean == 1
