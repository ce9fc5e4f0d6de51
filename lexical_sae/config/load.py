"""YAML to a frozen `ExperimentConfig`.

1. The file is parsed with the safe loader; duplicate keys and Python tags are refused.
2. Sections with nothing in them are left out; `seed` and `training.pooling` are written out as what they stand for.
3. Settings of runs from before `anchored` had literal words are read as `neighbours`, the recipe's name now.
4. The file's values override the recipe's defaults; a part of another kind replaces the recipe's part as a whole.
5. The result is validated, an unknown key or value refused with the file, the place and a suggestion.
6. The `vpe` section becomes the model's expander.
"""

import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from lexical_sae.config.schema import DEFAULT_RECIPE, TAGGING_RECIPE, ExperimentConfig
from lexical_sae.models.layers.virtual_expander import VirtualExpander
from lexical_sae.recipes import recipe_by_name
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import read_written
from lexical_sae.utils.plugins import load_plugins
from lexical_sae.utils.strict_yaml import parse_yaml
from lexical_sae.utils.suggest import did_you_mean

Section = dict[str, Any]
POOLING = "training.pooling"
RENAMED = {"optimiser": "optimizer", "tutor": "auxiliary"}
"""Earlier keys of the section `training`."""
SHORT_NAMES = ("seed",)
"""Top-level names a file may use that are written out before validation."""


def load_config(path: str | Path, default_recipe: str = DEFAULT_RECIPE) -> ExperimentConfig:
    """The experiment described by a YAML file; `default_recipe` is that of a file which names none."""
    place = Path(path)
    text = read_written(place, "experiment file", "experiments/ holds examples")
    return parse_config(text, source=str(place), default_recipe=default_recipe)


def parse_config(text: str, source: str = "<text>", default_recipe: str = DEFAULT_RECIPE) -> ExperimentConfig:
    """The experiment described by YAML text; `source` is named in errors."""
    raw = parse_yaml(text, source)
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise SettingsError(f"{source}: an experiment is a mapping of sections, not {type(raw).__name__}")
    try:
        return build_config(raw, default_recipe)
    except ValidationError as error:
        slips = _without_follow_ups(error.errors())
        raise SettingsError("\n".join(f"{_explain(item)} ({source})" for item in slips)) from error
    except ValueError as error:
        raise SettingsError(f"{error} ({source})") from error


def build_config(raw: Mapping[str, Any], default_recipe: str = DEFAULT_RECIPE) -> ExperimentConfig:
    """The experiment described by plain nested values."""
    load_plugins()
    written_out = {"recipe": default_recipe, **_write_out_short_names(_without_empty_sections(raw))}
    written_out = _in_todays_names(written_out)
    recipe = recipe_by_name(written_out["recipe"])
    merged = json.dumps(merge(recipe.model_dump(mode="json"), written_out), default=str)
    # Strict: `train_samples: yes` is a slip, not one row. As JSON, because strictness knows no tuples in plain values.
    return _fold_vpe_into_model(ExperimentConfig.model_validate_json(merged, strict=True))


def merge(defaults: Section, overrides: Section) -> Section:
    """Defaults with overrides, section by section; a part given by its kind alone has no other fields.

    Example: `{"gate": {"kind": "drelu", "offset": True}}` under `{"gate": "drelu"}` stays as it is, and under
    `{"gate": "jumprelu"}` is `{"gate": {"kind": "jumprelu"}}`: fields of one kind mean nothing to another.
    """
    merged = dict(defaults)
    for key, value in overrides.items():
        default = merged.get(key)
        given = {"kind": value} if isinstance(value, str) and isinstance(default, dict) and "kind" in default else value
        if isinstance(default, dict) and isinstance(given, dict) and _same_kind(default, given):
            merged[key] = merge(default, given)
        else:
            merged[key] = given
    return merged


def _same_kind(default: Section, override: Section) -> bool:
    return override.get("kind", default.get("kind")) == default.get("kind")


def _without_empty_sections(raw: Mapping[str, Any]) -> Section:
    """A file without empty sections: `training:` alone sets nothing, an empty variant changes nothing."""
    fields = ExperimentConfig.model_fields.items()
    sections = {"variants", *(name for name, field in fields if _models_in(field.annotation))}
    said = {name: value for name, value in raw.items() if value is not None or name not in sections}
    if isinstance(variants := said.get("variants"), dict):
        said["variants"] = {name: {} if changes is None else changes for name, changes in variants.items()}
    return said


def full_name(key: str, value: Any) -> tuple[str, Any]:
    """A key with dots that may be a short name, as the setting it stands for.

    Example: `("seed", 3)` -> `("evaluation.seeds", [3])`
    """
    if key == "seed":
        if isinstance(value, list):
            raise SettingsError(f"seed is one number; several seeds go to evaluation.seeds: {_yaml(value)}")
        return "evaluation.seeds", [value]
    if key == POOLING or key.startswith(f"{POOLING}."):
        return f"model.pool{key.removeprefix(POOLING)}", value
    return key, value


def _write_out_short_names(raw: Section) -> Section:
    """Replace short names by the fields they stand for."""
    raw = dict(raw)
    if "seed" in raw:
        _put(raw, "seed", raw.pop("seed"))
    training = raw.get("training")
    if isinstance(training, dict) and "pooling" in training:
        rest = {key: value for key, value in training.items() if key != "pooling"}
        raw = {key: value for key, value in raw.items() if key != "training"} | ({"training": rest} if rest else {})
        _put(raw, POOLING, training["pooling"])
    return raw


