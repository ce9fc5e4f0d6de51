"""Processes and sockets: one process, or several workers on one socket under a parent that replaces those that die."""

import logging
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from lexical_sae.serve.app import build_app
from lexical_sae.serve.metrics import share_between_workers
from lexical_sae.serve.protocol import PatientProtocol
from lexical_sae.serve.settings import Settings
from lexical_sae.utils.errors import LexicalSAEError, UnavailableError

STARTING_SECONDS = 120
"""For a worker to say that it lives; importing torch on a busy machine takes long, and holds up its answer."""
KEEP_ALIVE_SECONDS = 30
HEAD_BYTES = 16_384
"""Of a request, before its body."""


def serve(settings: Settings, host: str, port: int, on_start: Callable[[str], None]) -> None:
    """Answer until a signal says to stop; everything taken by then is answered.

    Args:
        settings: The service.
        host, port: Where to listen; port 0 takes a free one.
        on_start: Called with the address: when models are loaded, or with several workers when they are started.
    """
    configure_logging(settings)
    with _bound(host, port) as bound:
        address = f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}"
        config = server_config(partial(worker_app if settings.workers > 1 else build_app, settings), settings)
        if settings.workers > 1:
            share_between_workers(settings.spool)
            # The parent says when a worker died.
            logging.getLogger("uvicorn.error").setLevel(logging.INFO)
            parent = Multiprocess(config, sockets=[bound])
            on_start(address)
            parent.run()
            if any(process.exitcode == STARTUP_FAILURE for process in parent.processes):
                raise UnavailableError("a worker could not start, for the reason above; put it right and start again")
            return
        # uvicorn raises the signal that stopped it once more when it is done; stopping is no failure.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        _Server(config, partial(on_start, address)).run(sockets=[bound])


def server_config(make_app: Callable[[], Starlette], settings: Settings) -> uvicorn.Config:
    """How uvicorn is to serve the application: it logs no addresses, and trusts no header of a proxy."""
    return uvicorn.Config(
        make_app,
        factory=True,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        workers=settings.workers,
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.limits.seconds) + 5,
        timeout_worker_healthcheck=STARTING_SECONDS,
    )


class _Server(uvicorn.Server):
    """A server that tells when it listens."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self.on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Load the models, listen, and say so."""
        await super().startup(sockets)
        if not self.should_exit:
            self.on_start()


def configure_logging(settings: Settings) -> None:
    """Warnings to standard error; requests too, if they are wanted."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("lexical_sae.serve").setLevel(logging.INFO if settings.log_requests else logging.WARNING)


def worker_app(settings: Settings) -> Starlette:
    """The application of a worker. What a user can put right ends the whole service: a new worker would fail too."""
    configure_logging(settings)
    try:
        return build_app(settings)
    except (LexicalSAEError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the parent does not learn of it
        sys.exit(STARTUP_FAILURE)


@contextmanager
def spool_folder() -> Iterator[Path]:
    """A folder for what workers share, gone when the service ends."""
    folder = Path(tempfile.mkdtemp(prefix="lexical-sae-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise UnavailableError(f"the address {host!r} is unknown ({error.strerror}); give --host 127.0.0.1") from error
    bound = socket.socket(family=family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise UnavailableError(f"cannot listen on {host}:{port} ({error.strerror}); give another --port") from error
    bound.set_inheritable(True)
    try:
        yield bound
    finally:
        with suppress(OSError):
            bound.close()
