"""Do the words that a model shows mean what they say?

A contribution under the name "delicious" is exact whatever the name; that the name is true is another matter, and is
measured here: edit the word and see whether its dimension follows (`names_edits`), see where the contributions lie
(`names_shares`), and whether a dimension fires where its word is written (`names_presence`). Each score stands beside
its control; a bag of words (`names_bag`) beside the model, and the model with a permuted lexical head
(`names_random_head`).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from lexical_sae.data.sampling import sample_rows
from lexical_sae.evaluation.corpus.lexicon import LexiconCollector, LexiconWord
from lexical_sae.evaluation.names.edits import DeleteScores, FollowScores, Rate, delete_test, follow_test
from lexical_sae.evaluation.names.lexical import LexicalSAENames
from lexical_sae.evaluation.names.literal import names_of
from lexical_sae.evaluation.names.model import NamedModel
from lexical_sae.evaluation.names.presence import PresenceScores, measure_presence
from lexical_sae.evaluation.names.random_head import with_random_lexical_head
from lexical_sae.evaluation.names.shares import (
    function_word_share,
    is_piece,
    is_punctuation,
    lexical_neighbour_chance,
    lexical_neighbour_share,
    own_word_share,
    share_of,
    sign_stability,
    surroundings_of,
)
from lexical_sae.evaluation.names.text import SwapWords
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, silent

PRESENCE_TEXTS, PRESENCE_TIMES = 1000, 5
"""Texts that presence is measured on: an upper limit, and a multiple of those that are edited. A word must occur in
several."""
CONTROL_TEXTS = 100
"""Texts to edit for the random lexical head, at most."""


@dataclass(frozen=True)
class RandomHeadScores:
    """What the same model scores when its words have changed places at random: chance, for a test of names."""

    delete: Rate
    """Not a test of names: it stays where it was, as words still go with the token that opened them."""
    follow: Rate
    own_words: Rate
    lexical_neighbours: Rate
    presence: Rate


@dataclass(frozen=True)
class NameScores:
    """How true the names of a model are; every share is weighed by |contribution| to the predicted class."""

    texts: int
    active_words: float
    """Per text, on average."""
    delete: DeleteScores
    follow: FollowScores
    own_words: Rate
    """On words that are literally in the text."""
    lexical_neighbours: Rate
    """On words of the text, their forms and their near neighbours."""
    lexical_neighbours_chance: Rate
    """The same for words that other texts show."""
    function_words: Rate
    word_pieces: Rate
    punctuation: Rate
    sign_stability: Rate
    presence: PresenceScores
    random_head: RandomHeadScores | None
    """None for a model without a lexical head."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for `results.json`."""
        return asdict(self)


_EARLIER_KEYS = {
    "neighbourhood": "lexical_neighbours",
    "neighbourhood_chance": "lexical_neighbours_chance",
}


def with_current_keys(saved: Any) -> Any:
    """What `names.json` holds, with the name scores of earlier versions under today's keys.

    Example: `{"model": {"own_words": ..., "neighbourhood": ...}} -> {"model": {..., "lexical_neighbours": ...}}`
    """
    if not isinstance(saved, dict):
        return saved
    # Not elsewhere: labels are keys too.
    keys = _EARLIER_KEYS if "own_words" in saved else {}
    return {keys.get(key, key): with_current_keys(value) for key, value in saved.items()}


def as_named(model: LexicalSAE | NamedModel) -> NamedModel:
    """The model as the tests ask for it."""
    return names_of(model) if isinstance(model, LexicalSAE) else model


