"""A literal word's name beside how its text writes it, for every view."""

from lexical_sae.explanation import WordContribution


def as_written(word: WordContribution, text: str) -> str:
    """The word's name; behind it what stands in the text, where that does not begin with the name in any case.

    An encoder without accents reads "refusé" as "refuse", all that end in "n't" are one word, and "it's" is two.

    Example: `film -> film`, `refuse -> refuse (refusé)`, `n't -> n't (isn't)`, `it -> it`, `s -> s (it's)`
    """
    if word.default is None or word.start is None:
        return word.word
    written = text[word.start : word.end]
    # The forms of a word that are shown as one have names like film/films.
    names = tuple(word.word.casefold().split("/"))
    return word.word if written.casefold().startswith(names) else f"{word.word} ({written})"
