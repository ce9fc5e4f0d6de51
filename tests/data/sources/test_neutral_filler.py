from itertools import islice

from lexical_sae.data.sources.neutral_filler import neutral_sentences


def test_sentences_follow_from_the_seed_and_vary():
    first, again, other = (list(islice(neutral_sentences(seed), 300)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert len(set(first)) > 200


def test_every_sentence_is_whole():
    for sentence in islice(neutral_sentences(3), 300):
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert "{" not in sentence
