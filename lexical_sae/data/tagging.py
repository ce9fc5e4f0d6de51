"""BIO tags: schemes in and out, entities as spans, alignment to subwords, and decoding that is always valid.

IOB2 is the house scheme: every entity opens with `B-`. IOB1 opens with `I-`, and with `B-` only right after an
entity of the same type; BIOES also marks the end (`E-`) and single-word entities (`S-`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from torch import Tensor

from lexical_sae.utils.errors import DataError
from lexical_sae.utils.suggest import did_you_mean

SCHEMES = ("IOB1", "IOB2", "BIOES")
IGNORED = -100
"""Label of positions that carry no tag; the value that torch's cross entropy skips."""


@dataclass(frozen=True)
class Entity:
    """Words `start` to `end` (exclusive) name something of this type."""

    type: str
    start: int
    end: int


@dataclass(frozen=True)
class AlignedTags:
    """One label per subword, and the words that got none."""

    label_ids: tuple[int, ...]
    vanished: tuple[int, ...]
    """Words that tokenise to nothing."""
    cut: tuple[int, ...]
    """Words beyond the last subword, lost to truncation."""


@lru_cache(maxsize=1024)
def parse_tag(tag: str) -> tuple[str, str]:
    """(prefix, type) of a tag; `O` has no type.

    Example: parse_tag("B-PER") -> ("B", "PER")
    """
    if tag == "O":
        return "O", ""
    prefix, dash, kind = tag.partition("-")
    if not dash or prefix not in "BIES" or len(prefix) != 1 or not kind:
        raise DataError(f"tag {tag!r} is unknown; write 'O', or B-, I-, E- or S- and a type, such as 'B-PER'")
    return prefix, kind


def detect_scheme(sequences: Iterable[Sequence[str]]) -> str:
    """The scheme these tag sequences follow: one of `SCHEMES`.

    Sequences that fit IOB1 and IOB2 alike read the same in both, and are called IOB2. A few tags that do not fit are
    mistakes (the published CoNLL-2003 has two): the scheme in which most entities open decides.
    """
    opened_by_inside = opened_by_begin = 0
    for tags in sequences:
        previous_type = ""
        for prefix, kind in map(parse_tag, tags):
            if prefix in "ES":
                return "BIOES"
            opened_by_inside += prefix == "I" and previous_type != kind
            opened_by_begin += prefix == "B" and previous_type != kind
            previous_type = kind
    return "IOB1" if opened_by_inside > opened_by_begin else "IOB2"


def to_iob2(tags: Sequence[str], scheme: str) -> list[str]:
    """The same entities in IOB2.

    Example: to_iob2(["I-PER", "I-PER", "B-PER"], "IOB1") -> ["B-PER", "I-PER", "B-PER"]
    """
    _check_scheme(scheme)
    parsed = [parse_tag(tag) for tag in tags]
    if scheme == "BIOES":
        parsed = [({"S": "B", "E": "I"}.get(prefix, prefix), kind) for prefix, kind in parsed]
    converted = [f"{prefix}-{kind}" if kind else prefix for prefix, kind in parsed]
    return repair_iob2(converted) if scheme == "IOB1" else converted


def from_iob2(tags: Sequence[str], scheme: str) -> list[str]:
    """Valid IOB2 tags written in another scheme.

    Example: from_iob2(["B-PER", "I-PER", "B-LOC"], "BIOES") -> ["B-PER", "E-PER", "S-LOC"]
    """
    _check_scheme(scheme)
    written = ["O"] * len(tags)
    previous_end: dict[str, int] = {}
    for entity in entity_spans(tags):
        size = entity.end - entity.start
        if scheme == "BIOES":
            prefixes = "S" if size == 1 else "B" + "I" * (size - 2) + "E"
        else:
            opens = "B" if scheme == "IOB2" or previous_end.get(entity.type) == entity.start else "I"
            prefixes = opens + "I" * (size - 1)
        previous_end[entity.type] = entity.end
        written[entity.start : entity.end] = [f"{prefix}-{entity.type}" for prefix in prefixes]
    return written


