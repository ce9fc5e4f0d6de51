"""What all parts share: strict, frozen settings, written next to the part they turn."""

from pydantic import BaseModel, ConfigDict


class PartConfig(BaseModel):
    """Settings of one part. Unknown keys are refused, values are checked, nothing changes after construction."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
