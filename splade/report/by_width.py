"""Views that know how wide the terminal is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType


@dataclass(frozen=True)
class ByWidth:
    """Made when the number of letters in a line is known, so that narrow terminals get fewer columns and not cut ones.

    Example: `ByWidth(lambda width: "long version" if width > 40 else "short")`
    """

    make: Callable[[int], RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:  # noqa: ARG002
        yield self.make(options.max_width)
