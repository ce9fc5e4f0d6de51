"""What a service is told when it starts: plain data, handed to every worker."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lexical_sae.utils.errors import SettingsError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class Limits:
    """What one client may ask for; beyond it, requests are refused with a sentence."""

    body_bytes: int = 1_000_000
    texts: int = 64
    """In one request."""
    characters: int = 20_000
    """Of one text."""
    all_characters: int = 200_000
    """Of all texts of one request: long ones are read whole, and cost accordingly."""
    words: int = 100
    """Suppressed or set in one request, and each at most 200 characters long."""
    waiting: int = 512
    """Texts that wait for one model."""
    seconds: float = 30.0
    """From the whole request to its answer."""
    flip_seconds: float = 5.0
    """For each of the two searches of a flip."""
    head_seconds: float = 10.0
    """For a client to send the head of a request."""
    body_seconds: float = 10.0
    """For a client to send its body."""
    connections: int = 512
    """Of one worker."""


@dataclass(frozen=True)
class Batching:
    """How questions are put together."""

    texts: int = 64
    """In one batch; 1 answers every request by itself."""
    wait_seconds: float = 0.003
    """Longest wait for the questions of others. Nobody waits where the last batch had one question."""


@dataclass(frozen=True)
class Access:
    """Who may ask."""

    token: str | None = None
    """For `Authorization: Bearer`; without it nobody is asked for one."""
    hosts: tuple[str, ...] = LOOPBACK
    """Names in the Host header that are answered; none for all."""
    origins: tuple[str, ...] = ()
    """Other sites whose pages may call the service (CORS)."""


@dataclass(frozen=True)
class Data:
    """Texts for the corpus view."""

    source: str
    """A file, or the name of a data set."""
    text_column: str | None = None
    label_column: str | None = None
    is_labelled: bool = True
    skip_bad_rows: bool = False

    @property
    def name(self) -> str:
        """What readers see: never a path."""
        return Path(self.source).name


@dataclass(frozen=True)
class Settings:
    """A service."""

    models: tuple[tuple[str, Path], ...]
    """Folders of saved models, by name."""
    spool: Path
    """A folder that lives as long as the service: what its workers share."""
    data: Data | None = None
    limits: Limits = Limits()
    batching: Batching = Batching()
    access: Access = Access()
    workers: int = 1
    threads: int = 1
    """Of each worker's arithmetic."""
    decision_log: Path | None = None
    log_texts: bool = False
    """Whether the decision log holds texts too."""
    log_requests: bool = False
    """Whether each request gets a line on standard error, without what was asked."""


def named_models(given: Sequence[str]) -> tuple[tuple[str, Path], ...]:
    """Folders by name: `NAME=FOLDER`, or the folder's own name, and that of its run for a folder called `model`.

    Example: `named_models(["results/quickstart", "old=results/2024/model"])` -> quickstart, old
    """
    found: dict[str, Path] = {}
    for argument in given:
        name, equals, folder = argument.partition("=")
        path = Path(folder if equals else argument).expanduser()
        if not equals:
            place = path.resolve()
            name = place.parent.name if place.name == "model" else place.name
        if not _NAME.fullmatch(name):
            raise SettingsError(
                f"{name!r} cannot be the name of a model in an address; give another, of letters, digits, dots, "
                f"hyphens and underscores: NAME={path}"
            )
        if name in found:
            raise SettingsError(f"two models are called {name!r}; give one another name: NAME={path}")
        found[name] = path
    return tuple(found.items())
