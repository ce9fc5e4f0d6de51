"""`Explanation`: why a text got its label, as plain frozen data that goes into a JSON file and back.

What it looks like on a screen is the business of `lexical_sae.report`; what is listed by name is decided here
(`Explanation.listed`), for every view and for JSON.
"""

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, TypeVar

from pydantic import TypeAdapter, ValidationError

from lexical_sae.explanation.words import PIECE, STRICT, Pieces, SpanContribution, WordContribution, merged
from lexical_sae.outputs import CLASSES, OUTPUTS
from lexical_sae.outputs.classes import runner_up
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.part import first_complaint

FORMAT = 3
"""Version of the JSON; of earlier ones only 2 is read. Since 2, word pieces and symbols may be summed."""
RENAMED = {"strength": "activation", "without": "if_removed", "label_without": "label_if_removed"}
"""Keys of words in format 2, with their names since."""
REVERSED = {"if_removed"}
"""Of these, the sign is reversed: format 2 has how far the sum falls, later ones how it changes."""
ABSTAIN = "abstain"
"""The label of a text that the model does not decide on."""

Kind = TypeVar("Kind", bound="Explanation")


@dataclass(frozen=True)
class InputWarning:
    """Why the label of a text should not be relied on."""

    __pydantic_config__: ClassVar = STRICT

    kind: str
    """A name for programs, such as unknown_words."""
    message: str
    """The same in a sentence."""


@dataclass(frozen=True)
class Explanation:
    """One prediction and the words behind it.

    `explained` is the logit of `target` minus the logit of `contrast`, or minus the mean of all logits where there is
    no contrast; for the other output kinds, the label's own logit, or the number. All contributions and `bias` sum to
    it exactly; so do all spans, `whole_text` and `bias`. Where word pieces and symbols are summed in `pieces`, its
    contribution is one of the contributions.
    """

    __pydantic_config__: ClassVar = STRICT

    text: str
    """As the model read it: characters that no tokenizer accepts are replaced."""
    label: str
    """The label decided on; `abstain` where the model does not decide. Or the labels, or the number, as written."""
    probability: float | None
    """Of the most probable label; where texts have any number of labels, of `target`; None for a number."""
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
    output: str = CLASSES.kind
    """What the model gives a text: one label of several (classes), any number of labels, or a number."""

    @property
    def most_probable(self) -> str:
        """The label with the greatest probability, also where the model abstains."""
        return self.label if self.abstained is None else max(self.probabilities, key=lambda pair: pair[1])[0]

    @property
    def confidence(self) -> str:
        """The probability beside the label, with the runner-up where there are many labels.

        Example: `93%`; `61%, then sports 22%`; `(most probable: positive 61%)` where the model abstains
        """
        share = OUTPUTS[self.output].confidence(self.target, self.probability, self.probabilities)
        return share if self.abstained is None else f"(most probable: {self.most_probable} {share})"

    @property
    def runner_up(self) -> tuple[str, float]:
        """The second most probable label with its probability."""
        return runner_up(self.probabilities)

    @property
    def headline(self) -> str:
        """The decision with what is most probable, for titles. Example: `positive 93%`"""
        share = "" if self.probability is None else f" {self.probability:.0%}"
        return f"{self.most_probable}{share}"

    @property
    def unit(self) -> str:
        """What contributions are in, as the end of a sentence; empty where it is the number itself."""
        return OUTPUTS[self.output].logit_unit

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
        words = merged(named) if self.merge_inflections else named
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
    def has_shifts(self) -> bool:
        """Whether context shifts a word from its default."""
        return any(word.context for word in self.words)

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
        if self.output == CLASSES.kind:
            # As all earlier versions of this format have it.
            del fields["output"]
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
