"""Lexicon files: the words that a model may not use, and those it must keep.

    forbid:
      - muslim
      - "no"        # in quotes: YAML reads a bare no as false
    keep:
      - church

A word includes its case variants and its regular plural or singular (`lexical_sae.intervene.words`). A lexicon that
forbids and keeps the same dimension is refused, so `keep` protects words from generated lists.
"""

import reprlib
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError, model_validator
from pydantic_core import ErrorDetails

from lexical_sae.intervene.suppression import Suppression, suppress_token_globally
from lexical_sae.intervene.word_table import carried_along
from lexical_sae.intervene.words import find_words, opened_to_words, same_word, suppressed_mask
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.persistence import from_pretrained, require_saveable, save_pretrained
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import read_written
from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.strict_yaml import parse_yaml
from lexical_sae.utils.suggest import did_you_mean

LEXICON_FILE = "lexicon.yaml"
"""Name of the file in the folder of an edited model."""


class Lexicon(PartConfig):
    """Words that a model may not use, and words that must stay."""

    forbid: tuple[str, ...] = ()
    """Words to suppress."""
    keep: tuple[str, ...] = ()
    """Words that must not be suppressed by any entry of `forbid`."""

    @model_validator(mode="after")
    def _each_word_once(self) -> "Lexicon":
        uses = Counter(same_word(word) for word in (*self.forbid, *self.keep))
        for word in (*self.forbid, *self.keep):
            if not word.strip():
                raise SettingsError("a word is empty; delete the line")
            if uses[same_word(word)] > 1:
                kept = {same_word(other) for other in self.keep} & {same_word(other) for other in self.forbid}
                place = "under forbid and under keep" if same_word(word) in kept else "twice"
                raise SettingsError(f"{word!r} is listed {place}; list it once")
        return self

    def joined(self, other: "Lexicon") -> "Lexicon":
        """The words of both; refused if one forbids what the other keeps."""
        forbid, keep = ({same_word(w): w for w in mine + yours}.values() for mine, yours in self._pairs(other))
        return Lexicon(forbid=tuple(forbid), keep=tuple(keep))

    def _pairs(self, other: "Lexicon") -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        return (self.forbid, other.forbid), (self.keep, other.keep)

    def to_yaml(self) -> str:
        """The file that `parse_lexicon` reads back as this lexicon."""
        plain = {key: [_Quoted(word) for word in words] for key, words in self.model_dump().items() if words}
        return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def load_lexicon(path: str | Path) -> Lexicon:
    """The lexicon in a YAML file."""
    place = Path(path)
    return parse_lexicon(read_written(place, "lexicon file", "write one with the words under 'forbid:'"), str(place))


def parse_lexicon(text: str, source: str = "<text>") -> Lexicon:
    """The lexicon in YAML text.

    Raises:
        ValueError: Unknown keys, anything but words, or conflicts.
    """
    raw = parse_yaml(text, source)
    if not isinstance(raw, dict):
        raise SettingsError(f"{source}: a lexicon is the keys {_known_keys()} with a list of words each")
    try:
        return Lexicon.model_validate(raw)
    except ValidationError as error:
        raise SettingsError("\n".join(f"{source}: {_explain(item)}" for item in error.errors())) from error


def apply_lexicon(model: LexicalSAE, lexicon: Lexicon) -> Suppression:
    """The suppression of the forbidden words in the model itself; nothing changes if any word is refused."""
    if not lexicon.forbid:
        raise SettingsError("the lexicon forbids no word; list at least one under 'forbid'")
    refuse_conflicts(model, lexicon)
    return suppress_token_globally(model, lexicon.forbid)


def attached_lexicon(folder: str | Path) -> Lexicon | None:
    """The lexicon that a saved model was edited with; None for an unedited model."""
    path = Path(folder).expanduser() / LEXICON_FILE
    return load_lexicon(path) if path.exists() else None


def edit_saved_model(folder: str | Path, lexicon: Lexicon, out: str | Path) -> Suppression:
    """The suppression in a saved copy of a model, with the lexicon attached; earlier edits stay in effect.

    Args:
        folder: The model to edit; it is not changed.
        lexicon: Words to suppress.
        out: Folder for the copy.

    Returns:
        The suppression.

    Example: `edit_saved_model("results/quickstart/model", Lexicon(forbid=("muslim",)), "results/edited")`
    """
    require_other_folder(folder, out)
    model, earlier = from_pretrained(folder), attached_lexicon(folder)
    whole = lexicon if earlier is None else earlier.joined(lexicon)
    done = apply_lexicon(model, whole)
    if not done.newly_closed:
        raise SettingsError(f"every forbidden word is already suppressed in {folder}; there is nothing to do")
    save_pretrained(model, out, attached={LEXICON_FILE: whole.to_yaml(), **carried_along(folder)})
    return done


def require_other_folder(folder: str | Path, out: str | Path) -> None:
    """Raise an error if a model would overwrite its original, or cannot be saved there."""
    if require_saveable(out) == Path(folder).expanduser().resolve():
        raise SettingsError(f"{out} is the model to be edited; save to another folder, so that the original stays")


def refuse_conflicts(model: LexicalSAE, lexicon: Lexicon) -> None:
    """Raise an error if a kept word would be suppressed by a forbidden one, or already is."""
    model = opened_to_words(model, (*lexicon.forbid, *lexicon.keep))
    forbidden, suppressed = find_words(model, lexicon.forbid), suppressed_mask(model)
    for kept in find_words(model, lexicon.keep) if lexicon.keep else ():
        if bool(suppressed[list(kept.dimensions)].all()):
            raise SettingsError(f"the lexicon keeps {kept.word!r}, but it is already suppressed in this model")
        for word in forbidden:
            if common := sorted(set(word.dimensions) & set(kept.dimensions)):
                names = ", ".join(model.dimensions.names(common))
                raise SettingsError(
                    f"the lexicon forbids {word.word!r} and keeps {kept.word!r}, which share the dimensions {names} "
                    "(a word includes its plural and its case variants): remove one of them"
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
    """A word to be written in quotes: YAML would read some bare words as numbers, dates or booleans."""


class _Dumper(yaml.SafeDumper):
    pass


def _in_quotes(dumper: Any, word: _Quoted) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(word), style='"')


_Dumper.add_representer(_Quoted, _in_quotes)