def repair_iob2(tags: Sequence[str]) -> list[str]:
    """The tags with every `I-` that continues nothing read as `B-`, as conlleval does.

    Example: ["O", "I-PER", "I-LOC"] -> ["O", "B-PER", "B-LOC"]
    """
    repaired: list[str] = []
    previous_type = ""
    for tag in tags:
        prefix, kind = parse_tag(tag)
        repaired.append(f"B-{kind}" if prefix == "I" and kind != previous_type else tag)
        previous_type = kind
    return repaired


def entity_spans(tags: Sequence[str]) -> list[Entity]:
    """The entities of an IOB2 sequence, strictly: only `B-` opens one. Equal to seqeval's strict mode.

    Example: ["B-PER", "I-PER", "O", "I-LOC"] -> [Entity("PER", 0, 2)]
    """
    entities: list[Entity] = []
    is_open = False
    for position, tag in enumerate(tags):
        prefix, kind = parse_tag(tag)
        if is_open and prefix == "I" and kind == entities[-1].type:
            entities[-1] = Entity(kind, entities[-1].start, position + 1)
            continue
        is_open = prefix == "B"
        if is_open:
            entities.append(Entity(kind, position, position + 1))
    return entities


def encode_tags(tags: Sequence[str], tag_names: Sequence[str], place: str = "the sentence") -> list[int]:
    """Tags as indices into `tag_names`; an unknown one is an error with its place."""
    ids = {name: i for i, name in enumerate(tag_names)}
    for position, tag in enumerate(tags):
        if tag not in ids:
            known = ", ".join(map(repr, tag_names))
            raise DataError(f"{place}, word {position}: tag {tag!r} is unknown{did_you_mean(tag, ids)} Known: {known}")
    return [ids[tag] for tag in tags]


def align_tags_to_subwords(word_ids: Sequence[int | None], tag_ids: Sequence[int]) -> AlignedTags:
    """Labels for subwords: the first of each word carries its tag, the rest and special tokens carry -100.

    `word_ids` gives the word of each subword (None: special token), as tokenizers return it. Words without
    a subword shift nothing: they are named in `vanished` or `cut`.

    Example: word_ids=[None, 0, 0, 2, None], tag_ids=[3, 0, 5] -> labels [-100, 3, -100, 5, -100], vanished (1,)
    """
    words = [word for word in word_ids if word is not None]
    last = max(words, default=-1)
    if last >= len(tag_ids):
        raise DataError(
            f"the subwords belong to {last + 1} words, but there are {len(tag_ids)} tags; give one per word"
        )
    seen: set[int] = set()
    labels: list[int] = []
    for word in word_ids:
        if word is None or word in seen:
            labels.append(IGNORED)
        else:
            labels.append(tag_ids[word])
            seen.add(word)
    vanished = tuple(word for word in range(last) if word not in seen)
    return AlignedTags(tuple(labels), vanished, tuple(range(last + 1, len(tag_ids))))


def decode_valid_tags(logits: Float[Tensor, "L C"], tag_names: Sequence[str]) -> list[int]:
    """The best-scoring tag sequence among the valid IOB2 ones (Viterbi over allowed transitions).

    `I-X` may only follow `B-X` or `I-X`. Equal to argmax wherever argmax is already valid.
    """
    scores = logits.detach().double().cpu().numpy()
    if len(scores) == 0:
        return []
    if not np.isfinite(scores).all():
        raise DataError("the tag logits hold NaN or infinity; no sequence is best")
    parsed = [parse_tag(name) for name in tag_names]
    may_follow = np.array([[b != "I" or (a != "O" and x == y) for b, y in parsed] for a, x in parsed])
    penalty = np.where(may_follow, 0.0, -np.inf)
    best = scores[0] + np.where([prefix == "I" for prefix, _ in parsed], -np.inf, 0.0)
    back: list[np.ndarray] = []
    for row in scores[1:]:
        paths = best[:, None] + penalty
        back.append(paths.argmax(axis=0))
        best = paths.max(axis=0) + row
    decoded = [int(best.argmax())]
    for pointers in reversed(back):
        decoded.append(int(pointers[decoded[-1]]))
    return decoded[::-1]


def _check_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise DataError(
            f"tag scheme {scheme!r} is unknown{did_you_mean(scheme, SCHEMES)} Choose from {', '.join(SCHEMES)}"
        )
