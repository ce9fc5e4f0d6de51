import numpy as np
import pytest
from sklearn.base import BaseEstimator

from lexical_sae.data import read_text_dataset
from lexical_sae.sklearn import LexicalClassifier, find_label_issues
from lexical_sae.sklearn.label_issues import confident_disagreement

FOR, AGAINST = ("good", "great", "wonderful", "happy"), ("bad", "awful", "terrible", "boring")
OTHERS = ("film", "movie", "plot", "acting", "city", "river", "money", "dog", "church", "bank")
PLANTED = "church"


def corpus(seed, rows=240):
    """Texts of three opinions and two things, with the label that most of the opinions have."""
    draw = np.random.default_rng(seed)
    texts, labels = [], []
    for row in range(rows):
        opinions = FOR if row % 2 else AGAINST
        words = [*draw.choice(opinions, 3), *draw.choice(OTHERS, 2, replace=False)]
        texts.append(" ".join(draw.permutation(words)))
        labels.append("good" if row % 2 else "bad")
    return texts, labels


def flipped(labels, rows):
    other = {"good": "bad", "bad": "good"}
    return [other[label] if row in rows else label for row, label in enumerate(labels)]


@pytest.fixture
def clf(encoder):
    return LexicalClassifier(encoder=encoder, context=False, random_state=0)


@pytest.mark.parametrize("seed", range(2))
def test_a_word_whose_texts_are_mislabelled_is_named_with_its_texts(clf, seed):
    texts, labels = corpus(seed)
    with_word = [row for row, text in enumerate(texts) if PLANTED in text.split()]
    planted = set(with_word[::2])
    found = find_label_issues(clf, texts, flipped(labels, planted), cv=3)
    assert [word.word for word in found.words] == [PLANTED]
    (word,) = found.words
    assert len(str(found)) < 200
    assert f"{PLANTED} ({word.disagree} of {word.texts} texts)" in str(found)
    assert word.texts == len(with_word)
    assert len(planted & set(word.rows)) >= 0.75 * len(planted)
    assert word.q_value <= 0.05 < word.expected < word.disagree
    top = {row.row for row in found.rows[: len(planted)]}
    assert len(planted & top) >= 0.8 * len(planted)
    assert all(row.suggested != row.label for row in found.doubtful)


def test_no_word_is_named_where_labels_are_right_or_wrong_at_random(clf):
    texts, labels = corpus(5)
    clean = find_label_issues(clf, texts, labels, cv=3)
    assert clean.words == ()
    assert clean.rate < 0.05
    drawn = set(np.random.default_rng(0).choice(len(texts), 24, replace=False).tolist())
    noisy = find_label_issues(clf, texts, flipped(labels, drawn), cv=3)
    assert noisy.words == ()
    found = drawn & {row.row for row in noisy.doubtful}
    assert len(found) >= 17
    assert len(found) >= 0.75 * len(noisy.doubtful)


def test_equal_texts_are_in_one_fold(clf, monkeypatch):
    texts, labels = corpus(1, rows=40)
    seen = []
    fit = LexicalClassifier.fit
    monkeypatch.setattr(LexicalClassifier, "fit", lambda self, X, y: seen.append(set(X)) or fit(self, X, y))
    found = find_label_issues(clf, texts + [text.upper() for text in texts], labels * 2, cv=2)
    assert len(found.rows) == 80
    for some in seen:
        assert {text.lower() for text in some} == {text for text in some if text.islower()}
        assert len(some) < 80


def test_a_class_that_a_fold_did_not_learn_has_no_probability_there():
    class Constant(BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique([label for label in y if label != 2] if "rare 0" in X else y)
            return self

        def predict_proba(self, X):
            return np.tile(self.classes_ / self.classes_.sum(), (len(X), 1))

    texts = [f"{word} {i}" for word in ("some", "rare") for i in range(6)]
    found = find_label_issues(Constant(), texts, [1] * 4 + [3] * 4 + [2] * 4, cv=2)
    rows = {row.row: row for row in found.rows}
    assert {round(rows[row].probability_of_label, 6) for row in range(8, 12)} == {0.0, 0.333333}
    assert {row.suggested for row in found.rows} == {3}


def test_confident_disagreement_is_that_of_its_example():
    probabilities = np.array([[0.8, 0.2], [0.2, 0.8], [0.1, 0.9], [0.4, 0.6], [1.0, 0.0], [1.0, 0.0]])
    own = np.array([0, 1, 0, 0, 0, 0])
    assert confident_disagreement(probabilities, own).tolist() == [False, False, True, False, False, False]


def test_the_csv_is_corrected_and_fed_back(clf, tmp_path):
    texts, labels = corpus(0, rows=120)
    with_word = [row for row, text in enumerate(texts) if PLANTED in text.split()]
    wrong = flipped(labels, set(with_word[::2]))
    found = find_label_issues(clf, texts, wrong, cv=2)
    path = found.write_csv(tmp_path / "rows.csv")
    lines = path.read_text().splitlines()
    assert lines[0].startswith("text,label,suggested,probability_of_label,disagrees,words,row")
    assert len(lines) == 121
    assert len(read_text_dataset(path, text_column="text", label_column="label").train.texts) > 50
    with pytest.raises(ValueError, match="may hold your corrections"):
        found.write_csv(path)
    assert list(found.to_frame()["row"]) == [row.row for row in found.rows]


def test_what_cannot_be_audited_is_refused(clf):
    texts, labels = corpus(0, rows=12)
    with pytest.raises(ValueError, match="cv is 9; it must be from 2 to 6"):
        find_label_issues(clf, texts, labels, cv=9)
    with pytest.raises(ValueError, match="level is 5"):
        find_label_issues(clf, texts, labels, level=5)


def test_the_command_names_the_word_and_writes_the_rows(run, encoder, tmp_path):
    texts, labels = corpus(0)
    with_word = [row for row, text in enumerate(texts) if PLANTED in text.split()]
    rows = zip(texts, flipped(labels, set(with_word[::2])), strict=True)
    data, out = tmp_path / "reviews.csv", tmp_path / "rows.csv"
    data.write_text("\n".join(["text,label", *(f"{text},{label}" for text, label in rows)]) + "\n")
    asked = ("audit-labels", str(data), "--encoder", encoder, "--folds", "3", "--out", str(out))
    code, output, error = run(*asked)
    assert code == 0, error
    assert "of 240 labels disagree" in output
    assert PLANTED in output
    assert "reviews.csv:" in output
    assert out.exists()
    code, _, error = run(*asked)
    assert code == 1
    assert "may hold your corrections" in error
