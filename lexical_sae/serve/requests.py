"""What clients send, checked on arrival and written into the OpenAPI document.

Limits on sizes depend on the service, and are read from the context of the validation.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lexical_sae.serve.problems import Problem
from lexical_sae.serve.settings import Limits
from lexical_sae.utils.suggest import did_you_mean

Info = Any
"""What pydantic hands to a check; its own type is none that can be checked."""
LONGEST_WORD = 200
HIGHEST_TOP = 50_000


def _fits(text: str, info: Info) -> str:
    limits: Limits | None = info.context
    if limits is not None and len(text) > limits.characters:
        raise ValueError(
            f"the text has {len(text):,} characters, and this service reads {limits.characters:,} of one text; "
            "cut it into parts"
        )
    return text


def _few(texts: list[Any], info: Info) -> list[Any]:
    limits: Limits | None = info.context
    if limits is not None and len(texts) > limits.texts:
        raise ValueError(
            f"there are {len(texts):,} texts, and a request may hold {limits.texts}; send them in several requests"
        )
    count = sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts)
    if limits is not None and count > limits.all_characters:
        raise ValueError(
            f"the texts have {count:,} characters together, and a request may hold {limits.all_characters:,}; send "
            "them in several requests"
        )
    return texts


def _few_words(words: Any, info: Info) -> Any:
    limits: Limits | None = info.context
    if limits is not None and len(words) > limits.words:
        raise ValueError(f"there are {len(words):,} words, and a request may name {limits.words}")
    return words


def _brief(seconds: float, info: Info) -> float:
    limits: Limits | None = info.context
    if limits is not None and seconds > limits.flip_seconds:
        raise ValueError(f"{seconds:g} seconds are more than the {limits.flip_seconds:g} that this service searches")
    return seconds


Text = Annotated[str, AfterValidator(_fits)]
Texts = Annotated[list[Text], Field(min_length=1), AfterValidator(_few)]
Word = Annotated[str, Field(min_length=1, max_length=LONGEST_WORD)]
Sentence = Text | Annotated[list[Annotated[str, Field(max_length=LONGEST_WORD)]], Field(max_length=2000)]


class Asked(BaseModel):
    """A request: unknown keys and other types are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class HowToExplain(Asked):
    """How decisions are to be explained."""

    target: str | None = None
    """Label to explain; by default the one decided on."""
    contrast: str | None = None
    """Label to contrast it with; by default the mean of all."""
    method: Literal["dla", "path", "leave_one_out"] = "dla"
    top: int | None = Field(default=None, ge=1, le=HIGHEST_TOP)
    """List so many words, the strongest first; `rest` sums the others."""
    effects: bool = True
    """Whether to compute the exact effect of removing each word."""
    places: bool = True
    """Whether to say where in the text each word is."""
    causes: bool = False
    """Whether to measure which word causes each shift by context. Reads the text once per word: slow."""
    abstain: float | None = Field(default=None, gt=0, lt=1)
    """An accuracy such as 0.95: where it is not reached on validation texts, there is no decision."""
    all_tokens: bool = False
    """Whether to name word pieces and symbols one by one."""
    merge_inflections: bool = False
    """Whether the forms of a word (film, films) are one."""


class OfModel(Asked):
    """A request to one of the models."""

    model: str | None = None
    """Its name; may be left out where the service has one model."""


class ExplainRequest(OfModel, HowToExplain):
    """Why do these texts get their labels?"""

    texts: Texts


Weights = dict[Word, Annotated[dict[str, float], Field(min_length=1)]]


class WhatIfRequest(OfModel, HowToExplain):
    """What would these texts get, were some words suppressed or weighted otherwise?"""

    texts: Texts
    suppress: Annotated[list[Word], AfterValidator(_few_words)] = []
    """Words to suppress, each with its case variants and its plural or singular."""
    set: Annotated[Weights, AfterValidator(_few_words)] = {}
    """Class-centred weights by word and label, of models whose words are literal. Labels that are left out share the
    opposite change."""


class FlipRequest(OfModel):
    """Which are the fewest words that this decision hangs on?"""

    text: Text
    to: str | None = None
    """The label to change to; by default any other."""
    seconds: Annotated[float, Field(gt=0), AfterValidator(_brief)] = 1.0
    """Time for each of the two searches."""
    all_tokens: bool = False
    merge_inflections: bool = False


class CodesRequest(OfModel):
    """Which words do these texts consist of?"""

    texts: Texts


class TagRequest(OfModel):
    """What are these words names of?"""

    texts: Annotated[list[Sentence], Field(min_length=1), AfterValidator(_few)]
    """Texts, or lists of words."""


class LexiconQuery(BaseModel):
    """A page of the table of words."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    model: str | None = None
    """Name of the model; may be left out where the service has one."""
    label: str | None = None
    """Sort by the weight for this label; by default by the largest |weight|."""
    search: str = Field(default="", max_length=LONGEST_WORD)
    """Only words that contain this."""
    offset: int = Field(default=0, ge=0, le=2**31)
    top: int = Field(default=100, ge=1, le=HIGHEST_TOP)


class PredictParameters(Asked):
    """How decisions are to be made."""

    abstain: float | None = Field(default=None, gt=0, lt=1)


class KServePredict(Asked):
    """KServe's form of a request for predictions."""

    instances: Texts
    parameters: PredictParameters = PredictParameters()


class KServeExplain(Asked):
    """KServe's form of a request for explanations."""

    instances: Texts
    parameters: HowToExplain = HowToExplain()


def parsed(schema: type[Asked], body: bytes, limits: Limits) -> Any:
    """A request from its body; what is not as the schema has it is refused with its place."""
    try:
        return schema.model_validate_json(body, context=limits)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        if first["type"] == "json_invalid":
            raise Problem(400, f"The body is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}.") from error
        raise Problem(422, _sentence(schema, first)) from error


def parsed_query(query: dict[str, str]) -> LexiconQuery:
    """The same for the words of an address."""
    try:
        return LexiconQuery.model_validate(query)
    except ValidationError as error:
        raise Problem(422, _sentence(LexiconQuery, error.errors(include_url=False)[0])) from error


def _sentence(schema: type[BaseModel], first: Any) -> str:
    place = ".".join(str(part) for part in first["loc"]) or "the body"
    if first["type"] == "extra_forbidden":
        fields = schema.model_fields
        inner = fields[first["loc"][0]].annotation if len(first["loc"]) > 1 and first["loc"][0] in fields else schema
        known = inner.model_fields if isinstance(inner, type) and issubclass(inner, BaseModel) else fields
        return f"{place} is unknown{did_you_mean(str(first['loc'][-1]), known)} Known keys: {', '.join(known)}."
    return f"{place}: {first['msg'].removeprefix('Value error, ')}."
