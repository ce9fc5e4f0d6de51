"""Where commands print, how a person follows and stops long work, and how commands fail."""

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.text import Text

from lexical_sae.utils.errors import LexicalSAEError

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from lexical_sae.runs.seeds import Watchers

console = Console()
INTERRUPTED = 130
"""Exit code of work that was stopped, as shells have it."""
TRACEBACK = "--traceback"
ISSUES = "this is a bug in lexical-sae; please report it, with the lines above and the command"


@contextmanager
def errors_as_sentences(*, with_traceback: bool = False) -> Iterator[None]:
    """Errors that a user can put right end as one sentence and exit code 1.

    Anything else is a bug: it shows its traceback and asks for a report. `with_traceback` shows it for both.
    """
    # Retries of the hub are no news to a user: what comes of them is the error below.
    for name in ("huggingface_hub", "urllib3"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(INTERRUPTED)
    except (LexicalSAEError, OSError) as error:
        if with_traceback:
            traceback.print_exc()
        _print_error(_sentence(error))
        sys.exit(1)
    except Exception as error:
        traceback.print_exc()
        _print_error(f"{type(error).__name__}: {ISSUES}")
        sys.exit(1)


def _sentence(error: Exception) -> str:
    """An error's message; one of the system's without its number. Example: "b.csv: no such file or directory"."""
    if isinstance(error, OSError) and error.strerror and error.errno is not None:
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{error.strerror[0].lower()}{error.strerror[1:]}"
    return _as_options(str(error))


def _as_options(message: str) -> str:
    """A library's advice in the words of the command line. Example: "give text_column=" -> "give --text-column"."""
    for name in ("text_column", "label_column", "label_columns", "label_separator"):
        message = message.replace(f"{name}=", f"--{name.replace('_', '-')} ")
    return message.replace("skip_bad_rows=True", "--skip-bad-rows")


def _print_error(message: str) -> None:
    from lexical_sae.report.printable import shown

    Console(stderr=True).print(Text.assemble(("error: ", "bold red"), shown(message)), soft_wrap=True)


def run_command(command: Callable[..., None]) -> None:
    """What a script does when it is called by its name: read the command line, and run one command."""
    expand_home()
    with_traceback = take_traceback()
    with errors_as_sentences(with_traceback=with_traceback):
        typer.run(command)


def take_traceback() -> bool:
    """Whether `--traceback` is among the arguments, from where it is taken; it may stand anywhere before `--`."""
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    found = TRACEBACK in sys.argv[1:end]
    sys.argv[1:] = [a for i, a in enumerate(sys.argv[1:], start=1) if a != TRACEBACK or i >= end]
    return found


def expand_home() -> None:
    """Have `--out=~/x` mean what `--out ~/x` does. Shells expand the second alone; a folder named "~" is a trap."""
    sys.argv[1:] = [_with_home(argument) for argument in sys.argv[1:]]


def _with_home(argument: str) -> str:
    option, equals, value = argument.partition("=")
    return f"{option}={os.path.expanduser(value)}" if equals and option.startswith("--") else argument


@contextmanager
def watching(kept: str = "its state is saved,") -> "Iterator[Watchers]":
    """Progress, notes and Ctrl-C for long work; stopped work says what is kept of it, and exits with its own code."""
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.runs.seeds import Watchers
    from lexical_sae.training.stopping import Interrupted, StoppedBeforeSaving

    try:
        with ProgressBars(console) as bars, until_interrupted() as is_interrupted:
            yield Watchers(bars, lambda note: console.print(Text(note, style="dim")), is_interrupted)
    except Interrupted as stop:
        advice = f"{kept} continue with the same command and --resume"
        if isinstance(stop, StoppedBeforeSaving):
            advice = "nothing was saved: start again with the same command (--resume if a part was finished before)"
        Console(stderr=True).print(f"{stop}; {advice}")
        sys.exit(INTERRUPTED)


@contextmanager
def training_together(device: str) -> Iterator[bool]:
    """Train with the other processes that `torchrun` started, if any; whether this is the one that speaks."""
    from lexical_sae.training.processes import joined

    with joined(device) as processes:
        console.quiet = not processes.is_first
        yield processes.is_first


@contextmanager
def until_interrupted() -> "Iterator[Callable[[], bool]]":
    """Whether Ctrl-C was pressed (or the system asked to stop); a second time stops at once."""
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
