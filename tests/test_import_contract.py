"""Who may import whom: a module may import from its own room and from rooms below it, never from above or beside."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "lexical_sae"

LAYERS: list[list[str]] = [
    ["cli", "scripts"],
    ["commands"],
    ["serve"],
    ["sklearn"],
    ["runs"],
    ["config"],
    ["recipes"],
    ["studies"],
    ["scale"],
    ["explorer"],
    ["intervene"],
    ["training", "evaluation"],
    ["inference"],
    ["report"],
    ["explanation"],
    ["circuits"],
    ["mechanistic"],
    ["models"],
    ["outputs"],
    ["data"],
    ["utils"],
    ["types"],
]
"""From top to bottom; rooms on one line are siblings and may not import each other."""

ONLY_HERE = {
    "datasets": ["data"],
    "typer": ["cli", "commands"],
}
"""Libraries that only some rooms may import."""

TRANSFORMERS_MODELS = ["models.pretrained", "models.dense_baseline"]


@cache
def modules() -> list[str]:
    names = [path.relative_to(ROOT).with_suffix("").parts for path in ROOT.rglob("*.py")]
    return sorted(".".join(parts).removesuffix(".__init__") for parts in names if parts != ("__init__",))


def room(module: str) -> str:
    known = [name for layer in LAYERS for name in layer if module == name or module.startswith(name + ".")]
    assert known, f"lexical_sae.{module} has no room in the contract: give it one"
    return max(known, key=len)


def layer(name: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if name in names)


def imports(module: str) -> set[str]:
    path = ROOT.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source}: write imports in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def violations(module: str, imported: set[str]) -> list[str]:
    """What a module imports though its room may not."""
    own, found = room(module), []
    for name in sorted(imported):
        top = name.split(".")[0]
        if name == "lexical_sae":
            continue  # only the version; the public names are loaded lazily
        if top == "lexical_sae":
            other = room(_as_module(name.removeprefix("lexical_sae.")))
            if other != own and layer(other) <= layer(own):
                found.append(f"{module} ({own}) may not import {name} ({other})")
        elif top in ONLY_HERE and own not in ONLY_HERE[top]:
            found.append(f"{module}: only {ONLY_HERE[top]} may import {top}")
        elif name.startswith("transformers.Auto") and "Tokenizer" not in name and module not in TRANSFORMERS_MODELS:
            found.append(f"{module}: only {TRANSFORMERS_MODELS} may import transformers models")
    return found


def _as_module(name: str) -> str:
    """The module that a dotted name lies in: the name itself, or what it is imported from."""
    known = modules()
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return name


@pytest.mark.parametrize("module", modules())
def test_every_module_imports_only_what_lies_below(module):
    assert violations(module, imports(module)) == []


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("models.heads", "lexical_sae.training.loop.Trainer"),
        ("data.files", "lexical_sae.models.heads.ReluHead"),
        ("inference.explaining", "lexical_sae.intervene.SuppressedModel"),
        ("training.loop", "lexical_sae.evaluation.suite.evaluate"),
        ("models.circuit_state", "lexical_sae.mechanistic.attribution.attribute"),
        ("models.heads", "datasets.load_dataset"),
        ("training.loop", "transformers.AutoModelForMaskedLM"),
        ("models.heads", "typer"),
    ],
)
def test_the_contract_sees_a_violation(module, imported):
    assert violations(module, {imported})
