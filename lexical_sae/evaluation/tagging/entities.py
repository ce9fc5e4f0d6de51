"""Entity scores: an entity is found if its type and both its ends are right, and not otherwise."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lexical_sae.data.tagging import Entity, entity_spans, repair_iob2
from lexical_sae.utils.errors import DataError


@dataclass(frozen=True)
class EntityCounts:
    """How many entities there are, were predicted, and were predicted rightly."""

    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        """Share of the predicted that are right; 0 where nothing was predicted, as in the CoNLL scorer."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the given that were found; 0 where nothing was given."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.correct / (self.gold + self.predicted) if self.gold + self.predicted else 0.0

    def as_dict(self) -> dict[str, float]:
        """The figures, as plain data."""
        counts = {"gold": self.gold, "predicted": self.predicted, "correct": self.correct}
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, **counts}


@dataclass(frozen=True)
class EntityScores:
    """Scores of tag sequences against the true ones."""

    overall: EntityCounts
    """All types together (micro-average): the figure that CoNLL reports."""
    types: dict[str, EntityCounts]
    """By type, in alphabetical order."""
    token_accuracy: float
    """Share of words with exactly the right tag."""
    words: int
    sentences_right: tuple[bool, ...]
    """Whether every entity of a sentence was found and no other, sentence by sentence."""


def score_entities(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], *, repair: bool = False
) -> EntityScores:
    """Strict entity scores of IOB2 tags, by type and overall.

    An `I-` that continues nothing opens no entity, as in seqeval's strict mode; with `repair` it opens one, as in the
    CoNLL scorer. On valid IOB2 all three agree.

    Example: gold `B-PER I-PER O`, predicted `B-PER O O` -> nothing found: the second end is wrong.
    """
    if len(gold) != len(predicted):
        raise DataError(f"{len(gold)} true sentences and {len(predicted)} predicted ones; give one for one")
    true, said, right = Counter[str](), Counter[str](), Counter[str]()
    same = words = 0
    sentences_right = []
    for number, (given, guessed) in enumerate(zip(gold, predicted, strict=True)):
        if len(given) != len(guessed):
            raise DataError(f"sentence {number} has {len(given)} true tags and {len(guessed)} predicted ones")
        ours, theirs = _entities(given, repair=repair), _entities(guessed, repair=repair)
        true.update(entity.type for entity in ours)
        said.update(entity.type for entity in theirs)
        right.update(entity.type for entity in ours & theirs)
        sentences_right.append(ours == theirs)
        same += sum(a == b for a, b in zip(given, guessed, strict=True))
        words += len(given)
    types = {name: EntityCounts(true[name], said[name], right[name]) for name in sorted(true.keys() | said.keys())}
    overall = EntityCounts(true.total(), said.total(), right.total())
    return EntityScores(overall, types, same / words if words else 0.0, words, tuple(sentences_right))


def _entities(tags: Sequence[str], *, repair: bool) -> set[Entity]:
    return set(entity_spans(repair_iob2(tags) if repair else tags))
