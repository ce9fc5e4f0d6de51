"""A literal word's name beside how its text writes it, for every view."""

from lexical_sae.explanation import WordContribution


def as_written(word: WordContribution, text: str) -> str:
    """The word's name; behind it what stands in the text, where a literal word differs by more than its case.

    An encoder without accents reads "refusé" as "refuse", and all that end in "n't" are one word.

    Example: `film -> film`, `refuse -> refuse (refusé)`, `n't -> n't (isn't)`
    """
    if word.default is None or word.start is None:
        return word.word
    written = text[word.start : word.end]
    # The forms of a word that are shown as one have names like film/films.
    names = word.word.casefold().split("/")
    return word.word if written.casefold() in (word.word.casefold(), *names) else f"{word.word} ({written})"
