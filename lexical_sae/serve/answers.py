"""What clients get, for the OpenAPI document: a lane makes the JSON, and tests hold it to these classes."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, StrictFloat, StrictStr

from lexical_sae.explanation import FORMAT, Explanation


@dataclass(frozen=True, kw_only=True)
class WrittenExplanation(Explanation):
    """An explanation as `Explanation.to_json` writes it, and `Explanation.from_json` reads it back."""

    format: Literal[3] = FORMAT


class Said(BaseModel):
    """Part of an answer."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class ModelRef(Said):
    """The model that answered."""

    name: StrictStr
    sha256: StrictStr
    """Of the saved model: its settings, labels, weights and tokenizer."""


class Answer(Said):
    """What every answer of a model holds."""

    model: ModelRef
    format: int
    """Version of the JSON of explanations."""
    request_id: StrictStr


class Rest(Said):
    """Words that `top` left out."""

    count: int
    contribution: StrictFloat


class ExplainAnswer(Answer):
    """Explanations in the order of the texts."""

    explanations: list[WrittenExplanation]
    rest: list[Rest]


class SuppressedWord(Said):
    """A suppressed word with the names of its dimensions."""

    word: str
    dimensions: list[str]


class ChangedWord(Said):
    """A word whose weights were set, class-centred, by label."""

    word: str
    before: dict[str, float]
    after: dict[str, float]


class WhatIfAnswer(Answer):
    """Explanations before and after, for the same label."""

    before: list[WrittenExplanation]
    after: list[WrittenExplanation]
    rest_before: list[Rest]
    rest_after: list[Rest]
    suppressed: list[SuppressedWord]
    changed: list[ChangedWord]


class FoundSet(Said):
    """A set of words, and what is proved about its size."""

    words: list[str] | None
    label: str | None
    at_least: int
    is_minimal: bool
    is_impossible: bool
    pieces: int


class FoundReasons(Said):
    """The fewest words that a decision hangs on, and the fewest that are enough for it."""

    text: str
    label: str
    probability: float
    num_words: int
    tokens_cut: int
    to: str | None
    flip: FoundSet
    enough: FoundSet
    all_tokens: bool


class FlipAnswer(Answer):
    """The fewest words, with proof."""

    reasons: FoundReasons


class CodesAnswer(Answer):
    """Texts as the explorer reads them."""

    codes: dict[str, Any]


class NamedEntity(Said):
    """A name: `start` and `end` count words, `characters` characters."""

    type: str
    start: int
    end: int
    text: str
    characters: tuple[int, int]


class Tagged(Said):
    """A text with the tags of its words (IOB2)."""

    text: str
    words: list[str]
    tags: list[str]
    entities: list[NamedEntity]


class TagAnswer(Answer):
    """Tagged texts in their order."""

    sentences: list[Tagged]


class LexiconWord(Said):
    """A word with its class-centred weights, in the order of the labels."""

    word: str
    weights: list[float] | None
    texts: int | None
    """Training texts with it, if known."""
    suppressed: bool


class LexiconAnswer(Answer):
    """A page of the table."""

    labels: list[str]
    total: int
    """Words that match, on all pages."""
    words: list[LexiconWord]


class Prediction(Said):
    """The label of a text."""

    label: str
    probability: float
    """Of the most probable label."""
    probabilities: dict[str, float]
    abstained: str | None
    """Why there is no decision, in a sentence."""


class PredictAnswer(Answer):
    """Predictions in the order of the instances."""

    predictions: list[Prediction]


class CorpusState(Said):
    """The texts given with `--data`."""

    name: str
    texts: int
    labelled: bool
    state: Literal["making", "ready", "failed"]
    done: float
    """Share that is read."""
    detail: str | None = None
    """Why it failed."""


class Measures(Said):
    """A table of what was measured: rows of name, value and remark."""

    heading: str
    rows: list[list[Any]]


class ModelDescription(Said):
    """A model of the service."""

    name: str
    sha256: str
    format: int
    ready: bool
    tasks: list[str]
    labels: list[str]
    tags: list[str]
    max_length: int
    """In tokens."""
    words_are_literal: bool
    """Whether the model is a table of words: the lexicon and `set` need one."""
    has_context: bool
    is_calibrated: bool
    temperature: float
    bias: dict[str, float] | None
    """Class-centred; null unless words are literal."""
    suppressed: list[str]
    """Words that the lexicon saved with the model forbids."""
    about: str
    """The run that trained it, in a sentence; empty for a model without its run."""
    address: str
    """What to call it on the command line."""
    accuracies: list[list[Any]]
    """Rows of name, value and remark."""
    measures: list[Measures]
    corpus: CorpusState | None


class DescribedModel(ModelDescription):
    """One model."""

    request_id: str


class StatedLimits(Said):
    """What a request may hold."""

    body_bytes: int
    texts: int
    characters: int
    words: int
    seconds: float
    flip_seconds: float


class ModelsAnswer(Said):
    """The models of the service."""

    models: list[ModelDescription]
    limits: StatedLimits
    version: str
    request_id: str


class Health(Said):
    """The process lives."""

    status: Literal["ok"]


class Ready(Said):
    """Questions are answered."""

    ready: Literal[True]


class ProblemDocument(Said):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    """A sentence that says what is wrong, and what to do."""
    request_id: str
