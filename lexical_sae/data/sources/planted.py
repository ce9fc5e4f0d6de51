"""Corpora made by templates, so that what decides the label is known: for tests, demos and controls.

Every slot of a template is drawn on its own, except where a generator says otherwise. All words are ordinary English.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from lexical_sae.data.examples import TextDataset, TextSplit
from lexical_sae.utils.errors import DataError

TEMPLATES = (
    "the {noun} at the {place} was {adjective} , said the {person} on {day} with {thing}",
    "on {day} the {person} with {thing} saw a {adjective} {noun} near the {place}",
    "a {adjective} {noun} , thought the {person} with {thing} at the {place} last {day}",
    "the {person} from the {place} with {thing} called the {noun} {adjective} on {day}",
)
SLOTS: dict[str, tuple[str, ...]] = {
    "noun": ("movie", "book", "song", "meal", "show", "game", "story", "party", "concert", "speech", "match", "play"),
    "place": ("station", "school", "market", "library", "hotel", "office", "garden", "museum", "bridge", "church"),
    "person": ("doctor", "teacher", "driver", "painter", "singer", "student", "writer", "neighbor", "captain", "judge"),
    "day": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "thing": ("coffee", "flowers", "music", "bread", "paper", "glasses", "keys", "letters"),
}
POSITIVE = ("wonderful", "brilliant", "charming", "beautiful", "excellent", "lovely")
NEGATIVE = ("terrible", "boring", "awful", "ugly", "horrible", "stupid")
NEUTRAL = ("recent", "usual", "second", "local", "final", "early")
COAST = ("beach", "harbor", "island", "coast")
INLAND = ("mountain", "forest", "desert", "valley")
COAST_PROXIES = ("boats", "shells", "fish", "sails")
INLAND_PROXIES = ("boots", "horses", "wood", "stones")


@dataclass(frozen=True)
class PlantedCorpus:
    """A data set and the words that were planted in it."""

    dataset: TextDataset
    circuit_words: Mapping[str, tuple[str, ...]]
    """Per class name, the words that decide it."""
    concept_words: tuple[str, ...] = ()
    """Words that name the identity or concept."""
    proxy_words: tuple[str, ...] = ()
    """Other words that may give the concept away."""


@dataclass(frozen=True)
class _Row:
    label: int
    slots: dict[str, str]
    identities: dict[str, float] = field(default_factory=dict)


def planted_sentiment(n: int = 600, seed: int = 0) -> PlantedCorpus:
    """`n` train texts whose label is decided by one adjective and by nothing else.

    Validation and test have `n // 4` texts each; no text occurs twice.
    """

    def draw(rng: np.random.Generator, is_train: bool) -> _Row:  # noqa: ARG001
        label = int(rng.integers(2))
        return _Row(label, {"adjective": _pick(rng, (NEGATIVE, POSITIVE)[label])})

    return _corpus("planted_sentiment", n, seed, draw)


def planted_bias(
    n: int = 600,
    seed: int = 0,
    rate: float = 0.9,
    ambiguous: float = 0.4,
    groups: tuple[str, str] = ("sailor", "farmer"),
) -> PlantedCorpus:
    """Texts in which a group is mentioned, in train more often beside one label than beside the other.

    In train, the first group stands in a negative text with probability `rate` and in a positive one with `1 - rate`;
    otherwise the second does. A share `ambiguous` of texts has a neutral adjective: there only the group hints at the
    label, so a learner is tempted. In validation and test the groups are independent of the label, and a model that
    fell for it shows a gap. `identities` holds which group each text mentions.
    """
    if not 0 <= rate <= 1 or not 0 <= ambiguous <= 1:
        raise DataError(f"rate is {rate} and ambiguous {ambiguous}; both are shares from 0 to 1")

    def draw(rng: np.random.Generator, is_train: bool) -> _Row:
        label = int(rng.integers(2))
        first_rate = (rate, 1 - rate)[label] if is_train else 0.5
        group = groups[0] if rng.random() < first_rate else groups[1]
        words = NEUTRAL if rng.random() < ambiguous else (NEGATIVE, POSITIVE)[label]
        identities = {name: float(name == group) for name in groups}
        return _Row(label, {"adjective": _pick(rng, words), "person": group}, identities)

    return _corpus("planted_bias", n, seed, draw, concept_words=groups)


def planted_leak(n: int = 600, seed: int = 0, leak: bool = True) -> PlantedCorpus:
    """Sentiment texts about the coast or the inland, a concept that has nothing to do with the label.

    `concept_words` name the concept in every text. With `leak`, `proxy_words` follow it too, so that removing the
    concept words does not remove the concept; without, the proxies are drawn at random, and the concept is gone.
    """

    def draw(rng: np.random.Generator, is_train: bool) -> _Row:  # noqa: ARG001
        label, is_coast = int(rng.integers(2)), bool(rng.integers(2))
        proxies = (COAST_PROXIES if is_coast else INLAND_PROXIES) if leak else COAST_PROXIES + INLAND_PROXIES
        slots = {
            "adjective": _pick(rng, (NEGATIVE, POSITIVE)[label]),
            "place": _pick(rng, COAST if is_coast else INLAND),
            "thing": _pick(rng, proxies),
        }
        return _Row(label, slots, {"coast": float(is_coast)})

    words = {"concept_words": COAST + INLAND, "proxy_words": COAST_PROXIES + INLAND_PROXIES}
    return _corpus("planted_leak", n, seed, draw, **words)


def _corpus(
    name: str,
    n: int,
    seed: int,
    draw: Callable[[np.random.Generator, bool], _Row],
    concept_words: tuple[str, ...] = (),
    proxy_words: tuple[str, ...] = (),
) -> PlantedCorpus:
    if not 8 <= n <= 20_000:
        raise DataError(f"n is {n}; planted corpora have 8 to 20,000 train texts")
    rng = np.random.default_rng(seed)
    seen: set[str] = set()
    train, validation, test = (
        _split(rng, size, draw, is_train, seen) for size, is_train in ((n, True), (n // 4, False), (n // 4, False))
    )
    label_names = ("negative", "positive")
    dataset = TextDataset(name, label_names, train, validation, test, (f"made by templates, seed {seed}",))
    return PlantedCorpus(dataset, {"negative": NEGATIVE, "positive": POSITIVE}, concept_words, proxy_words)


def _split(
    rng: np.random.Generator,
    size: int,
    draw: Callable[[np.random.Generator, bool], _Row],
    is_train: bool,
    seen: set[str],
) -> TextSplit:
    rows: dict[str, _Row] = {}
    while len(rows) < size:
        row = draw(rng, is_train)
        others = {slot: _pick(rng, words) for slot, words in SLOTS.items()}
        text = _pick(rng, TEMPLATES).format(**(others | row.slots))
        if text not in seen:
            seen.add(text)
            rows[text] = row
    drawn = list(rows.values())
    identities = {name: tuple(row.identities[name] for row in drawn) for name in drawn[0].identities}
    return TextSplit(tuple(rows), tuple(row.label for row in drawn), identities or None)


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[int(rng.integers(len(options)))]
