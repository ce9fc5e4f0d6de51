"""Tasks of sentiment: which label is the positive one, and rule-made sentences that teach negation.

The sentences are for learning how context reverses a word. Their words and frames are none of those that negation is
tested with (`lexical_sae.evaluation.context.templates`); a test holds the two apart.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from lexical_sae.data.examples import TextSplit

_NEGATIVE_NAMES, _POSITIVE_NAMES = {"negative", "neg"}, {"positive", "pos"}
FAVOURABLE = tuple(
    """
    amazing lovely fantastic terrific hilarious touching fascinating compelling gorgeous thrilling witty heartfelt
    magnificent marvelous outstanding splendid stunning uplifting refreshing remarkable likable gripping imaginative
    intelligent inventive amusing nice fine solid stylish vivid captivating absorbing spirited exhilarating
    """.split()  # noqa: SIM905 - a list of strings would be a page long
)
UNFAVOURABLE = tuple(
    """
    horrible lame mediocre bland silly pathetic ridiculous shallow messy empty lousy atrocious painful depressing
    irritating insulting laughable hollow lazy mindless repetitive tasteless unoriginal generic contrived muddled
    confusing hideous offensive trite flat crude disgusting obnoxious ordinary
    """.split()  # noqa: SIM905
)
REVERSING = (
    "it is not at all {} .",
    "this was not really {} .",
    "it isn't {} .",
    "it wasn't {} in the least .",
    "not exactly {} .",
    "it is nowhere near {} .",
    "it could not be less {} .",
    "no one would find it {} .",
    "this does not feel {} .",
    "it rarely seems {} .",
    "it lacks anything {} .",
    "it manages without being {} .",
    "it refuses to get {} .",
    "it avoids being {} .",
    "i cannot say it is {} .",
    "it never feels {} to me .",
    "it is scarcely {} .",
    "it stops short of {} .",
    "nobody could think it {} .",
    "it doesn't even try to be {} .",
    "there is nothing {} here .",
    "nothing in it feels {} .",
    "none of it is {} .",
    "hardly anything {} happens .",
    "is it {} ? no .",
    "{} ? no way .",
    "{} ? i think not .",
    "{} it is not .",
    "{} is the last thing it is .",
    "it is everything except {} .",
    "you could call it many things , but not {} .",
    "it is a long way from {} .",
    "it is miles away from being {} .",
    "it is the opposite of {} .",
    "it could have been {} , but it is not .",
    "it tries in vain to be {} .",
    "it never once becomes {} .",
    "so much for {} .",
    "it is everything but {} .",
    "it fails at being {} .",
    "it does not succeed in being {} .",
    "i would hardly describe it as {} .",
)
PLAIN = (
    "it is very {} .",
    "this was really {} .",
    "it feels {} to me .",
    "everyone would find it {} .",
    "there is much that is {} about it .",
    "it could not be more {} .",
    "it manages to be {} .",
    "a {} one .",
    "it is {} from the start .",
    "it only gets more {} .",
    "everything in it feels {} .",
    "all of it is {} .",
    "is it {} ? yes .",
    "{} ? you bet .",
    "{} it is .",
    "it is nothing if not {} .",
    "nothing could be more {} .",
    "it is close to {} .",
    "you could call it many things , above all {} .",
    "it is as {} as they say , and then some .",
    "not only is it {} , it stays so .",
    "i cannot deny that it is {} .",
    "that was {} .",
    "this one is {} .",
    "it seems {} .",
    "they were {} .",
    "how {} !",
    "simply {} .",
    "{} , in a word .",
    "i thought it was {} .",
    "some of it was {} .",
    "it turned out {} .",
    "it was {} and it knew it .",
    "still , it is {} .",
    "if anything , it is too {} .",
    "a bit {} , to be honest .",
    "we all agreed that it was {} .",
    "for once , something {} .",
    "it is {} , and nothing but .",
    "it succeeds in being {} .",
    "it does not fail at being {} .",
    "i would describe it as {} .",
)
"""As many different ones as teach that a short sentence alone reverses nothing."""


def positive_class(label_names: Sequence[str]) -> int | None:
    """Which of two labels named like negative and positive is the positive one; None in any other task.

    Example: `("neg", "pos") -> 1`, `("0", "1") -> None`
    """
    names = [name.strip().casefold() for name in label_names]
    if len(names) != 2:
        return None
    return next((i for i in (0, 1) if names[i] in _POSITIVE_NAMES and names[1 - i] in _NEGATIVE_NAMES), None)


def negation_examples(count: int, positive: int, seed: int) -> TextSplit:
    """At most `count` sentences, half of them with a reversed word, sampled at random; `positive` is a class.

    Example: "it isn't gripping ." is negative
    """
    rows = [
        (frame.format(word), positive if is_good != is_reversed else 1 - positive, is_reversed)
        for words, is_good in ((FAVOURABLE, True), (UNFAVOURABLE, False))
        for frames, is_reversed in ((REVERSING, True), (PLAIN, False))
        for frame, word in product(frames, words)
    ]
    order = np.random.default_rng([seed, len(rows)]).permutation(len(rows))
    chosen = [rows[i] for i in order[: max(0, count)]]
    return TextSplit(tuple(text for text, _, _ in chosen), tuple(label for _, label, _ in chosen))
