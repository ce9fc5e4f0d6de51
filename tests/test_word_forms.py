from splade.word_forms import grouped_forms, joined_forms


def test_forms_of_one_word_are_together_and_nothing_else_is():
    words = ["film", "plot", "films", None, "plots", None, "filmed"]
    assert grouped_forms(words) == [[0, 2, 6], [1, 4], [3], [5]]
    assert sorted(place for group in grouped_forms(words) for place in group) == list(range(len(words)))


def test_forms_have_a_name_together():
    assert joined_forms(["film", "films"]) == "film/films"
