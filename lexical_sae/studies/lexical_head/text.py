"""Pieces of token ids from plain text, for fitting and scoring a lexical head.

1. Each file is scanned once for its size, then read again for a seeded sample of whole documents.
2. Some documents are held out to score on, some to choose the best step by; the rest train.
3. Both are tokenised and cut, between words, into pieces of many lengths, because people write short phrases as well
   as long paragraphs.
"""

import gzip
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from lexical_sae.data.encoding import encode
from lexical_sae.data.vocabulary import CONTINUATION, Vocabulary
from lexical_sae.utils.errors import DataError

Piece = tuple[int, ...]
"""Token ids of a stretch of text, special tokens not included."""

CHARACTERS_PER_TOKEN = 8
"""An upper bound for English, so that a sample of this size has enough tokens."""


@dataclass(frozen=True)
class TextSize:
    """Size and layout of a text file."""

    characters: int
    documents: int
    has_blank_lines: bool
    """Whether blank lines separate the documents; without any, each line is a document."""


@dataclass(frozen=True)
class PieceSplit:
    """Pieces for training, validation and scoring; no document and no piece is in two of them."""

    training: list[Piece]
    validation: list[Piece]
    """For model selection."""
    held_out: list[Piece]
    """For scores only."""


def split_text(
    paths: Sequence[Path], vocabulary: Vocabulary, *, tokens: int, held_out_tokens: int, longest: int, seed: int
) -> PieceSplit:
    """Pieces of the files' text, an equal share of the tokens from each file, training pieces shuffled together.

    Validation gets a quarter of the tokens that scoring gets. A training piece that happens to equal one of theirs is
    dropped.
    """
    rng = random.Random(seed)
    training: list[Piece] = []
    validation: list[Piece] = []
    held_out: list[Piece] = []
    for path in paths:
        share, held_out_share = tokens // len(paths), held_out_tokens // len(paths)
        documents = sample_documents(path, characters=(share + held_out_share) * CHARACTERS_PER_TOKEN, rng=rng)
        if len(documents) < 3:
            raise DataError(
                f"{path} holds {len(documents)} document(s), but the head is chosen by and scored on documents it was "
                "not fitted on; give three or more, with a blank line between them"
            )
        # A small file keeps most of its documents for training.
        most_held_out = max(1, len(documents) // 10)
        for pieces, wanted in ((held_out, held_out_share), (validation, held_out_share // 4)):
            used, found = _cut_documents(documents[:most_held_out], vocabulary, max(1, wanted), longest, rng)
            pieces += found
            documents = documents[used:]
        training += _cut_documents(documents, vocabulary, share, longest, rng)[1]
    scored = set(held_out)
    validation = [piece for piece in validation if piece not in scored]
    kept_apart = scored | set(validation)
    training = [piece for piece in training if piece not in kept_apart]
    if not (training and validation and held_out):
        raise DataError(f"{', '.join(map(str, paths))}: too little text to fit a head on ({len(training)} pieces)")
    rng.shuffle(training)
    return PieceSplit(training, validation, held_out)


def sample_pieces(path: Path, vocabulary: Vocabulary, *, tokens: int, longest: int, seed: int) -> list[Piece]:
    """Pieces of a file that is only scored on."""
    rng = random.Random(seed)
    documents = sample_documents(path, characters=tokens * CHARACTERS_PER_TOKEN, rng=rng)
    return _cut_documents(documents, vocabulary, tokens, longest, rng)[1]


def sample_documents(path: Path, *, characters: int, rng: random.Random) -> list[str]:
    """Whole documents from all over the file, about `characters` long together, in random order."""
    size = scan_text(path)
    kept_share = characters / size.characters
    kept = [document for document in _documents(path, size.has_blank_lines) if rng.random() < kept_share]
    if len(kept) < 3:
        kept = list(itertools.islice(_documents(path, size.has_blank_lines), 3))
    rng.shuffle(kept)
    return kept


def scan_text(path: Path) -> TextSize:
    """Size of a text file.

    Raises:
        ValueError: It is missing, empty or cannot be decoded, with the position.
    """
    characters = documents = lines = 0
    has_blank_lines = inside = False
    for line in _lines(path):
        text = line.strip()
        has_blank_lines |= not text and inside
        documents += bool(text) and not inside
        inside = bool(text)
        lines += inside
        characters += len(text)
    if not characters:
        raise DataError(f"{path} holds no text")
    return TextSize(characters, documents if has_blank_lines else lines, has_blank_lines)


def _documents(path: Path, has_blank_lines: bool) -> Iterator[str]:
    paragraphs: list[str] = []
    for line in _lines(path):
        text = line.strip()
        if text:
            paragraphs.append(text)
        if paragraphs and not (text and has_blank_lines):
            yield "\n".join(paragraphs)
            paragraphs = []
    if paragraphs:
        yield "\n".join(paragraphs)


def _lines(path: Path) -> Iterator[str]:
    if not path.exists():
        raise FileNotFoundError(f"no text file at {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the text files in it, each with --text")
    number = 0
    try:
        with _open(path) as file:
            for number, raw in enumerate(file, start=1):  # noqa: B007
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: not UTF-8 ({error.reason}); convert the file to UTF-8") from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}); unpack it or copy it again") from error


def _open(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.GzipFile(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _cut_documents(
    documents: Sequence[str], vocabulary: Vocabulary, tokens: int, longest: int, rng: random.Random
) -> tuple[int, list[Piece]]:
    """Pieces of the first documents, until there are `tokens`; and how many documents were used."""
    continues = [name.startswith(CONTINUATION) for name in vocabulary.names]
    pieces: list[Piece] = []
    count = used = 0
    for document in documents:
        if count >= tokens:
            break
        used += 1
        for ids in _token_ids(vocabulary.tokenizer, document):
            pieces += cut(ids, continues, longest, rng)
            count += len(ids)
    return used, pieces


def _token_ids(tokenizer: PreTrainedTokenizerBase, document: str) -> list[list[int]]:
    return [line.ids for line in encode(tokenizer, document.split("\n"), add_special_tokens=False)]


def cut(ids: Sequence[int], continues: Sequence[bool], longest: int, rng: random.Random) -> list[Piece]:
    """Consecutive pieces of 4 to `longest` tokens, as many short as long ones (log-uniform), cut between words.

    Example: `play ##ing is fun` cut after one token gives `play ##ing | is fun`.
    """
    pieces: list[Piece] = []
    start = 0
    shortest = min(4, longest)
    while start < len(ids):
        end = start + round(math.exp(rng.uniform(math.log(shortest), math.log(longest))))
        while end < len(ids) and continues[ids[end]] and end < start + longest:
            end += 1
        pieces.append(tuple(ids[start:end]))
        start = end
    return pieces
