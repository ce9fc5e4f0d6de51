"""Words in context with what they mean: coarse senses of ambiguous nouns, and pairs of sentences (WiC).

Both are read from a local folder, as they are published: sentences are tokens between spaces, and a number gives which
token the word is. A folder is given, or looked for in `$LEXICAL_SAE_DATA` under `coarsewsd20` and `wic`.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from lexical_sae.data.loader import DATA_VARIABLE
from lexical_sae.data.words import Span
from lexical_sae.utils.errors import DataError

COARSE, PAIRS = "coarsewsd20", "wic"
SOURCES = {
    COARSE: "CoarseWSD-20 (Loureiro et al. 2021, arXiv:2008.11608): a folder per word with train and test files",
    PAIRS: "WiC (Pilehvar & Camacho-Collados 2019): train.data.txt, train.gold.txt, dev.data.txt, dev.gold.txt",
}


@dataclass(frozen=True)
class Mention:
    """A word where it stands in a sentence."""

    sentence: str
    span: Span


@dataclass(frozen=True)
class SenseExample:
    """A mention with its sense."""

    mention: Mention
    sense: str


@dataclass(frozen=True)
class SensesOfWord:
    """An ambiguous word with examples."""

    word: str
    train: tuple[SenseExample, ...]
    test: tuple[SenseExample, ...]


@dataclass(frozen=True)
class ContextPair:
    """Two mentions of a word, and whether it means the same in both."""

    word: str
    mentions: tuple[Mention, Mention]
    is_same: bool


def load_coarse_senses(path: str | Path | None = None) -> tuple[SensesOfWord, ...]:
    """Every ambiguous word of a folder, by name."""
    folder = _folder(COARSE, path)
    words = sorted(part for part in folder.iterdir() if (part / "train.data.txt").is_file())
    if not words:
        raise DataError(f"{folder} holds no words with senses; expected {SOURCES[COARSE]}")
    return tuple(SensesOfWord(word.name, *(_examples(word, split) for split in ("train", "test"))) for word in words)


def load_context_pairs(path: str | Path | None = None) -> dict[str, tuple[ContextPair, ...]]:
    """The pairs of `train` and `dev`; the test pairs were published without answers."""
    folder = _folder(PAIRS, path)
    return {split: _pairs(folder, split) for split in ("train", "dev")}


def mention_of(sentence: str, index: int, place: str) -> Mention:
    """The token of that number in a sentence of tokens between spaces.

    Example: `mention_of("a river bank", 2, "x.txt:1").span -> (8, 12)`
    """
    tokens = sentence.split(" ")
    if not 0 <= index < len(tokens):
        raise DataError(f"{place}: there is no token {index} in a sentence of {len(tokens)}; the file is damaged")
    start = sum(len(token) + 1 for token in tokens[:index])
    return Mention(sentence, (start, start + len(tokens[index])))


def _examples(word: Path, split: str) -> tuple[SenseExample, ...]:
    path = word / f"{split}.data.txt"
    named = json.loads((word / "classes_map.txt").read_text(encoding="utf-8"))
    found = []
    for place, line, answer in _with_answers(path):
        index, _, sentence = line.partition("\t")
        if answer not in named:
            raise DataError(f"{place}: sense {answer!r} is not in classes_map.txt, which has {', '.join(named)}")
        found.append(SenseExample(mention_of(sentence, _number(index, place), place), named[answer]))
    return tuple(found)


def _pairs(folder: Path, split: str) -> tuple[ContextPair, ...]:
    found = []
    for place, line, answer in _with_answers(folder / f"{split}.data.txt"):
        fields = line.split("\t")
        if len(fields) != 5 or answer not in ("T", "F"):
            raise DataError(f"{place}: expected word, part of speech, places, two sentences, and the answer T or F")
        word, _, places, *sentences = fields
        indices = [_number(number, place) for number in places.split("-")]
        if len(indices) != 2:
            raise DataError(f"{place}: places are {places!r}; expected two numbers as in 3-7")
        first, second = (mention_of(text, at, place) for text, at in zip(sentences, indices, strict=True))
        found.append(ContextPair(word, (first, second), answer == "T"))
    return tuple(found)


def _with_answers(path: Path) -> list[tuple[str, str, str]]:
    """Place, line and answer of each row of a data file and its gold file."""
    gold = path.with_name(path.name.replace(".data.", ".gold."))
    lines, answers = (_lines(file) for file in (path, gold))
    if not lines:
        raise DataError(f"{path} has no rows; get the file again")
    if len(lines) != len(answers):
        raise DataError(f"{path} has {len(lines)} lines and {gold.name} {len(answers)}; they belong together")
    rows = enumerate(zip(lines, answers, strict=True), start=1)
    return [(f"{path}:{number}", line, answer.strip()) for number, (line, answer) in rows]


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}; give a folder that is whole")
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _number(text: str, place: str) -> int:
    if not text.strip().isdecimal():
        raise DataError(f"{place}: {text!r} is no number of a token")
    return int(text)


def _folder(name: str, path: str | Path | None) -> Path:
    root = os.environ.get(DATA_VARIABLE)
    if path is None and not root:
        raise FileNotFoundError(f"where is {name}? Give its folder, or set ${DATA_VARIABLE}. {SOURCES[name]}")
    folder = (Path(root or "", name) if path is None else Path(path)).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}. {SOURCES[name]}")
    return folder
