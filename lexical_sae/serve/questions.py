"""What can be asked of a model, and how a lane answers it.

A question is frozen and compares by value: equal questions of different requests are answered in one call. Answers are
JSON already, so that the event loop only joins them.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from lexical_sae.evaluation.metrics.verification import TOLERANCE
from lexical_sae.explanation import Explanation
from lexical_sae.explorer.corpus import corpus_payload
from lexical_sae.inference import explain, find_reasons
from lexical_sae.inference.tagging import tag
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.runs.texts import Corpus
from lexical_sae.serve.edits import Edit
from lexical_sae.serve.problems import IdentityBroken
from lexical_sae.serve.served import ServedModel

BATCH = 32
"""Texts that the encoder reads at once."""


class Decided(NamedTuple):
    """An answer about one text, and the decision in it."""

    json: str
    label: str
    probability: float


class Explained(NamedTuple):
    """An explanation of one text as JSON, the sum of the words it leaves out, and the decision in it."""

    json: str
    rest: str
    label: str
    probability: float


@dataclass(frozen=True)
class Asking:
    """How decisions are to be explained."""

    target: str | None = None
    contrast: str | None = None
    method: str = "dla"
    top: int | None = None
    effects: bool = True
    places: bool = True
    causes: bool = False
    abstain: float | None = None
    all_tokens: bool = False
    merge_inflections: bool = False

    def of(self, model: LexicalSAE, texts: Sequence[str], target: str | None = None) -> list[Explanation]:
        """The explanations of texts, checked; for the `target` if one is given, else for that of the question."""
        asked = {key: value for key, value in asdict(self).items() if key not in ("target", "top")}
        found = explain(model, list(texts), target or self.target, batch_size=BATCH, **asked)
        for why in found:
            # Also where it is no number.
            if not why.identity_error <= TOLERANCE:
                raise IdentityBroken(why.identity_error)
        return list(found)

    def written(self, why: Explanation) -> Explained:
        """The explanation with the words that were asked for."""
        listed = why.listed()
        kept = listed.words[: self.top]
        left = listed.words[len(kept) :]
        rest = {"count": len(left), "contribution": math.fsum(word.contribution for word in left)}
        line = replace(listed, words=kept).to_json()
        return Explained(line, json.dumps(rest), why.label, _of_a_class(why))


@dataclass(frozen=True)
class Explain:
    """Why texts get their labels."""

    asking: Asking

    def answer(self, served: ServedModel, items: Sequence[str]) -> list[Explained]:
        """An explanation per text."""
        return [self.asking.written(why) for why in self.asking.of(served.model, items)]


@dataclass(frozen=True)
class Predict:
    """The labels of texts. Their decomposition is checked, though it is not sent."""

    abstain: float | None = None

    def answer(self, served: ServedModel, items: Sequence[str]) -> list[Decided]:
        """A decision per text."""
        asking = Asking(effects=False, places=False, abstain=self.abstain)
        return [_decided(why) for why in asking.of(served.model, items)]


def _decided(why: Explanation) -> Decided:
    fields = {"label": why.label, "probability": why.probability, "probabilities": dict(why.probabilities)}
    return Decided(json.dumps(fields | {"abstained": why.abstained}), why.label, _of_a_class(why))


def _of_a_class(why: Explanation) -> float:
    """Its probability; other models are not served."""
    assert why.probability is not None
    return why.probability


class Changed(NamedTuple):
    """One text's explanations before and after an edit."""

    before: Explained
    after: Explained
    edit: str
    """What the edit does to the model, as JSON; the same for every text."""


@dataclass(frozen=True)
class WhatIf:
    """What texts would get from an edited model. The model itself does not change."""

    edit: Edit
    asking: Asking

    def answer(self, served: ServedModel, items: Sequence[str]) -> list[Changed]:
        """The explanations before and after, for the same label."""
        edited = served.edited(self.edit)
        before = self.asking.of(served.model, items)
        after: dict[int, Explanation] = {}
        for target in dict.fromkeys(why.target for why in before):
            rows = [row for row, why in enumerate(before) if why.target == target]
            found = self.asking.of(edited.model, [items[row] for row in rows], target)
            after.update(zip(rows, found, strict=True))
        write = self.asking.written
        return [Changed(write(why), write(after[row]), edited.effect) for row, why in enumerate(before)]


@dataclass(frozen=True)
class Flip:
    """The fewest words that decisions hang on."""

    to: str | None
    seconds: float
    all_tokens: bool = False
    merge_inflections: bool = False

    def answer(self, served: ServedModel, items: Sequence[str]) -> list[str]:
        """The reasons of each text."""
        shown = {"all_tokens": self.all_tokens, "merge_inflections": self.merge_inflections}
        # Only the clock stops the search: the number of sets is no limit that a person would set.
        found = [find_reasons(served.model, text, self.to, 10**9, self.seconds, **shown) for text in items]
        return [json.dumps(reasons.as_dict()) for reasons in found]


@dataclass(frozen=True)
class Tag:
    """The tags of words."""

    def answer(self, served: ServedModel, items: Sequence[str | Sequence[str]]) -> list[Decided]:
        """The tagged sentences."""
        found = tag(served.model, [list(item) if isinstance(item, tuple) else item for item in items])
        return [Decided(json.dumps(made.as_dict()), " ".join(made.tags), math.nan) for made in found]


@dataclass(frozen=True)
class Lexicon:
    """A page of the table of words. The items are not texts: there is one, and it is ignored."""

    label: str | None = None
    search: str = ""
    offset: int = 0
    top: int = 100

    def answer(self, served: ServedModel, items: Sequence[Any]) -> list[str]:
        """The page, as JSON fields."""
        page = served.lexicon().page(self.label, self.search, self.offset, self.top)
        return [json.dumps(page)] * len(items)


@dataclass(frozen=True)
class Codes:
    """Texts as the explorer reads them: their words, with which a page decides by itself. An item is several texts."""

    def answer(self, served: ServedModel, items: Sequence[tuple[str, ...]]) -> list[str]:
        """The payload of each item's texts."""
        found = (corpus_payload(served.model, Corpus(texts, None), whole_table=False) for texts in items)
        return [json.dumps(payload, allow_nan=False, ensure_ascii=False) for payload in found]
