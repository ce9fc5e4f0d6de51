"""A picture with its words, as pages carry it."""

from base64 import b64encode
from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """A drawing, its name, and what it shows for those who hear it."""

    title: str
    svg: str
    description: str

    @property
    def address(self) -> str:
        """The drawing as a `data:` address: an image cannot run anything, and its styles stay its own."""
        return "data:image/svg+xml;base64," + b64encode(self.svg.encode("utf-8", "replace")).decode("ascii")
