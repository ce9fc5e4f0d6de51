"""What all parts share: strict, frozen settings, written next to the part they turn."""

from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError


class PartConfig(BaseModel):
    """Settings of one part. Unknown keys are refused, values are checked, nothing changes after construction."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


def first_complaint(error: ValidationError) -> str:
    """The first thing that is wrong, and where. Example: "parts.head.width: Input should be greater than 0"."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the whole"
    return f"{place}: {first['msg']}"


def _bare_kind(value: Any) -> Any:
    """`pool: max` is short for `pool: {kind: max}`."""
    return {"kind": value} if isinstance(value, str) else value


Shorthand = BeforeValidator(_bare_kind)
"""Lets a part's settings be written as its bare kind."""
