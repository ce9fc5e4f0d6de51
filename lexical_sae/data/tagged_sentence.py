"""A sentence with its tags, as plain data; and how a plain string is split into the words that taggers know."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import regex

from lexical_sae.data.tagging import Entity, entity_spans
from lexical_sae.utils.errors import DataError

_ABBREVIATION = r"(?:\p{L}\.){2,}"
_INITIAL = r"\b\p{Lu}\.(?=\s+\p{Lu})"
_ENDING = r"['’](?:s|re|ve|ll|d|m|t)\b"
_LETTERS = r"[\p{L}\p{M}\p{N}_]+"
# A hyphen, stroke or ampersand joins; points and commas between digits; an apostrophe, unless an ending begins.
_JOINT = rf"(?:[-/&](?=[\p{{L}}\p{{N}}])|(?<=\p{{Nd}})[.,:](?=\p{{Nd}})|(?!(?i:{_ENDING}))['’](?=\p{{L}}))"
_WORD = regex.compile(rf"{_ABBREVIATION}|{_INITIAL}|(?i:{_ENDING})|{_LETTERS}(?:{_JOINT}{_LETTERS})*|\S")


def split_words(text: str) -> Iterator[tuple[int, int]]:
    """Where the words of a text stand, cut as in CoNLL data: punctuation apart, abbreviations and hyphens whole.

    Example: `The U.S. team's third-place` -> The, U.S., team, 's, third-place
    """
    return (match.span() for match in _WORD.finditer(text))


@dataclass(frozen=True)
class TaggedSentence:
    """Words, where each stands in the text, and the tag of each."""

    text: str
    spans: tuple[tuple[int, int], ...]
    """First character of each word and the one after its last."""
    tags: tuple[str, ...]
    """IOB2."""

    def __post_init__(self) -> None:
        if len(self.spans) != len(self.tags):
            raise DataError(f"{len(self.spans)} words and {len(self.tags)} tags; give one tag per word")

    @classmethod
    def of_words(cls, words: Sequence[str], tags: Sequence[str]) -> "TaggedSentence":
        """Words with a space between each two."""
        spans, at = [], 0
        for word in words:
            spans.append((at, at + len(word)))
            at += len(word) + 1
        return cls(" ".join(words), tuple(spans), tuple(tags))

    @property
    def words(self) -> tuple[str, ...]:
        """The words as they are written."""
        return tuple(self.text[first:last] for first, last in self.spans)

    @property
    def entities(self) -> tuple[Entity, ...]:
        """What is named; `start` and `end` count words."""
        return tuple(entity_spans(self.tags))

    def characters(self, entity: Entity) -> tuple[int, int]:
        """First character of an entity and the one after its last."""
        return self.spans[entity.start][0], self.spans[entity.end - 1][1]

    def written(self, entity: Entity) -> str:
        """An entity as it stands in the text."""
        first, last = self.characters(entity)
        return self.text[first:last]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: words, tags, and entities with their characters."""
        entities = [
            {**asdict(entity), "text": self.written(entity), "characters": list(self.characters(entity))}
            for entity in self.entities
        ]
        return {"text": self.text, "words": list(self.words), "tags": list(self.tags), "entities": entities}
