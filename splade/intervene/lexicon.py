"""The lexicon of a model as a file that people edit: which words it may not use, and which it must keep.

    forbid:
      - muslim
      - "no"        # in quotes: YAML reads a bare no as false
    keep:
      - church

A word stands for its case variants and its regular plural or singular too (`splade.intervene.words`). `keep` protects:
a lexicon that forbids and keeps the same dimension is refused, so a list made by a program cannot take a word too many.
"""

import reprlib
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError, model_validator
from pydantic_core import ErrorDetails

from splade.files import read_written
from splade.intervene.suppression import Suppression, suppress_token_globally
from splade.intervene.word_table import carried_along
from splade.intervene.words import find_words, opened_to_words, same_word, suppressed_mask
from splade.models.lexical_sae import LexicalSAE
from splade.models.persistence import from_pretrained, require_saveable, save_pretrained
from splade.part import PartConfig
from splade.strict_yaml import parse_yaml
from splade.suggest import did_you_mean

LEXICON_FILE = "lexicon.yaml"
"""Name of the file in the folder of an edited model."""


class Lexicon(PartConfig):
    """Words that a model may not use, and words that must stay."""

    forbid: tuple[str, ...] = ()
    """Words to close for good."""
    keep: tuple[str, ...] = ()
    """Words that nothing in `forbid` may close."""

    @model_validator(mode="after")
    def _each_word_once(self) -> "Lexicon":
        uses = Counter(same_word(word) for word in (*self.forbid, *self.keep))
        for word in (*self.forbid, *self.keep):
            if not word.strip():
                raise ValueError("a word is empty; take the line out")
            if uses[same_word(word)] > 1:
                kept = {same_word(other) for other in self.keep} & {same_word(other) for other in self.forbid}
                place = "under forbid and under keep" if same_word(word) in kept else "twice"
                raise ValueError(f"{word!r} is listed {place}; list it once")
        return self

    def joined(self, other: "Lexicon") -> "Lexicon":
        """The words of both; a word that one forbids and the other keeps is refused."""
        forbid, keep = ({same_word(w): w for w in mine + yours}.values() for mine, yours in self._pairs(other))
        return Lexicon(forbid=tuple(forbid), keep=tuple(keep))

    def _pairs(self, other: "Lexicon") -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        return (self.forbid, other.forbid), (self.keep, other.keep)

    def to_yaml(self) -> str:
        """The file that `parse_lexicon` reads back as this lexicon."""
        plain = {key: [_Quoted(word) for word in words] for key, words in self.model_dump().items() if words}
        return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def load_lexicon(path: str | Path) -> Lexicon:
    """The lexicon that a YAML file holds."""
    place = Path(path)
    return parse_lexicon(read_written(place, "lexicon file", "write one with the words under 'forbid:'"), str(place))


def parse_lexicon(text: str, source: str = "<text>") -> Lexicon:
    """The lexicon that YAML text holds; unknown keys, anything but words, and conflicts are refused."""
    raw = parse_yaml(text, source)
    if not isinstance(raw, dict):
        raise ValueError(f"{source}: a lexicon is the keys {_known_keys()} with a list of words each")
    try:
        return Lexicon.model_validate(raw)
    except ValidationError as error:
        raise ValueError("\n".join(f"{source}: {_explain(item)}" for item in error.errors())) from error


def apply_lexicon(model: LexicalSAE, lexicon: Lexicon) -> Suppression:
    """Close the forbidden words in the model's gate, for good; what cannot be done is refused before anything is."""
    if not lexicon.forbid:
        raise ValueError("the lexicon forbids no word; list at least one under 'forbid'")
    refuse_conflicts(model, lexicon)
    return suppress_token_globally(model, lexicon.forbid)


def attached_lexicon(folder: str | Path) -> Lexicon | None:
    """The lexicon that a saved model was edited by; None for a model as it was trained."""
    path = Path(folder).expanduser() / LEXICON_FILE
    return load_lexicon(path) if path.exists() else None


def edit_saved_model(folder: str | Path, lexicon: Lexicon, out: str | Path) -> Suppression:
    """Save a copy of a model without the forbidden words, the lexicon attached; the words of earlier edits stay closed.

    Example: `edit_saved_model("results/quickstart/model", Lexicon(forbid=("muslim",)), "results/edited")`
    """
    require_other_folder(folder, out)
    model, earlier = from_pretrained(folder), attached_lexicon(folder)
    whole = lexicon if earlier is None else earlier.joined(lexicon)
    done = apply_lexicon(model, whole)
    if not done.newly_closed:
        raise ValueError(f"every forbidden word is closed in {folder} already; there is nothing to remove")
    save_pretrained(model, out, attached={LEXICON_FILE: whole.to_yaml(), **carried_along(folder)})
    return done


def require_other_folder(folder: str | Path, out: str | Path) -> None:
    """An error if a model would be saved over the one that it was made of, or where none can be saved."""
    if require_saveable(out) == Path(folder).expanduser().resolve():
        raise ValueError(f"{out} is the model to be edited; save to another folder, so that there is a way back")


def refuse_conflicts(model: LexicalSAE, lexicon: Lexicon) -> None:
    """An error if a word that the lexicon keeps would be closed by one that it forbids, or is closed already."""
    model = opened_to_words(model, (*lexicon.forbid, *lexicon.keep))
    forbidden, suppressed = find_words(model, lexicon.forbid), suppressed_mask(model)
    for kept in find_words(model, lexicon.keep) if lexicon.keep else ():
        if bool(suppressed[list(kept.dimensions)].all()):
            raise ValueError(f"the lexicon keeps {kept.word!r}, but this model has it closed already")
        for word in forbidden:
            if common := sorted(set(word.dimensions) & set(kept.dimensions)):
                names = ", ".join(model.dimensions.names(common))
                raise ValueError(
                    f"the lexicon forbids {word.word!r} and keeps {kept.word!r}, which share the dimensions {names} "
                    "(a word stands for its plural and its case variants too): take one of them out"
                )


def _explain(error: ErrorDetails) -> str:
    place = ".".join(str(part) for part in error["loc"])
    match error["type"], error["loc"]:
        case "extra_forbidden", _:
            return f"{place} is unknown{did_you_mean(place, Lexicon.model_fields)} Known keys: {_known_keys()}"
        case "string_type", (key, int(index)):
            read = reprlib.repr(error["input"])
            return f'word {index + 1} under {key} reads as {read}, not as a word; put it in quotes, as in - "no"'
        case "tuple_type", (key,):
            return f"{key} is {reprlib.repr(error['input'])}, not a list of words; write one word per line after '- '"
        case _:
            return error["msg"].removeprefix("Value error, ")


def _known_keys() -> str:
    return ", ".join(Lexicon.model_fields)


class _Quoted(str):
    """A word, written in quotes: bare, YAML would read some as numbers, dates or truth values."""


class _Dumper(yaml.SafeDumper):
    pass


def _in_quotes(dumper: Any, word: _Quoted) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(word), style='"')


_Dumper.add_representer(_Quoted, _in_quotes)
