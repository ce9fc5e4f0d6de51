import numpy as np
import pytest
from scipy.sparse import csr_array

from lexical_sae.data.sources.planted import planted_leak
from lexical_sae.intervene.concepts.concept_labels import concept_of, concept_values, mentions, with_word_groups
from lexical_sae.intervene.concepts.leace import fit_leace
from lexical_sae.intervene.concepts.leakage import BEFORE, CONTROL, TEXT, ConceptTexts, balanced_rows, measure_leakage
from lexical_sae.intervene.concepts.probes import PROBES, ProbeScore, run_probe
from lexical_sae.intervene.concepts.removals import ZeroWords
from tests.intervene.concepts.bags import Bag


def measured(leak: bool):
    corpus = planted_leak(400, leak=leak)
    bag = Bag(corpus.dataset.train, corpus.dataset.validation, corpus.dataset.test)
    train, test = (bag.concept_texts(split, "coast") for split in (corpus.dataset.train, corpus.dataset.test))
    words, proxies = bag.ids(corpus.concept_words), bag.ids(corpus.proxy_words)
    edits = {
        "zeroing": ZeroWords.of(words),
        "with proxies": ZeroWords.of([*words, *proxies]),
        "LEACE": fit_leace(train.codes, train.concept.astype(float)),
    }
    return measure_leakage(train, test, edits)


@pytest.fixture(scope="module")
def leaky():
    return measured(leak=True)


@pytest.fixture(scope="module")
def tight():
    return measured(leak=False)


def test_a_planted_leak_is_detected(leaky):
    assert leaky.leaks("zeroing")
    assert leaky.best("zeroing").accuracy > 0.95


def test_without_a_leak_none_is_detected(tight, leaky):
    assert not tight.leaks("zeroing")
    assert not leaky.leaks("with proxies")


@pytest.mark.parametrize("probe", PROBES)
def test_every_probe_sees_the_planted_leak_and_not_more(leaky, tight, probe):
    found = {
        name: {score.probe: score for score in scores}[probe] for name, scores in leaky.scores.items() if name != TEXT
    }
    assert found["zeroing"].low > 0.7
    assert found[BEFORE].low > 0.7
    (clean,) = (score for score in tight.scores["zeroing"] if score.probe == probe)
    assert clean.low <= tight.majority


def test_ceilings_are_high_and_controls_are_at_the_floor(leaky, tight):
    for table in (leaky, tight):
        assert table.majority == 0.5
        assert table.leaks(BEFORE)
        assert table.leaks(TEXT)
        assert not table.leaks(CONTROL)


def test_a_linear_probe_reads_nothing_after_leace_where_it_read_all(leaky):
    linear = leaky.scores["LEACE"][0]
    assert linear.probe == "logistic regression"
    assert linear.low < 0.6
    assert leaky.scores[BEFORE][0].accuracy > 0.95


def test_the_certificate_holds_every_score_and_the_rows_that_were_asked(leaky):
    level = leaky.as_certificate("coast", "planted")
    assert level.majority == 0.5
    assert {score.representation for score in level.scores} == {
        TEXT,
        BEFORE,
        CONTROL,
        "zeroing",
        "with proxies",
        "LEACE",
    }
    assert len(level.scores) == 1 + 5 * len(PROBES)
    assert level.data.texts == len(leaky.held_out.texts)
    assert all(score.low <= score.accuracy <= score.high for score in level.scores)


def test_rows_are_balanced_and_too_few_are_refused():
    rng = np.random.default_rng(0)
    concept = np.arange(100) < 30
    rows = balanced_rows(concept, 1000, rng)
    assert (len(rows), concept[rows].sum()) == (60, 30)
    assert len(balanced_rows(concept, 40, rng)) == 40
    with pytest.raises(ValueError, match="one has 5 with and 95 without"):
        balanced_rows(np.arange(100) < 5, 1000, rng)


def test_a_removal_of_every_word_leaves_nothing_to_probe():
    texts = ConceptTexts(["a"] * 80, csr_array(np.ones((80, 2))), np.arange(80) % 2 == 0)
    with pytest.raises(ValueError, match="no word is left"):
        measure_leakage(texts, texts, {"all": ZeroWords.of([0, 1])})


def test_a_probe_beats_guessing_only_by_more_than_chance():
    def score(right: int) -> ProbeScore:
        return ProbeScore("any", right / 100, 0, 1, tuple(i < right for i in range(100)))

    assert score(65).beats(0.5, 3)
    assert not score(55).beats(0.5, 3)
    assert score(60).beats(0.5, 1)
    assert not score(60).beats(0.5, 10)


def test_a_probe_is_asked_about_texts_it_was_not_fitted_on():
    class Echo:
        def fit(self, features, _):
            self.seen = features

        def predict(self, features):
            assert features is not self.seen
            return np.array([True, False])

    found = run_probe("echo", Echo(), ("fit", np.array([True])), ("held out", np.array([True, True])))
    assert (found.accuracy, found.is_correct) == (0.5, (True, False))
    assert found.low < 0.5 < found.high


def test_concepts_come_from_columns_or_from_words():
    split = with_word_groups(planted_leak(20).dataset.train, {"sea": ["Beach", "harbor"]})
    assert split.identities is not None
    assert set(split.identities) == {"coast", "sea"}
    assert concept_of(split, "sea").tolist() == [float("beach" in t or "harbor" in t) for t in split.texts]
    assert np.nan_to_num(concept_values([0.5, 0.49, float("nan")]), nan=-1).tolist() == [1, 0, -1]
    with pytest.raises(ValueError, match=r"no concept 'coats'.*coast"):
        concept_of(split, "coats")
    assert mentions("The BEACH!", ["beach"])
    assert not mentions("beachwear", ["beach"])
