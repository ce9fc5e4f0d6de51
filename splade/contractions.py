"""English negations with an apostrophe: "isn't" is one word to a reader, whatever a tokenizer makes of it.

BERT's tokenizer cuts it into `isn ' t`. Taken apart, "won't" speaks of winning and "can't" says what "can" does.
"""

NEGATED = frozenset(
    """
    ain isn aren wasn weren don doesn didn haven hasn hadn won wouldn can couldn shouldn mustn mightn needn shan oughtn
    daren mayn n
    """.split()  # noqa: SIM905 - a list of strings would be a page long
)
"""What stands before the apostrophe; "n" alone where a corpus writes "is n't"."""
APOSTROPHES = ("'", "’")
CONTRACTIONS = frozenset(f"{stem}'t" for stem in NEGATED)
SHORT_NOT = "n't"
"""The name that all of them share: what they say is "not", and one of them is often too rare to learn from."""


def word_form(written: str) -> str:
    """What a word counts as where words are compared: small letters, and "n't" for all that end in it.

    Example: `Film -> film`, `Isn’t -> n't`
    """
    form = written.casefold()
    plain = form.replace(APOSTROPHES[1], APOSTROPHES[0])
    return SHORT_NOT if plain in CONTRACTIONS else form


def ways_to_write(word: str) -> list[str]:
    """A word as texts may have it: itself, and for the short "not" all the words that end in it."""
    if word != SHORT_NOT:
        return [word]
    ways = (SHORT_NOT, *sorted(CONTRACTIONS - {SHORT_NOT}))
    cases = [case(way) for way in ways for case in (str, str.capitalize, str.upper)]
    return list(dict.fromkeys(way.replace("'", sign) for way in cases for sign in APOSTROPHES))
