"""English function words: the words that hold a sentence together and name nothing by themselves.

A model can write its decision into the strength of "of" or "and"; such an explanation says nothing. The lists serve to
close these words, to count how much of a decision rests on them, and to leave them out where content words are wanted.
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from splade.contractions import CONTRACTIONS, NEGATED
from splade.vocab import Vocabulary

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
"""Words that turn a sentence round, with what tokenizers leave of "isn't"; they say something, so they stand apart."""


def is_function_word(name: str) -> bool:
    """Whether a word is a function word, in any case. Example: `The -> True`, `not -> False`, `film -> False`."""
    return name.casefold() in FUNCTION_WORDS


def function_word_mask(vocabulary: Vocabulary, *, negations: bool = False) -> Bool[Tensor, " V"]:
    """Dimensions that are function words, as whole words and in any case; on request negations too."""
    words = FUNCTION_WORDS | NEGATIONS if negations else FUNCTION_WORDS
    found = torch.tensor([name.casefold() in words for name in vocabulary.names], dtype=torch.bool, device="cpu")
    return found & vocabulary.feature_mask
