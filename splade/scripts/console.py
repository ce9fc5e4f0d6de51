"""What every command shares: where it prints, and how it fails."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

console = Console()
USER_ERRORS = (ValueError, OSError, RuntimeError, FloatingPointError, MemoryError)
"""What a person can put right: shown as a sentence. Anything else is our mistake and keeps its traceback."""
INTERRUPTED = 130
"""Exit code of a run that somebody stopped, as shells have it."""


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """Errors that a person can put right end as one sentence and exit code 1."""
    try:
        yield
    except USER_ERRORS as error:
        from splade.report.terminal import shown

        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), shown(str(error))))
        sys.exit(1)
