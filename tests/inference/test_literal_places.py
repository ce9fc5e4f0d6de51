"""Where literal words stand: the quick way, against the one that shares decisions out among places."""

import pytest

from lexical_sae.inference.explaining import explain_batch
from lexical_sae.inference.methods import METHODS
from lexical_sae.inference.places import find_literal_words, find_places
from lexical_sae.inference.question import Question
from lexical_sae.inference.reading import answers
from tests.literal import TEXTS, UNSEEN, literal_model

ODD = [
    "",
    "👍 good",
    "film film film good film",
    "Good good GOOD",
    "naïve café",
    "x" * 40,
    "good\ud83d",
    "isn't it? isn't",
]


@pytest.fixture(
    scope="module", params=[{}, {"shifting": False}, {"max_length": 10}], ids=["shifts", "still", "windows"]
)
def model(request):
    return literal_model(**request.param)


def asked(model, **settings):
    return Question.of(model, None, None, "dla", effects=True, places=True, **settings)


def test_words_stand_where_the_decision_shared_out_puts_them(model):
    """With batches of two, so that texts have padding."""
    question, repeated = asked(model), 0

    def compare(read):
        nonlocal repeated
        direction = question.direction(read.state.logits, question.targets(read.state.logits))
        shares = METHODS[question.method](read.model.head(), read.state, direction, None)
        for quick, whole in zip(
            find_literal_words(read.model, read), find_places(read.model, read, shares), strict=True
        ):
            spans = {word: (place.start, place.end) for word, place in whole.of_word.items()}
            assert {word: (place.start, place.end) for word, place in quick.items()} == spans
            repeated += sum(start is None for start, _ in spans.values())
        return [None] * len(read.texts)

    list(answers(model, [*TEXTS, *UNSEEN, *ODD], 2, compare))
    assert repeated


def test_explanations_of_words_alone_have_the_same_words_and_numbers(model):
    texts = [*TEXTS, *UNSEEN, *ODD]
    few, whole = (
        list(answers(model, texts, 3, lambda read, question=question: explain_batch(question, read)))
        for question in (asked(model, words_only=True), asked(model))
    )
    for quick, full in zip(few, whole, strict=True):
        assert quick.spans is None
        assert quick.not_explained == ()
        assert (quick.label, quick.explained, quick.bias, quick.warnings) == (
            full.label,
            full.explained,
            full.bias,
            full.warnings,
        )
        for word, own in zip(quick.words, full.words, strict=True):
            same = ("word", "kind", "contribution", "start", "end", "if_removed", "default", "label_if_removed")
            assert [getattr(word, name) for name in same] == [getattr(own, name) for name in same]
