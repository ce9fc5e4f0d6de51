"""Write docs/configuration.md from the schema: `make docs`. A test fails when the page is stale."""

import sys
from pathlib import Path
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lexical_sae.config.schema import ExperimentConfig

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"
HEAD = """# Every key of an experiment file

Made from the schema by `make docs`; do not edit by hand. An experiment file is YAML. Missing keys have the
recipe's values (`recipe: anchored` unless another is named). An unknown key is refused, with a suggestion.

Short names: `seed: 7` means `evaluation.seeds: [7]`, `training.pooling: max` means `model.pool: max`. A part may be
given by its kind alone (`pool: attention`) or with fields (`gate: {kind: jumprelu, bandwidth: 0.2}`); missing fields
are the recipe's if its part is of that kind. The defaults below are the schema's; a recipe may set others.

```yaml
recipe: anchored
seed: 0
data: {dataset_name: sst2, train_samples: 20000}
model: {name: "bundled:minilm", max_length: 128}
```
"""


def render() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_section(ExperimentConfig, "")]) + "\n"


def _section(model: type[BaseModel], prefix: str) -> list[str]:
    """A table of the plain keys, then a section per nested one."""
    rows, below = [], []
    for name, field in model.model_fields.items():
        nested = _models(field.annotation)
        if name != "kind":
            rows.append(f"| `{prefix}{name}` | {_default(field, nested)} | {_one_line(field.description)} |")
        for inner in nested:
            kind = inner.model_fields["kind"].default if "kind" in inner.model_fields else None
            if own := _section(inner, f"{prefix}{name}."):
                title = f"## `{prefix}{name}`" + (f", kind `{kind}`" if kind and len(nested) > 1 else "")
                below += ["", title, "", _one_line(_doc(inner)), *own]
    if not rows:
        return below
    return ["", "| key | default | meaning |", "|---|---|---|", *rows, *below]


def _default(field: FieldInfo, nested: list[type[BaseModel]]) -> str:
    if field.is_required() and not nested:
        return "required"
    if nested:
        kind = getattr(field.default, "kind", None)
        return f"`{kind}`" if kind else ("`null`" if field.default is None else "see below")
    value = field.default
    shown = list(value) if isinstance(value, tuple) else value
    return "`null`" if shown is None else f"`{shown}`".replace("True", "true").replace("False", "false")


def _doc(model: type[BaseModel]) -> str:
    """A section's docstring, or that of the part it configures."""
    if "." not in model.__qualname__:
        return model.__doc__ or ""
    owner = getattr(sys.modules[model.__module__], model.__qualname__.split(".")[0])
    return (owner.__doc__ or "").split("\n\n")[0]


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


if __name__ == "__main__":
    PAGE.write_text(render())
    print(f"wrote {PAGE.name}")
