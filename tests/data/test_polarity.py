import pytest

from lexical_sae.data.polarity import FAVOURABLE, PLAIN, REVERSING, UNFAVOURABLE, negation_examples, positive_class
from lexical_sae.evaluation.context.templates import shared_material


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("negative", "positive"), 1),
        (("Pos", " neg "), 0),
        (("0", "1"), None),
        (("negative", "neutral", "positive"), None),
    ],
)
def test_the_positive_class_goes_by_its_name(names, expected):
    assert positive_class(names) == expected


def test_what_teaches_negation_is_not_what_tests_it():
    assert not shared_material((*REVERSING, *PLAIN), (*FAVOURABLE, *UNFAVOURABLE))


def test_a_negated_word_has_the_other_label_and_a_plain_one_its_own():
    made = negation_examples(10_000, positive=1, seed=0)
    labels = dict(zip(made.texts, made.labels, strict=True))
    assert labels["it isn't gripping ."] == 0
    assert labels["it isn't bland ."] == 1
    assert labels["it is very gripping ."] == 1
    assert labels["it is very bland ."] == 0


def test_both_labels_are_about_as_frequent_and_half_of_the_sentences_reverse_a_word():
    made = negation_examples(900, positive=1, seed=0)
    assert len(made) == len(set(made.texts)) == 900
    assert 0.4 < sum(made.labels) / 900 < 0.6
    reversing = {frame.format(word) for frame in REVERSING for word in (*FAVOURABLE, *UNFAVOURABLE)}
    assert 0.4 < sum(text in reversing for text in made.texts) / 900 < 0.6


def test_the_same_seed_makes_the_same_sentences():
    assert negation_examples(50, 1, seed=3) == negation_examples(50, 1, seed=3) != negation_examples(50, 1, seed=4)
