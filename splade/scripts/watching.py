"""What a person sees of a run that takes long, and how they stop it."""

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from splade.scripts.console import INTERRUPTED, console

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from collections.abc import Callable, Iterator

    from splade.runs import Watchers


@contextmanager
def watching(kept: str = "its state is saved,") -> "Iterator[Watchers]":
    """Bars, notes and Ctrl-C for a run; one that was stopped says what is kept of it, and exits with its own code."""
    from splade.report.progress import ProgressBars
    from splade.runs import Watchers
    from splade.training.loop import Interrupted, StoppedBeforeSaving

    try:
        with ProgressBars(console) as bars, until_interrupted() as is_interrupted:
            yield Watchers(bars, lambda note: console.print(Text(note, style="dim")), is_interrupted)
    except Interrupted as stop:
        advice = f"{kept} go on with the same command and --resume"
        if isinstance(stop, StoppedBeforeSaving):
            advice = (
                "nothing of it was saved: start again with the same command (--resume if a part was finished before)"
            )
        Console(stderr=True).print(f"{stop}; {advice}")
        sys.exit(INTERRUPTED)


@contextmanager
def until_interrupted() -> "Iterator[Callable[[], bool]]":
    """Whether somebody pressed Ctrl-C (or the system asked to stop); a second time stops at once."""
    asked = []

    def ask(number: int, _frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        Console(stderr=True).print("stopping after this step; press Ctrl-C again to stop at once")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
