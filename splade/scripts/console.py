"""What every command shares: where it prints, and how it fails."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

console = Console()
USER_ERRORS = (ValueError, OSError, RuntimeError, FloatingPointError, MemoryError)
"""What a person can put right: shown as a sentence. Anything else is our mistake and keeps its traceback."""
INTERRUPTED = 130
"""Exit code of a run that somebody stopped, as shells have it."""


AllTokens = Annotated[
    bool,
    typer.Option(
        "--all-tokens",
        help="Name tokens that are no whole words too (##ing, punctuation, numbers); by default one row sums them.",
    ),
]

MergeInflections = Annotated[
    bool, typer.Option("--merge-inflections", help="Show forms of one word (film, films) as one, with their sum.")
]


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """Errors that a person can put right end as one sentence and exit code 1."""
    try:
        yield
    except USER_ERRORS as error:
        from splade.report.terminal import shown

        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), shown(str(error))))
        sys.exit(1)


def run_command(command: Callable[..., None]) -> None:
    """What a script does when it is called by its name: read the command line, and run one command."""
    expand_home()
    with errors_as_sentences():
        typer.run(command)


def expand_home() -> None:
    """Have `--out=~/x` mean what `--out ~/x` does. Shells expand the second alone; a folder named "~" is a trap."""
    sys.argv[1:] = [_with_home(argument) for argument in sys.argv[1:]]


def _with_home(argument: str) -> str:
    option, equals, value = argument.partition("=")
    return f"{option}={os.path.expanduser(value)}" if equals and option.startswith("--") else argument
