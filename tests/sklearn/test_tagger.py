import pickle

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from lexical_sae.config.load import build_config
from lexical_sae.runs.tagging.experiment import setup_and_train_tagger
from lexical_sae.sklearn import LexicalTagger

PLACES = ("bank", "river", "city", "church")
SENTENCES = [["the", one, word, place] for one in ("good", "bad") for word in ("money", "plot") for place in PLACES] * 6
TAGS = [["O", "O", "B-THING", "B-PLACE"]] * len(SENTENCES)


@pytest.fixture(scope="module")
def tagger(encoder):
    return LexicalTagger(encoder=encoder, max_epochs=10, random_state=1, device="cpu").fit(SENTENCES, TAGS)


def test_weights_are_bitwise_those_of_the_command_line(encoder, tagger, tmp_path):
    for name, rows in (("train", range(len(SENTENCES))), ("test", range(2))):
        lines = ["\n".join(f"{w} {t}" for w, t in zip(SENTENCES[r], TAGS[r], strict=True)) + "\n" for r in rows]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    raw = {"recipe": "neighbours", "data": {"dataset_name": str(tmp_path)}, "model": {"name": encoder}, "seed": 1}
    expected = setup_and_train_tagger(build_config({**raw, "training": {"max_epochs": 10}}), "cpu").model.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in tagger.model_.state_dict().items())


def test_words_get_tags(tagger):
    assert tagger.predict([["the", "good", "money", "church"], []]) == [["O", "O", "B-THING", "B-PLACE"], []]
    assert tagger.score(SENTENCES[:8], TAGS[:8]) == 1.0
    assert list(tagger.classes_) == ["O", "B-PLACE", "I-PLACE", "B-THING", "I-THING"]
    (found,) = tagger.tag(["the bad money river"])
    assert [found.written(entity) for entity in found.entities] == ["money", "river"]
    (whys,) = tagger.explain([["the", "good", "money", "church"]], contrast="O")
    assert [why.target for why in whys] == ["B-THING", "B-PLACE"]
    assert whys.to_frame()["contribution"].notna().all()


def test_a_tagger_is_kept_and_edited(tagger, tmp_path):
    for back in (pickle.loads(pickle.dumps(tagger)), LexicalTagger.load(tagger.save(tmp_path / "saved"))):
        assert back.predict(SENTENCES[:3]) == tagger.predict(SENTENCES[:3])
        assert back.get_params() == tagger.get_params()
        np.testing.assert_array_equal(back.classes_, tagger.classes_)
    assert tagger.suppress("money").get_params() == tagger.get_params()


def test_scikit_learn_splits_sentences(encoder):
    made = LexicalTagger(encoder=encoder, max_epochs=3, random_state=0)
    assert cross_val_score(made, SENTENCES[:32], TAGS[:32], cv=2).shape == (2,)


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ("a b", [["O"]], "X is str"),
        (["a b"], [["O"]], r"X\[0\] is str; give one list"),
        ([["a", 1]], [["O", "O"]], r"X\[0\] holds 1"),
        ([["a", "b"]], [["O"]], "2 words and 1 tags"),
        ([["a"]], [["O"], ["O"]], "inconsistent numbers"),
        ([["a"]], [["O"]], "no entity"),
        ([["a"]], None, "y is NoneType"),
    ],
)
def test_what_is_no_sentence_is_refused(encoder, X, y, said):
    with pytest.raises(ValueError, match=said):
        LexicalTagger(encoder=encoder).fit(X, y)


def test_before_fit_nothing_is_tagged():
    with pytest.raises(NotFittedError):
        LexicalTagger().predict([["a"]])