def measure_names(
    model: LexicalSAE | NamedModel,
    texts: Sequence[str],
    corpus: Sequence[str] = (),
    seed: int = 0,
    limit: int = 200,
    on_step: OnStep = silent,
) -> NameScores:
    """All name scores on at most `limit` of the texts, drawn with the seed.

    `corpus` (training texts, say) together with the texts tells how frequent words are, which the substitution test
    needs.
    """
    if not texts:
        raise DataError("no text to measure names on; give at least one")
    named = as_named(model)
    readings = named.contributions(_drawn(texts, limit, seed), on_step)
    surroundings = surroundings_of(named, readings)
    swaps = SwapWords(named, [*texts, *corpus], seed)
    return NameScores(
        texts=len(readings),
        active_words=sum(len(reading.words) for reading in readings) / max(1, len(readings)),
        delete=delete_test(named, readings, seed, on_step),
        follow=follow_test(named, readings, swaps, seed, on_step),
        own_words=own_word_share(readings, surroundings),
        lexical_neighbours=lexical_neighbour_share(readings, surroundings),
        lexical_neighbours_chance=lexical_neighbour_chance(readings, surroundings, seed),
        function_words=function_word_share(readings),
        word_pieces=share_of(readings, is_piece),
        punctuation=share_of(readings, is_punctuation),
        sign_stability=sign_stability(readings),
        presence=measure_presence(named, _drawn(texts, _presence_texts(limit), seed), seed, on_step),
        random_head=_random_head(model, texts, swaps, limit, seed, on_step),
    )


def _random_head(
    model: LexicalSAE | NamedModel, texts: Sequence[str], swaps: SwapWords, limit: int, seed: int, on_step: OnStep
) -> RandomHeadScores | None:
    if not isinstance(model, LexicalSAE) or model.literal is not None:
        # The names of literal words do not hang on a lexical head.
        return None
    named = LexicalSAENames(with_random_lexical_head(model, seed))
    readings = named.contributions(_drawn(texts, min(limit or CONTROL_TEXTS, CONTROL_TEXTS), seed), on_step)
    # Neighbours are those of the true words: in the control's own decoder they would have changed places too.
    surroundings = surroundings_of(LexicalSAENames(model), readings)
    return RandomHeadScores(
        delete=delete_test(named, readings, seed, on_step).passed,
        follow=follow_test(named, readings, swaps, seed, on_step).passed,
        own_words=own_word_share(readings, surroundings),
        lexical_neighbours=lexical_neighbour_share(readings, surroundings),
        presence=measure_presence(named, _drawn(texts, _presence_texts(limit), seed), seed, on_step).auc,
    )


def _presence_texts(limit: int) -> int:
    """How many texts presence is measured on. Example: `100 -> 500`, `200 -> 1000`, `0` (all) `-> 1000`."""
    return min(PRESENCE_TEXTS, PRESENCE_TIMES * limit or PRESENCE_TEXTS)


def _drawn(texts: Sequence[str], limit: int, seed: int) -> list[str]:
    """A random sample of at most that many texts, in their order."""
    return [texts[row] for row in sample_rows(len(texts), limit, seed)]


def strongest_words(
    model: LexicalSAE | NamedModel,
    texts: Sequence[str],
    labels: Sequence[int],
    k: int = 20,
    on_step: OnStep = silent,
    *,
    all_tokens: bool = False,
) -> dict[int, tuple[LexiconWord, ...]]:
    """Per class, the k words that contribute most to it on its own texts: by mean class-centred contribution.

    A model's word pieces and symbols are left out, unless `all_tokens`.
    """
    if len(texts) != len(labels):
        raise DataError(f"{len(labels)} labels for {len(texts)} texts; give one per text")
    named = as_named(model)
    readings = named.contributions(texts, on_step)
    words = [(row, word, labels[row]) for row, reading in enumerate(readings) for word in reading.words]
    names = {word.dimension: word.name for _, word, _ in words}
    collector = LexiconCollector(max(labels, default=-1) + 1, max(names, default=-1) + 1)
    collector.add(
        torch.tensor(labels, dtype=torch.long),
        torch.tensor([row for row, _, _ in words], dtype=torch.long),
        torch.tensor([word.dimension for _, word, _ in words], dtype=torch.long),
        torch.tensor([word.contributions[label] for _, word, label in words], dtype=torch.float64),
        torch.tensor([word.activation for _, word, _ in words], dtype=torch.float64),
    )
    listed = None
    if isinstance(named, LexicalSAENames):
        listed = named.model.dimensions.listed_mask(all_tokens=all_tokens)[: collector.size]
    classes = [str(label) for label in range(len(collector.texts))]
    lexicon = collector.lexicon(classes, names.__getitem__, top=k, listed=listed)
    return {label: lexicon.classes[label].contributes_to for label in sorted(set(labels))}
