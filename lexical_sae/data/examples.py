"""What every data set becomes: plain, frozen splits of texts with labels, or of words with tags."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class TextSplit:
    """Texts with what is to be learned of each, and how much each mentions each identity where that is known."""

    texts: tuple[str, ...]
    labels: tuple[Any, ...]
    """Index into the data set's `label_names`; or, where texts have any of several labels, a 0 or 1 for each of these
    names; or a number (`TextDataset.output`)."""
    identities: Mapping[str, tuple[float, ...]] | None = None
    """Per identity name, one number per text: 0 to 1, or NaN where it was not annotated."""
    weights: tuple[float, ...] | None = None
    """How much each text counts in a loss; None where all count the same."""
    strata_of: tuple[int, ...] | None = None
    """What a fair split keeps in proportion, where that is not the label itself."""

    def __post_init__(self) -> None:
        lengths = {"labels": len(self.labels)} | {name: len(column) for name, column in (self.identities or {}).items()}
        if self.weights is not None:
            lengths["weights"] = len(self.weights)
        if self.strata_of is not None:
            lengths["strata"] = len(self.strata_of)
        for name, length in lengths.items():
            if length != len(self.texts):
                raise DataError(f"{name} has {length} entries for {len(self.texts)} texts; give one per text")

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"TextSplit({len(self)} texts)"

    def take(self, indices: Iterable[int]) -> "TextSplit":
        """The rows at `indices`, in that order."""
        chosen = [int(i) for i in indices]
        identities = self.identities and {
            name: tuple(column[i] for i in chosen) for name, column in self.identities.items()
        }
        weights = self.weights and tuple(self.weights[i] for i in chosen)
        texts, labels = tuple(self.texts[i] for i in chosen), tuple(self.labels[i] for i in chosen)
        strata = self.strata_of and tuple(self.strata_of[i] for i in chosen)
        return TextSplit(texts, labels, identities, weights, strata)

    def strata(self) -> tuple[int, ...]:
        """What a fair split keeps in proportion: the classes, or what stands for them."""
        return self.labels if self.strata_of is None else self.strata_of

    def keys(self) -> list[str]:
        """Equal for rows of one data set that are the same text: case and spacing do not count."""
        return [" ".join(text.casefold().split()) for text in self.texts]


@dataclass(frozen=True)
class TaggedSplit:
    """Sentences as words, with one IOB2 tag per word."""

    tokens: tuple[tuple[str, ...], ...]
    tags: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.tags):
            raise DataError(f"{len(self.tags)} tag rows for {len(self.tokens)} sentences; give one per sentence")
        for number, (words, tags) in enumerate(zip(self.tokens, self.tags, strict=True)):
            if len(words) != len(tags):
                raise DataError(f"sentence {number} has {len(words)} words and {len(tags)} tags; give one tag per word")

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"TaggedSplit({len(self)} sentences)"

    def take(self, indices: Iterable[int]) -> "TaggedSplit":
        """The sentences at `indices`, in that order."""
        chosen = [int(i) for i in indices]
        return TaggedSplit(tuple(self.tokens[i] for i in chosen), tuple(self.tags[i] for i in chosen))

    def strata(self) -> tuple[int, ...]:
        """What a fair split keeps in proportion: sentences with and without an entity."""
        return tuple(int(any(tag != "O" for tag in tags)) for tags in self.tags)

    def keys(self) -> list[str]:
        """Equal for sentences with the same words."""
        return [" ".join(words).casefold() for words in self.tokens]


@dataclass(frozen=True)
class TextDataset:
    """A classification task, ready to train on; `test` is never used to choose anything."""

    name: str
    label_names: tuple[str, ...]
    train: TextSplit
    validation: TextSplit
    test: TextSplit
    notes: tuple[str, ...] = ()
    """What the loader decided or noticed, for people to read."""
    output: str = "classes"
    """What texts have: one of the `label_names` (classes), any of them (labels), or a number."""
    unlabelled: tuple[str, ...] = ()
    """Texts without a label; they say what words mean, and nothing else is learned from them."""

    def __repr__(self) -> str:
        return f"TextDataset({self.name!r}, {len(self.label_names)} {self.output}, {_sizes(self)})"


@dataclass(frozen=True)
class TaggedDataset:
    """A tagging task in IOB2, ready to train on; `test` is never used to choose anything."""

    name: str
    tag_names: tuple[str, ...]
    """`O` first, then `B-X`, `I-X` per type."""
    train: TaggedSplit
    validation: TaggedSplit
    test: TaggedSplit
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"TaggedDataset({self.name!r}, {len(self.tag_names)} tags, {_sizes(self)})"


def _sizes(dataset: TextDataset | TaggedDataset) -> str:
    return f"train={len(dataset.train)}, validation={len(dataset.validation)}, test={len(dataset.test)}"


S = TypeVar("S", TextSplit, TaggedSplit)


@dataclass(frozen=True)
class Source(Generic[S]):
    """What a source holds before missing splits are made: the splits that are missing are None."""

    names: tuple[str, ...]
    """Class names, or tag names."""
    train: S
    validation: S | None = None
    test: S | None = None
    groups: tuple[str, ...] | None = None
    """Per train row, a key that must not straddle two splits; None: the row's own text."""
    notes: tuple[str, ...] = ()
