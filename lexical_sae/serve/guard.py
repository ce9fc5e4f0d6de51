"""What stands before every route: who may ask, the headers of every answer, and a line in the log.

Pure ASGI, so that nothing is buffered. Texts are never logged: a line has the route's pattern, not what was asked.
"""

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
import time
import traceback
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexical_sae.serve.metrics import Metrics
from lexical_sae.serve.problems import Problem
from lexical_sae.serve.settings import Access

logger = logging.getLogger("lexical_sae.serve")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
SEND_SECONDS = 60.0
"""For a client to take a part of an answer."""
GUARDED = ("/v1/", "/metrics")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Guard:
    """Middleware around the routes."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self.app, self.access, self.metrics = app, access, metrics
        self._token = None if access.token is None else _digest(access.token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        origin = headers.get("origin")
        allowed = origin if origin in self.access.origins else None
        started, status = time.perf_counter(), 0

        async def guarded_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._complete(MutableHeaders(scope=message), request_id, allowed)
            async with asyncio.timeout(SEND_SECONDS):
                await send(message)

        try:
            await self._answer(scope, receive, guarded_send, headers)
        except Problem as problem:
            await problem.response(request_id)(scope, receive, guarded_send)
        except Exception as error:
            # Without its message, which may quote a text.
            logger.error("request %s failed: %s\n%s", request_id, type(error).__name__, _places(error))
            if status:
                raise _Broken from None
            detail = f"This is a bug in lexical-sae; please report it, with the log of request {request_id}."
            await Problem(500, detail).response(request_id)(scope, receive, guarded_send)
        finally:
            route = scope.get("route_name", "other")
            taken = time.perf_counter() - started
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(taken)
            logger.info("%s %s %s %d %.1f ms", request_id, scope["method"], route, status, 1000 * taken)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        self._check_host(headers)
        self._check_origin(headers)
        if scope["method"] == "OPTIONS" and headers.get("origin") in self.access.origins:
            await _preflight(send)
            return
        if scope["path"].startswith(GUARDED):
            self._check_token(headers)
        await self.app(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        """Against a foreign name that was made to lead here (DNS rebinding)."""
        host = _host_name(f"//{headers.get('host', '')}")
        if self.access.hosts and host not in self.access.hosts:
            raise Problem(
                403, "This service does not answer to that host name; name it when it is started, with --allow-host."
            )

    def _check_origin(self, headers: Headers) -> None:
        """Pages of other sites may not ask."""
        origin = headers.get("origin")
        if origin is None or origin in self.access.origins or origin.partition("//")[2] == headers.get("host"):
            return
        raise Problem(403, "Pages of other sites may not call this service; allow one with --cors when it is started.")

    def _check_token(self, headers: Headers) -> None:
        if self._token is None:
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        # Digests have one length, and are compared in constant time: the time tells nothing of the token.
        is_right = hmac.compare_digest(_digest(token.strip()), self._token)
        if not (is_right and scheme.lower() == "bearer"):
            raise Problem(
                401, "The token is missing or wrong: send Authorization: Bearer TOKEN.", {"WWW-Authenticate": "Bearer"}
            )

    def _complete(self, headers: MutableHeaders, request_id: str, origin: str | None) -> None:
        for name, value in HEADERS.items():
            headers[name] = value
        headers["X-Request-ID"] = request_id
        headers.setdefault("Cache-Control", "no-store")
        if origin is not None:
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = "X-Request-ID, X-Model-SHA256, Retry-After"
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        if self.access.origins:
            headers.add_vary_header("Origin")


class _Broken(Exception):
    """An answer that broke off: the server closes the connection, and the reason is in the log already."""


async def _preflight(send: Send) -> None:
    headers = {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Authorization, Content-Type, X-Request-ID",
        "Access-Control-Max-Age": "600",
    }
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 204, "headers": raw})
    await send({"type": "http.response.body", "body": b""})


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _host_name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _places(error: BaseException) -> str:
    """Where an error comes from, without its message and without the values of variables."""
    frames = traceback.extract_tb(error.__traceback__)
    return "\n".join(f"  {Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames[-12:])
