"""What an audit is asked."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lexical_sae.utils.errors import SettingsError

Every = Literal["day", "week", "month", "quarter", "year"]


@dataclass(frozen=True)
class Asked:
    """Which rows are audited, what they are compared with, and how they are cut."""

    by: str | None = None
    """Column of the groups."""
    time: str | None = None
    """Column of the time; inferred where one kept column is a date."""
    every: Every = "month"
    """Length of a period."""
    since: datetime | None = None
    """Begin of the audited rows; those before it are what they are compared with."""
    until: datetime | None = None
    """End of the audited rows, which is no longer among them."""
    reference_since: datetime | None = None
    """Begin of the rows to compare with."""
    against: str | None = None
    """Another scored table to compare with, instead of the rows before."""
    level: float = 0.05
    """Expected share of false findings among all changes that are named (false discovery rate)."""

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise SettingsError(f"level is {self.level!r}; give a share between 0 and 1, such as 0.05")
        if self.since and self.until and self.since >= self.until:
            raise SettingsError(f"since {self.since} is not before until {self.until}; no row lies between them")
        if self.reference_since and (self.since is None or self.reference_since >= self.since):
            raise SettingsError("reference_since is where the rows before `since` begin; give a later since too")
        if self.reference_since and self.against:
            raise SettingsError("reference_since is about the rows before since, and against compares with other ones")

    @property
    def compares(self) -> bool:
        """Whether there is something to compare with."""
        return self.since is not None or self.against is not None

    @property
    def needs_time(self) -> bool:
        return self.since is not None or self.until is not None
