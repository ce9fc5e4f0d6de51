"""What is particular to English: forms of a word, contractions, function words. By lists, and by rules of thumb.

1. Forms: which words are inflections of one word.
2. Contractions: "isn't" is one word to a reader, whatever a tokenizer makes of it. BERT's tokenizer cuts it into
   `isn ' t`. Taken apart, "won't" would stand for winning, and "can't" would mean what "can" does.
3. Function words: words that hold a sentence together and name nothing by themselves. A model can write its decision
   into the activation of "of" or "and"; such an explanation is empty. The lists serve to close these words, to count
   how much of a decision rests on them, and to leave them out where content words are wanted.
"""

from collections.abc import Iterable, Sequence

_ENDINGS = ("ingly", "edly", "ness", "ings", "ing", "ers", "est", "ed", "er", "ly", "es", "s")


def stem(word: str) -> str:
    """What regular inflections of a word share. Example: `running, runs, run -> run`; `cities, city -> citi`."""
    word = word.casefold()
    while shorter := _without_ending(word):
        word = shorter
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    word = word.removesuffix("e") if len(word) > 3 else word
    return word[:-1] + "i" if word.endswith("y") else word


def _without_ending(word: str) -> str:
    if word.endswith(("ies", "ied")) and len(word) > 4:
        return word[:-3] + "y"
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= 3), "")
    # "class" is not several of "clas".
    return "" if not ending or (ending == "s" and word.endswith("ss")) else word.removesuffix(ending)


def grouped_forms(words: Sequence[str | None]) -> list[list[int]]:
    """Places of words that are forms of one another, in the order of the first of each; None is a form of nothing.

    Example: `film, plot, films -> [[0, 2], [1]]`
    """
    groups: dict[str | int, list[int]] = {}
    for place, word in enumerate(words):
        groups.setdefault(place if word is None else stem(word), []).append(place)
    return list(groups.values())


def joined_forms(words: Iterable[str]) -> str:
    """The name of several forms together. Example: `film, films -> film/films`"""
    return "/".join(words)


def inflected(word: str) -> set[str]:
    """The word in the cases people write it, each with its regular plural or singular."""
    forms = {word}
    if len(word) > 2:
        stems = {word[:-1], word[:-2], word[:-3] + "y"}
        forms |= {plural(word)} | {stem for stem in stems if len(stem) > 2 and plural(stem) == word}
    return {case(form) for form in forms for case in (str, str.lower, str.upper, str.capitalize)}


def plural(noun: str) -> str:
    """Regular English plural. Example: `church -> churches`, `city -> cities`, `dog -> dogs`."""
    lower = noun.lower()
    if lower.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    if lower.endswith("y") and lower[-2:-1] not in ("", *"aeiou"):
        return noun[:-1] + "ies"
    return noun + "s"


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
"""The name that all of them share: they all mean "not", and one of them is often too rare to learn from."""


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


NO_PART, STEM, APOSTROPHE, TEE, APOSTROPHE_TEE = range(5)
"""Parts of "isn't"; some tokenizers have one token for all that follows the stem."""


def part_of_contraction(surface: str) -> int:
    """Example: `isn -> STEM`, `' -> APOSTROPHE`, `t -> TEE`, `'t -> APOSTROPHE_TEE`, `film -> NO_PART`"""
    letters = surface.casefold()
    if letters in APOSTROPHES:
        return APOSTROPHE
    if letters[:1] in APOSTROPHES and letters[1:] == "t":
        return APOSTROPHE_TEE
    return STEM if letters in NEGATED else TEE if letters == "t" else NO_PART


_DETERMINERS = """
a an the this that these those each every either some any all both half such what which whose another other others
much many more most few fewer less least several enough own same certain
"""
_PREPOSITIONS = """
about above across after against along alongside amid among amongst around as at before behind below beneath beside
besides between beyond by despite down during except for from in inside into like near of off on onto opposite out
outside over past per regarding since than through throughout till to toward towards under underneath unlike until up
upon versus via with within
"""
_PRONOUNS = """
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself we us our
ours ourselves they them their theirs themselves one ones oneself who whom whoever whatever whichever someone somebody
something anyone anybody anything everyone everybody everything there
"""
_CONJUNCTIONS = """
and or but so yet because although though while whereas whether if unless once when whenever where wherever lest
provided how why that
"""
_AUXILIARIES = """
am is are was were be been being do does did doing done have has had having can could may might must shall should will
would ought dare need
"""
_PARTICLES = """
also too very just only even still already again ever quite rather almost perhaps maybe here then thus hence therefore
however otherwise instead moreover meanwhile indeed else away back now
"""
# What is left of "it's", "they're", "we've", "I'd", "she'll" and "I'm" when a tokenizer cuts at the apostrophe.
_CLITICS = "s re ve d ll m"

FUNCTION_WORDS = frozenset(
    " ".join((_DETERMINERS, _PREPOSITIONS, _PRONOUNS, _CONJUNCTIONS, _AUXILIARIES, _PARTICLES, _CLITICS)).split()
)
"""Determiners, prepositions, pronouns, conjunctions, auxiliaries and particles, in lower case; no negations."""

NEGATIONS = (
    frozenset(
        ["no", "not", "nor", "neither", "never", "none", "nobody", "nothing", "nowhere", "without", "cannot", "t"]
    )
    | CONTRACTIONS
    | (NEGATED - {"can", "n"})
)
"""Words that negate, with what tokenizers leave of "isn't"; they carry meaning, so they are listed apart."""


def is_function_word(name: str) -> bool:
    """Whether a word is a function word, in any case. Example: `The -> True`, `not -> False`, `film -> False`."""
    return name.casefold() in FUNCTION_WORDS
