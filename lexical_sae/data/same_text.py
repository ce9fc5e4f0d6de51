"""Which texts another set of texts holds, however they are written there.

Data sets share texts and write them differently: SST-2 has "it 's -lrb- almost -rrb- over ." for "It's (almost) over.",
and one sentence of what is a row of two elsewhere. What carves splits goes by `TextSplit.keys` instead, which stays as
it is: another way to group rows would give earlier runs other test texts.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from unicodedata import normalize

LEAST_INSIDE = 30
"""Letters that a text must have to count as held by a longer one, some six words: shorter ones are anybody's."""
_BRACKETS = re.compile(r"-[lr][rcs]b-")
"""How the Penn Treebank writes brackets."""


def letters_of(text: str) -> str:
    """The letters and digits of a text without case and accents; of a text without any, the text itself.

    Example: "It 's a -lrb- Cliché -rrb-" -> itsacliche
    """
    plain = _BRACKETS.sub(" ", normalize("NFKD", text.casefold()))
    return "".join(filter(str.isalnum, plain)) or text.strip()


def rows_held(texts: Sequence[str], others: Iterable[str]) -> set[int]:
    """Rows of the texts that equal one of the others or, unless they are short, stand inside one."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        rows[letters_of(text)].append(row)
    by_start: defaultdict[str, list[str]] = defaultdict(list)
    for own in rows:
        if len(own) >= LEAST_INSIDE:
            by_start[own[:LEAST_INSIDE]].append(own)
    held: set[str] = set()
    for other in map(letters_of, others):
        if other in rows:
            held.add(other)
        # By their starts, so that every other text is gone through once, however many texts are looked for.
        for at in range(len(other) - LEAST_INSIDE + 1):
            started = by_start.get(other[at : at + LEAST_INSIDE], ())
            held.update(own for own in started if other.startswith(own, at))
    return {row for own in held for row in rows[own]}