def _in_todays_names(raw: Section) -> Section:
    """A file's settings under today's names, so that runs of earlier versions still open.

    `anchored` with neighbourhoods is called `neighbours` now. This is inferred only where every part is written out, as
    in `resolved_config.yaml`: a file by hand means today's `anchored`.
    """
    if isinstance(training := raw.get("training"), dict):
        raw = {**raw, "training": {RENAMED.get(key, key): value for key, value in training.items()}}
    parts = raw.get("model")
    if raw["recipe"] != DEFAULT_RECIPE or not isinstance(parts, dict):
        return raw
    is_whole = all(isinstance(parts.get(name), dict) for name in ("gate", "saturation", "pool", "head"))
    return {**raw, "recipe": TAGGING_RECIPE} if is_whole and parts.get("literal") is None else raw


def _fold_vpe_into_model(config: ExperimentConfig) -> ExperimentConfig:
    """The `vpe` section written out as the model's expander, so that a model is built from `config.model` alone."""
    if not config.vpe.enabled:
        return config
    if config.model.literal is not None:
        raise SettingsError(
            "vpe splits words that are activated from logits, and literal words are not; set recipe: neighbours"
        )
    expander = VirtualExpander.Config(token_ids=config.vpe.token_ids, num_senses=config.vpe.num_senses)
    if config.model.expander not in (None, expander):
        raise SettingsError("vpe and model.expander are both given and differ; keep one")
    return config.model_copy(update={"model": config.model.model_copy(update={"expander": expander})})


def _put(raw: Section, short: str, value: Any) -> None:
    key, value = full_name(short, value)
    section, field = key.split(".")
    existing = raw.get(section) or {}
    if not isinstance(existing, dict):
        raise SettingsError(f"{section} is a section of settings, not {existing!r}")
    if field in existing and existing[field] != value:
        raise SettingsError(f"{short} and {section}.{field} are both given and differ; keep one")
    raw[section] = {**existing, field: value}


def _without_follow_ups(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """The errors less those of a whole whose parts have errors: bad seeds are dropped, then there are too few."""
    wholes = {error["loc"][:length] for error in errors for length in range(len(error["loc"]))}
    return [error for error in errors if error["loc"] not in wholes]


def _explain(error: ErrorDetails) -> str:
    """One validation error as a sentence with value, place and remedy."""
    names, siblings, owners = _place(error["loc"])
    if len(names) == 1:
        siblings = [*siblings, *SHORT_NAMES]
    place = ".".join(names)
    if not place:
        # About two sections together; the message names both.
        return error["msg"].removeprefix("Value error, ")
    match error["type"]:
        case "extra_forbidden":
            others = [name for name in siblings if name != names[-1]]
            return f"{place} is unknown{did_you_mean(names[-1], others)} Known keys: {', '.join(others)}"
        case "union_tag_invalid":
            context = error.get("ctx", {})
            return f"{place}.kind {context.get('tag')!r} is unknown; choose from {context.get('expected_tags')}"
        case "model_type" | "model_attributes_type" | "dict_type":
            remedy = f"it is a section of settings, as in {place}: {_as_section(error['input'], owners)}"
        case "tuple_type":
            remedy = f"it is a list, as in {place}: {_yaml([] if error['input'] is None else [error['input']])}"
        case "too_short":
            remedy = f"give at least {error.get('ctx', {}).get('min_length')}"
        case _:
            remedy = error["msg"].removeprefix("Value error, ")
    return f"{place} is {reprlib.repr(error['input'])}: {remedy}"


def _as_section(value: Any, owners: list[type[BaseModel]]) -> str:
    """How a section is written that was given as a bare value: its first key, with that value or the default.

    Example: `data: reviews.csv` -> "{dataset_name: reviews.csv}"; `data: 3` -> "{dataset_name: movie_snippets}"
    """
    if owners and (kind := _kind_of(owners[0])):
        return _yaml({"kind": kind})
    for key, field in (owners[0].model_fields if owners else {}).items():
        # Not a field that is null by default: that would not show what may stand there.
        if field.default is not None and not field.is_required():
            return _yaml({key: value if type(value) is type(field.default) else field.default})
    return "{key: value}"


def _yaml(value: Any) -> str:
    """A value on one line of YAML, cut where it is long."""
    plain = json.loads(json.dumps(value, default=str))
    line = yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True, width=math.inf).strip()
    return f"{line:.100}"


def _place(location: tuple[int | str, ...]) -> tuple[list[str], list[str], list[type[BaseModel]]]:
    """An error's location as a file spells it, the keys that are known beside its last name, the models below it.

    pydantic puts the kind of a union into the location (`gate.drelu.offset`); a file does not.
    """
    names: list[str] = []
    owners: list[type[BaseModel]] = [ExperimentConfig]
    siblings: list[str] = []
    for part in location:
        of_kind = [owner for owner in owners if _kind_of(owner) == part]
        if of_kind:
            owners = of_kind
            continue
        names.append(str(part))
        siblings = sorted({name for owner in owners for name in owner.model_fields})
        owners = _owners_below(owners, part)
    return names, siblings, owners


def _owners_below(owners: list[type[BaseModel]], part: int | str) -> list[type[BaseModel]]:
    if isinstance(part, int):
        return owners  # A place in a list: its parts are those of the field.
    fields = [owner.model_fields[part] for owner in owners if part in owner.model_fields]
    return [model for field in fields for model in _models_in(field.annotation)]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _kind_of(owner: type[BaseModel]) -> str | None:
    field = owner.model_fields.get("kind")
    return field.default if field else None
