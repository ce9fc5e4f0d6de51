"""HTTP/1.1 that does not wait for slow clients.

uvicorn waits for the head of a request without end, so that a few thousand clients that send a letter a minute would
hold every connection (slowloris). Here a head must be whole in time, and connections are counted.
"""

import asyncio
import secrets
from http import HTTPStatus

from uvicorn.protocols.http.h11_impl import H11Protocol

from lexical_sae.serve.problems import MEDIA_TYPE, Problem
from lexical_sae.serve.settings import Limits


class PatientProtocol(H11Protocol):
    """A connection with a limit of time for each head, and of connections beside it."""

    _head_timer: asyncio.TimerHandle | None = None

    @property
    def limits(self) -> Limits:
        """Those of the service, which its lifespan hands to every connection."""
        return self.app_state["limits"]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first head."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(503, "Too many connections are open; ask again in a moment.")
        else:
            self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; while they are no whole head, the clock runs on."""
        if not self.transport.is_closing():
            super().data_received(data)
            self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _watch_head(self) -> None:
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering or self.transport.is_closing():
            self._stop_clock()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.limits.head_seconds, self._too_slow)

    def _stop_clock(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if not is_answering and not self.transport.is_closing():
            self._refuse(408, f"The request did not come within {self.limits.head_seconds:g} seconds.")

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, f"{msg.removesuffix('.')}: it is not HTTP/1.1.")

    def _refuse(self, status: int, detail: str) -> None:
        """An answer before there is a request, and the end of the connection."""
        content = bytes(Problem(status, detail).response(secrets.token_hex(8)).body)
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {MEDIA_TYPE}\r\n"
            f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + content)
        self.transport.close()
