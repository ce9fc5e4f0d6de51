"""An experiment file that describes several experiments: variants of one, or the same on several data sets.

A variant is a name and what it changes, as keys with dots, over the file's settings. All are made and checked
before anything is trained. One that names another recipe is that recipe with the rest of the file.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml

from lexical_sae.config.load import full_name, merge, parse_config
from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.data.tables.formats import is_data_file, stem_of
from lexical_sae.models.config import GateConfig
from lexical_sae.recipes import RECIPES
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import read_written
from lexical_sae.utils.strict_yaml import parse_yaml
from lexical_sae.utils.suggest import did_you_mean

Changes = Mapping[str, Any]
TERMS = "training.objective.terms"
OTHER_COMPLETENESS = {"completeness_kl": "completeness_ce", "completeness_ce": "completeness_kl"}
HELD = 1e-6
"""A clamp on log lambda that leaves lambda at 1: the cross-entropy has a fixed weight."""


@dataclass(frozen=True)
class Variant:
    """One experiment of several."""

    name: str
    changes: Changes
    """Values by key, as the file gives them."""
    config: ExperimentConfig


@dataclass(frozen=True)
class Study:
    """Several experiments that belong together; the first is what the others are compared with."""

    config: ExperimentConfig
    """What they share, `datasets` and `variants` included."""
    variants: tuple[Variant, ...]
    is_paired: bool
    """Whether all are tested on the same texts."""


def load_variants(
    path: str | Path,
    standard: Callable[[ExperimentConfig], Mapping[str, Changes]],
    *,
    kind: str,
    base: Callable[[ExperimentConfig], str] = lambda _: "base",
    out: str | Path | None = None,
) -> Study:
    """The experiment of a file under the name `base`, and its variants, each in a folder of its own in `output_dir`.

    A file that names no variants is that of a run: it gets the `standard` ones, in the folder `kind` of its own.
    `out` takes the place of either folder.
    """
    file = _ExperimentFile.read(path, out)
    config = file.config()
    if not config.variants and out is None:
        file = _ExperimentFile.read(path, Path(config.output_dir) / kind)
        config = file.config()
    if config.datasets:
        raise SettingsError(f"{path} names several data sets; run it with `lexical-sae multi-dataset`")
    variants, name = config.variants or standard(config), base(config)
    if name in variants:
        raise SettingsError(
            f"variants.{name} is taken: so is called what the file itself describes; rename it ({path})"
        )
    _require_data_unchanged(variants, str(path))
    return Study(config, file.variants({name: {}, **variants}), is_paired=True)


def load_datasets(path: str | Path, out: str | Path | None = None) -> Study:
    """The experiment of a file on each of its `datasets`; `variants` say what is particular to one of them."""
    file = _ExperimentFile.read(path, out)
    config = file.config()
    if not config.datasets:
        raise SettingsError(f"{path} names no data sets; list them, as in datasets: [sst2, ag_news]")
    for name in config.variants:
        if name not in config.datasets:
            raise SettingsError(f"variants.{name} is no data set of {path}{did_you_mean(name, config.datasets)}")
    changes = {name: {"data.dataset_name": name, **config.variants.get(name, {})} for name in config.datasets}
    return Study(config, file.variants(changes), is_paired=False)


def with_changes(config: ExperimentConfig, changes: Changes, source: str = "the sweep") -> ExperimentConfig:
    """The settings with some of them changed, as if the experiment's file said so.

    Parts of a list are named by their kind or counted from 0, and taken out with null:
    `{"training.objective.terms.completeness_kl": None, "training.objective.terms.0.weight": 0.2}`.
    """
    settings = json.loads(config.model_dump_json())
    if config.vpe.enabled:
        # The vpe section wrote it, and will again: with the new value, if that is the key.
        settings["model"]["expander"] = None
    named = _under_full_names(changes)
    # Another kind takes its section's fields with it, so it comes before what is said of the new ones.
    for key in sorted(named, key=lambda key: not _is_kind_of_section(settings, key.split("."))):
        settings = _changed(settings, key.split("."), named[key], key)
    return parse_config(yaml.safe_dump(settings, sort_keys=False), source=source)


def _under_full_names(changes: Changes) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for short, value in changes.items():
        key, own = full_name(short, value)
        if key in named:
            raise SettingsError(f"{key} is given twice, once under the short name; keep one")
        named[key] = own
    return named


def _is_kind_of_section(settings: Any, names: Sequence[str]) -> bool:
    """Whether a key names the kind of a section, not of a part in a list."""
    for name in names[:-1]:
        settings = settings.get(name) if isinstance(settings, dict) else None
    return names[-1] == "kind" and isinstance(settings, dict)


def _changed(section: Any, names: Sequence[str], value: Any, key: str) -> Any:
    if not names:
        return merge({key: section}, {key: value})[key]
    name, *rest = names
    if isinstance(section, list):
        at = _place(section, name, key)
        # What terms share, such as a weight, outlasts another kind.
        item = {**section[at], "kind": value} if rest == ["kind"] else _changed(section[at], rest, value, key)
        return [*section[:at], *([] if item is None else [item]), *section[at + 1 :]]
    if names == ["kind"] and isinstance(section, dict):
        # Fields of another kind would mean nothing to it.
        return merge({key: section}, {key: {"kind": value}})[key]
    if section is None or isinstance(section, dict):
        known = section or {}
        return {**known, name: _changed(known.get(name), rest, value, key)}
    raise SettingsError(f"{key} is unknown: there is no {name!r} in {section!r}")


def _place(parts: Sequence[Any], name: str, key: str) -> int:
    """Where a part stands in a list, by its number or its kind."""
    kinds = [part.get("kind") if isinstance(part, dict) else None for part in parts]
    if name.isdecimal() and int(name) < len(parts):
        return int(name)
    if name in kinds:
        return kinds.index(name)
    known = [kind for kind in kinds if kind]
    raise SettingsError(f"{key} is unknown: there is no {name!r} in {known or list(parts)}{did_you_mean(name, known)}")


@dataclass(frozen=True)
class _ExperimentFile:
    """A file's settings, before a recipe's defaults are added."""

    said: dict[str, Any]
    source: str

    @classmethod
    def read(cls, path: str | Path, out: str | Path | None) -> "_ExperimentFile":
        text = read_written(Path(path), "experiment file", "experiments/ holds examples")
        said = parse_yaml(text, str(path)) or {}
        # A file that is no mapping is refused here, in words.
        parse_config(text, str(path))
        return cls({**said, **({} if out is None else {"output_dir": str(out)})}, str(path))

    def config(self, **others: Any) -> ExperimentConfig:
        return parse_config(yaml.safe_dump({**self.said, **others}, sort_keys=False), self.source)

    def variants(self, changes: Mapping[str, Changes]) -> tuple[Variant, ...]:
        made = [self._variant(name, dict(own)) for name, own in changes.items()]
        folders = [variant.config.output_dir for variant in made]
        for variant in made:
            if folders.count(variant.config.output_dir) > 1:
                raise SettingsError(f"{variant.name!r} and another would share a folder; rename one ({self.source})")
        return tuple(made)

    def _variant(self, name: str, changes: dict[str, Any]) -> Variant:
        source = f"{self.source}, {name!r}"
        for key in changes:
            if key.split(".")[0] in ("datasets", "variants", "output_dir"):
                raise SettingsError(f"{key} is for the file as a whole, not for one of its experiments ({source})")
        recipe = {"recipe": changes["recipe"]} if "recipe" in changes else {}
        plain = self.config(**recipe, datasets=[], variants={})
        config = with_changes(plain, {key: value for key, value in changes.items() if key != "recipe"}, source)
        own = {
            "output_dir": str(Path(config.output_dir) / _folder_name(name, source)),
            "experiment_name": f"{config.experiment_name}, {name}",
        }
        return Variant(name, changes, config.model_copy(update=own))


def _folder_name(name: str, source: str) -> str:
    """A name as a folder; that of a data file is its stem. Example: `data/My reviews.csv -> My-reviews`"""
    own = stem_of(Path(name).name) if "/" in name or is_data_file(name) else name
    plain = re.sub(r"[^\w.+-]+", "-", own).strip("-.")
    if not plain:
        raise SettingsError(f"{name!r} cannot name a folder; use letters and digits ({source})")
    return plain


def _require_data_unchanged(variants: Mapping[str, Changes], source: str) -> None:
    """Refuse variants that would be tested on other texts than the base."""
    for name, changes in variants.items():
        odd = [key for key in changes if key.split(".")[0] in ("data", "evaluation", "seed", "output_dir")]
        if odd:
            raise SettingsError(
                f"variants.{name} changes {odd[0]}, so it could not be compared on the same texts; "
                f"take it out ({source})"
            )


def term_ablations(config: ExperimentConfig) -> Mapping[str, Changes]:
    """Each term off, all of them off, the other completeness, a fixed weight for the cross-entropy, each other gate.

    Of literal words: context off.
    """
    terms = config.training.objective.terms
    variants: dict[str, dict[str, Any]] = {f"without {term.kind}": {f"{TERMS}.{term.kind}": None} for term in terms}
    if terms:
        variants["nothing asked"] = {TERMS: []}
        variants["fixed weights"] = {"training.controller.clamp": HELD}
    for term in terms:
        if other := OTHER_COMPLETENESS.get(term.kind):
            # Fraction, weight and centring stay; the two have the same fields.
            variants[other] = {f"{TERMS}.{term.kind}": {**term.model_dump(mode="json"), "kind": other}}
    gates = [part.model_fields["kind"].default for part in get_args(get_args(GateConfig)[0])]
    if config.model.context is not None:
        variants["without context"] = {"model.context": None}
    for kind in gates if config.model.literal is None else ():
        # Literal words have a gate of their own, and no other model has it.
        if kind not in (config.model.gate.kind, "presence"):
            variants[f"gate {kind}"] = {"model.gate": {"kind": kind, "offset": config.model.gate.offset}}
    return variants


def bcos_heads(config: ExperimentConfig) -> Mapping[str, Changes]:
    """B-cos heads of the same width beside the experiment's ReLU head: deeper, and with a higher exponent."""
    head = config.model.head
    if head.kind != "relu":
        raise SettingsError(
            f"model.head is {head.kind!r}; B-cos heads are compared with a ReLU head, as in recipe: neighbours"
        )
    bcos = {"kind": "bcos", "hidden_units": head.hidden_units}
    return {
        "B-cos-2": {"model.head": bcos},
        "B-cos-3": {"model.head": {**bcos, "layers": 3}},
        "B-cos-2, exponent 3": {"model.head": {**bcos, "exponent": 3.0}},
    }


def other_recipes(config: ExperimentConfig) -> Mapping[str, Changes]:
    """The other generations of the method, as their recipes have them."""
    return {recipe: {"recipe": recipe} for recipe in RECIPES if recipe != config.recipe}
