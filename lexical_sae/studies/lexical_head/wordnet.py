"""A small reader of the WordNet database files: which words are related to a word.

The files (`data.noun`, `noun.exc`, ...; Debian: `apt install wordnet-base`) are read directly; WordNet's manual page
wndb(5WN) describes them. Two words are related when they share a lemma, or when one's lemma is a synonym, a direct
hypernym or hyponym, or a derivation of the other's, in any sense.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lexical_sae.utils.errors import DataError

REFERENCE = "Fellbaum 1998, WordNet: An Electronic Lexical Database"

HYPERNYMS_AND_HYPONYMS = frozenset({"@", "@i", "~", "~i"})
DERIVATIONS = frozenset({"+", "\\"})
PARTS = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
# The endings that WordNet's `morphy` removes, with their replacements.
ENDINGS = {
    "noun": [
        ("s", ""),
        *((end, end[:-2]) for end in ("ses", "xes", "zes", "ches", "shes")),
        ("men", "man"),
        ("ies", "y"),
    ],
    "verb": [("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
    "adj": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "adv": [],
}

SynsetKey = tuple[str, str]
"""Part of speech and byte offset."""


@dataclass(frozen=True)
class Pointer:
    """One relation from a synset, or from one word of it, to another."""

    symbol: str
    synset: SynsetKey
    source: int
    """Number of the word it starts from, from 1; 0 for the whole synset."""
    target: int
    """Number of the word it points to; 0 for the whole synset."""


@dataclass(frozen=True)
class Synset:
    words: tuple[str, ...]
    pointers: tuple[Pointer, ...]


class WordNet:
    """The database of a folder, in memory."""

    def __init__(self, folder: Path) -> None:
        self.synsets: dict[SynsetKey, Synset] = {}
        self.senses: dict[tuple[str, str], list[tuple[SynsetKey, int]]] = {}
        """(part of speech, lemma) to its synsets and its number in each."""
        self.exceptions: dict[tuple[str, str], list[str]] = {}
        for part in ENDINGS:
            self._read_synsets(folder, part)
            self._read_exceptions(folder, part)
        self.relatives = cache(self._relatives)
        self.lemmas = cache(self._lemmas)

    def is_related(self, word: str, other: str) -> bool:
        """Whether two words share a lemma or stand in one of the relations above."""
        return not self.lemmas(other).isdisjoint(self.relatives(word))

    def _lemmas(self, word: str) -> frozenset[str]:
        """Base forms of a word that WordNet has. Example: `ran -> run`."""
        forms = {(part, word) for part in ENDINGS}
        forms |= {(part, base) for part in ENDINGS for base in self.exceptions.get((part, word), ())}
        forms |= {
            (part, word.removesuffix(ending) + base)
            for part, endings in ENDINGS.items()
            for ending, base in endings
            if word.endswith(ending)
        }
        return frozenset(form for part, form in forms if (part, form) in self.senses)

    def _relatives(self, word: str) -> frozenset[str]:
        lemmas = self.lemmas(word)
        found = set(lemmas)
        for lemma in lemmas:
            for part in ENDINGS:
                for key, number in self.senses.get((part, lemma), ()):
                    found.update(self.synsets[key].words)
                    for pointer in self.synsets[key].pointers:
                        found.update(self._words_at(pointer, number))
        return frozenset(found)

    def _words_at(self, pointer: Pointer, number: int) -> tuple[str, ...]:
        """Words a pointer leads to from the synset's word with this number."""
        is_wanted = pointer.symbol in HYPERNYMS_AND_HYPONYMS | DERIVATIONS and pointer.source in (0, number)
        if not is_wanted:
            return ()
        words = self.synsets[pointer.synset].words
        return words if pointer.target == 0 else (words[pointer.target - 1],)

    def _read_synsets(self, folder: Path, part: str) -> None:
        path = folder / f"data.{part}"
        for line_number, line in enumerate(_lines(path), start=1):
            # The licence at the top is indented.
            if not line.strip() or line.startswith("  "):
                continue
            try:
                offset, synset = _parse_synset(line)
            except (ValueError, IndexError, KeyError) as error:
                raise DataError(f"{path}, line {line_number}: not a WordNet synset; install WordNet again") from error
            self.synsets[part, offset] = synset
            for number, word in enumerate(synset.words, start=1):
                self.senses.setdefault((part, word), []).append(((part, offset), number))

    def _read_exceptions(self, folder: Path, part: str) -> None:
        path = folder / f"{part}.exc"
        for line in _lines(path) if path.exists() else ():
            inflected, *bases = line.split() or [""]
            self.exceptions.setdefault((part, inflected), []).extend(bases)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(
            f"{path.parent} holds no WordNet ({path.name} is missing); "
            "on Debian, `apt install wordnet-base` puts it in /usr/share/wordnet"
        ) from error


def _parse_synset(line: str) -> tuple[str, Synset]:
    """Offset and content of one line of a data file.

    `00001740 00 a 01 able 0 001 + 05200169 n 0101 | gloss` is the one-word synset `able` with one derivation.
    """
    fields = line.partition("|")[0].split()
    count = int(fields[3], 16)
    # An adjective may carry its position: `galore(ip)`.
    words = tuple(fields[4 + 2 * i].partition("(")[0].lower() for i in range(count))
    at = 4 + 2 * count
    pointers = []
    for i in range(int(fields[at])):
        symbol, offset, part, ends = fields[at + 1 + 4 * i : at + 5 + 4 * i]
        pointers.append(Pointer(symbol, (PARTS[part], offset), int(ends[:2], 16), int(ends[2:], 16)))
    return fields[0], Synset(words, tuple(pointers))
