"""`Explanation`: why a text got its label, as plain frozen data that goes into a JSON file and back.

What it looks like on a screen is the business of `lexical_sae.report`; what is listed by name is decided here
(`Explanation.listed`), for every view and for JSON.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from lexical_sae.data.language import grouped_forms, joined_forms
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.part import first_complaint

FORMAT = 3
FEW_LABELS = 4
"""With more labels than this, views show the runner-up."""
RENAMED = {"strength": "activation", "without": "if_removed", "label_without": "label_if_removed"}
"""Keys of words in format 2, with their names since."""
REVERSED = {"if_removed"}
"""Of these, the sign is reversed: format 2 has how far the sum falls, later ones how it changes."""
"""Version of the JSON; a file of another version is refused. Since 2, word pieces and symbols may be summed."""
PIECE = "piece"
"""Kind of a dimension that is no whole word."""
WORD = "word"
"""Kind of a dimension that is one."""

ABSTAIN = "abstain"
"""The label of a text that the model does not decide on."""

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
Kind = TypeVar("Kind", bound="Explanation")


@dataclass(frozen=True)
class Cause:
    """The word of the text that causes a shift by context: measured by masking it, not proved."""

    __pydantic_config__: ClassVar = STRICT

    word: str
    """As it is written in the text."""
    start: int
    end: int
    """One after the last character."""
    share: float
    """Share of the context part that goes when this word alone is masked."""


@dataclass(frozen=True)
class WordContribution:
    """One active word and its contribution."""

    __pydantic_config__: ClassVar = STRICT

    word: str
    kind: str
    """What the dimension is: a word, a sense of a word, a shape feature, or a piece (a token that is no whole word)."""
    activation: float
    """How active the word is in this text."""
    contribution: float
    """Its contribution to what is explained, by the method of the explanation."""
    start: int | None = None
    """First character of the word of the text that activated it; None where no single word did."""
    end: int | None = None
    """One after the last."""
    is_expansion: bool | None = None
    """Whether it is a related word that is not written there. None where places were not computed."""
    if_removed: float | None = None
    """Exact change of what is explained when this word alone is removed; None where it was not computed."""
    region_changed: bool | None = None
    """Whether that removal switches hidden units, so that `contribution` need not be its effect."""
    label_if_removed: str | None = None
    """The label after that removal."""
    default: float | None = None
    """Its contribution by the table, without context; None for models whose words have no default."""
    cause: Cause | None = None
    """What shifts it; None where nothing does, where no single word does, or where causes were not computed."""

    @property
    def context(self) -> float | None:
        """What context adds to the default, exactly zero for a word that it does not shift; None without a default."""
        return None if self.default is None else self.contribution - self.default


def _merged(words: Sequence[WordContribution]) -> tuple[WordContribution, ...]:
    """The forms of a word as one, the strongest sum first."""
    groups = grouped_forms([word.word if word.kind == WORD else None for word in words])
    made = [_as_one([words[place] for place in group]) for group in groups]
    return tuple(sorted(made, key=lambda word: -abs(word.contribution)))


def _as_one(forms: Sequence[WordContribution]) -> WordContribution:
    """Several forms of a word as one; their places and removal effects are known of each alone."""
    if len(forms) == 1:
        return forms[0]
    defaults = [word.default for word in forms if word.default is not None]
    causes = [word.cause for word in forms if word.context]
    return WordContribution(
        joined_forms(word.word for word in forms),
        WORD,
        math.fsum(word.activation for word in forms),
        math.fsum(word.contribution for word in forms),
        default=math.fsum(defaults) if len(defaults) == len(forms) else None,
        cause=causes[0] if len(causes) == 1 else None,
    )


@dataclass(frozen=True)
class SpanContribution:
    """One word of the text: the contributions of all active words that it activated."""

    __pydantic_config__: ClassVar = STRICT

    text: str
    start: int
    end: int
    """One after the last character."""
    score: float


@dataclass(frozen=True)
class InputWarning:
    """Why the label of a text should not be relied on."""

    __pydantic_config__: ClassVar = STRICT

    kind: str
    """A name for programs, such as unknown_words."""
    message: str
    """The same in a sentence."""


@dataclass(frozen=True)
class Pieces:
    """Active word pieces and symbols, summed instead of named: with them every total stays exact."""

    __pydantic_config__: ClassVar = STRICT

    count: int
    contribution: float
    magnitude: float
    """Sum of `|contribution|`."""
    region_changes: int | None
    """How many of their single removals switch hidden units; None where effects were not computed."""
    label_changes: int | None
    """How many of their single removals change the label."""

    @classmethod
    def of(cls, words: Sequence[WordContribution], label: str) -> "Pieces":
        """The sums over these; `label` is the label decided on."""
        regions = [word.region_changed for word in words if word.region_changed is not None]
        labels = [word.label_if_removed != label for word in words if word.label_if_removed is not None]
        return cls(
            len(words),
            math.fsum(word.contribution for word in words),
            math.fsum(abs(word.contribution) for word in words),
            sum(regions) if regions else None,
            sum(labels) if labels else None,
        )


@dataclass(frozen=True)
class Explanation:
    """One prediction and the words behind it.

    `explained` is the logit of `target` minus the logit of `contrast`, or minus the mean of all logits where there is
    no contrast. All contributions and `bias` sum to it exactly; so do all spans, `whole_text` and `bias`. Where word
    pieces and symbols are summed in `pieces`, its contribution is one of the contributions.
    """

    __pydantic_config__: ClassVar = STRICT

    text: str
    """As the model read it: characters that no tokenizer accepts are replaced."""
    label: str
    """The label decided on; `abstain` where the model does not decide."""
    probability: float
    """Of the most probable label."""
    words: tuple[WordContribution, ...]
    """Every active word, the strongest contribution first; word pieces and symbols too, unless `pieces` sums them."""
    bias: float
    """What is not attributed to words: the input-dependent bias (dla), the decision on the empty text (path), or the
    joint remainder of single removals (leave_one_out)."""
    identity_error: float
    """Relative gap between what is explained and its decomposition; rounding, at most 1e-5."""
    tokens_cut: int
    """Tokens at the end of the text that the model did not see."""
    probabilities: tuple[tuple[str, float], ...]
    """Every label with its probability, in the model's order."""
    target: str
    """The label that contributions are to: the one decided on, unless another was given."""
    contrast: str | None
    """The label that it is compared with; None for the mean of all."""
    method: str
    """How contributions were made: dla, leave_one_out or path."""
    explained: float
    spans: tuple[SpanContribution, ...] | None = None
    """The words of the text in reading order; None where places were not computed."""
    whole_text: float | None = None
    """Contributions of no single word of the text: special positions, and words that many positions activate."""
    not_explained: tuple[str, ...] = ()
    """What this explanation leaves out, in sentences."""
    pieces: Pieces | None = None
    """Word pieces and symbols that are not in `words`; None where there are none."""
    all_tokens: bool = False
    """Whether views and JSON name word pieces and symbols one by one; by default they sum them."""
    merge_inflections: bool = False
    """Whether views and JSON show the forms of a word as one, with their contributions summed."""
    warnings: tuple[InputWarning, ...] = ()
    """What is unusual about the text; nothing for ordinary ones."""
    abstained: str | None = None
    """Why the model does not decide, in a sentence; None where it does."""

    @property
    def most_probable(self) -> str:
        """The label with the greatest probability, also where the model abstains."""
        return self.label if self.abstained is None else max(self.probabilities, key=lambda pair: pair[1])[0]

    @property
    def confidence(self) -> str:
        """The probability beside the label, with the runner-up where there are many labels.

        Example: `93%`; `61%, then sports 22%`; `(most probable: positive 61%)` where the model abstains
        """
        share = f"{self.probability:.0%}"
        if len(self.probabilities) > FEW_LABELS:
            label, probability = self.runner_up
            share += f", then {label} {probability:.0%}"
        return share if self.abstained is None else f"(most probable: {self.most_probable} {share})"

    @property
    def runner_up(self) -> tuple[str, float]:
        """The second most probable label with its probability."""
        return sorted(self.probabilities, key=lambda pair: -pair[1])[1]

    @property
    def cautions(self) -> tuple[str, ...]:
        """The sentences that views put above the words: why there is no decision, or what is unusual."""
        messages = tuple(warning.message for warning in self.warnings)
        return messages if self.abstained is None or self.abstained in messages else (self.abstained, *messages)

    def listed(self: Kind) -> Kind:
        """What views and JSON list: words by name, word pieces and symbols as one sum unless `all_tokens`.

        With `merge_inflections`, the forms of a word are one.
        """
        unnamed = [] if self.all_tokens else [word for word in self.words if word.kind == PIECE]
        if not unnamed and not self.merge_inflections:
            return self
        named = self.words if self.all_tokens else tuple(word for word in self.words if word.kind != PIECE)
        words = _merged(named) if self.merge_inflections else named
        return replace(self, words=words, pieces=Pieces.of(unnamed, self.most_probable) if unnamed else self.pieces)

    @property
    def region_changes(self) -> int | None:
        """How many single removals switch hidden units; None where effects were not computed."""
        changes = [int(word.region_changed) for word in self.words if word.region_changed is not None]
        if self.pieces is not None and self.pieces.region_changes is not None:
            changes.append(self.pieces.region_changes)
        return None if (self.words or self.pieces) and not changes else sum(changes)

    @property
    def bias_share(self) -> float:
        """Share of the bias in all contributions: `|bias| / (|bias| + sum of |contributions|)`."""
        unnamed = self.pieces.magnitude if self.pieces else 0.0
        said = math.fsum(abs(word.contribution) for word in self.words) + unnamed + abs(self.bias)
        return abs(self.bias) / said if said else 0.0

    @property
    def has_defaults(self) -> bool:
        """Whether words have a default that context may shift: those of a model with literal words do."""
        return any(word.default is not None for word in self.words)

    @property
    def context_free_share(self) -> float:
        """Share of the contributions that is free of context: `sum |default| / sum (|default| + |context|)`.

        Zero where words have no defaults: there nothing is known to be free of context.
        """
        free = math.fsum(abs(word.default or 0.0) for word in self.words)
        moved = math.fsum(abs(word.contribution if word.context is None else word.context) for word in self.words)
        return free / (free + moved) if free + moved else 1.0

    def to_json(self) -> str:
        """One line of JSON of what is `listed`, with the version of the format; `from_json` gives that back."""
        fields = {"format": FORMAT, **asdict(self.listed())}
        try:
            line = json.dumps(fields, allow_nan=False)
            # Escaped, half a surrogate pair would pass here and be refused when the line is read.
            json.dumps(fields, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise SavedFileError(
                f"the explanation of {self.text[:50]!r} holds half a surrogate pair, {error.object[error.start]!r}, "
                "which is no character; rename the label or the word that has it"
            ) from error
        except ValueError as error:
            raise SavedFileError(
                f"the explanation of {self.text[:50]!r} holds a number that is not finite, and JSON has none; "
                "check the saved weights, or the training run that made them"
            ) from error
        return line

    @classmethod
    def from_json(cls: type[Kind], line: str) -> Kind:
        """The explanation in a line of JSON; anything missing, added or of another type is refused with its place."""
        try:
            fields: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SavedFileError(f"this is not JSON ({error}); give a line that to_json wrote") from error
        if not isinstance(fields, dict):
            raise SavedFileError(f"an explanation is a JSON object, not {type(fields).__name__}")
        version = fields.pop("format", None)
        if type(version) is int and version == 2:
            fields, version = _from_format_2(fields), FORMAT
        if type(version) is not int or version != FORMAT:
            raise SavedFileError(
                f"the explanation has format {version!r}, and this version reads 2 and {FORMAT}; explain the text again"
            )
        try:
            # Back to text first: strict JSON has no tuples, so there an array may be one.
            plain = TypeAdapter(Explanation).validate_json(json.dumps(fields))
        except ValidationError as error:
            raise SavedFileError(f"the explanation is not as to_json writes it: {first_complaint(error)}") from error
        return cls(**vars(plain))


def _from_format_2(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields under their present names; what is not as that format has it is left for the check to refuse."""

    def renamed(word: Any) -> Any:
        if not isinstance(word, dict):
            return word
        made = {RENAMED.get(key, key): value for key, value in word.items()}
        numbers = {key: made[key] for key in REVERSED & made.keys() if isinstance(made[key], int | float)}
        return {**made, **{key: -value for key, value in numbers.items()}}

    words = fields.get("words")
    return {**fields, "words": list(map(renamed, words))} if isinstance(words, list) else fields


@dataclass(frozen=True)
class WordSet:
    """A set of active words, and what is proved about its size."""

    words: tuple[str, ...] | None
    """The smallest set that was found; None if none was."""
    label: str | None
    """The label that this choice of words leaves."""
    at_least: int
    """No set of fewer words will do: proved."""
    is_minimal: bool
    """Whether it is proved that no smaller set will do."""
    is_impossible: bool
    """Whether it is proved that no set will do."""
    pieces: tuple[str, ...] = ()
    """Those of `words` that are word pieces or symbols."""


@dataclass(frozen=True)
class Reasons:
    """The fewest words that a decision hangs on, and the fewest that are enough for it."""

    text: str
    label: str
    probability: float
    num_words: int
    """Active words of the text."""
    tokens_cut: int
    to: str | None
    """The label that the decision was to change to; None for any other."""
    flip: WordSet
    """Words whose removal changes the decision."""
    enough: WordSet
    """Words that give the decision when all others are removed."""
    all_tokens: bool = False
    """Whether views and JSON name word pieces and symbols; by default they count them."""

    def listed(self, found: WordSet) -> tuple[tuple[str, ...], int]:
        """The words of a set that views and JSON name, and how many word pieces and symbols they only count."""
        words = found.words or ()
        if self.all_tokens:
            return words, 0
        return tuple(word for word in words if word not in found.pieces), len(found.pieces)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `pieces` is how many words of a set are not named."""
        fields = asdict(self)
        for name in ("flip", "enough"):
            words, count = self.listed(getattr(self, name))
            fields[name] |= {"words": None if fields[name]["words"] is None else words, "pieces": count}
        return fields
