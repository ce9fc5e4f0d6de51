import pytest

from lexical_sae.data.sources.planted import planted_bias, planted_leak, planted_sentiment


def words(text):
    return set(text.split())


def all_texts(corpus):
    return [t for s in (corpus.dataset.train, corpus.dataset.validation, corpus.dataset.test) for t in s.texts]


@pytest.mark.parametrize("make", [planted_sentiment, planted_bias, planted_leak])
def test_corpora_are_seeded_and_no_text_occurs_twice(make):
    corpus = make(n=200, seed=3)
    assert corpus == make(n=200, seed=3)
    assert corpus.dataset.train != make(n=200, seed=4).dataset.train
    assert len(set(all_texts(corpus))) == len(all_texts(corpus)) == 300


@pytest.mark.parametrize("make", [planted_sentiment, planted_leak])
def test_the_planted_words_decide_the_label_and_nothing_else_does(make):
    corpus = make(n=1200, seed=0)
    train = corpus.dataset.train
    planted = corpus.circuit_words
    for text, label in zip(train.texts, train.labels, strict=True):
        name = corpus.dataset.label_names[label]
        assert words(text) & set(planted[name])
        assert not words(text) & set().union(*(set(w) for other, w in planted.items() if other != name))
    others = {w for t in train.texts for w in words(t)} - set().union(*map(set, planted.values()))
    for word in others:
        labels = [label for text, label in zip(train.texts, train.labels, strict=True) if word in words(text)]
        assert abs(sum(labels) / len(labels) - 0.5) < 0.2, word


def test_bias_is_in_train_and_not_in_test():
    dataset = planted_bias(n=2000, seed=0, rate=0.9).dataset

    def positive_rate(split):
        assert split.identities is not None
        labels = [lab for lab, group in zip(split.labels, split.identities["sailor"], strict=True) if group == 1.0]
        return sum(labels) / len(labels)

    assert positive_rate(dataset.train) == pytest.approx(0.1, abs=0.03)
    assert positive_rate(dataset.test) == pytest.approx(0.5, abs=0.08)


def test_identities_are_what_the_texts_mention():
    corpus = planted_bias(n=100)
    test = corpus.dataset.test
    assert test.identities is not None
    for name in corpus.concept_words:
        assert test.identities[name] == tuple(float(name in words(text)) for text in test.texts)


@pytest.mark.parametrize(("leak", "expected"), [(True, 1.0), (False, 0.5)])
def test_proxies_give_the_concept_away_only_if_it_leaks(leak, expected):
    corpus = planted_leak(n=2000, seed=0, leak=leak)
    train = corpus.dataset.train
    assert train.identities is not None
    concept = train.identities["coast"]
    for word in corpus.proxy_words:
        rows = [c for text, c in zip(train.texts, concept, strict=True) if word in words(text)]
        assert max(sum(rows), len(rows) - sum(rows)) / len(rows) == pytest.approx(expected, abs=0.1)
    assert all(words(text) & set(corpus.concept_words) for text in train.texts)


@pytest.mark.parametrize("n", [0, 7, 20_001])
def test_absurd_sizes_are_refused(n):
    with pytest.raises(ValueError, match=f"n is {n}; planted corpora have"):
        planted_sentiment(n)


def test_rates_are_shares():
    with pytest.raises(ValueError, match="both are shares"):
        planted_bias(rate=1.5)
