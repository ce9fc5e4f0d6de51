"""Refusals and failures, as `application/problem+json` (RFC 9457)."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
LONGEST = 600
"""Characters of a sentence: it may quote a text, and a text may be long."""


class Problem(Exception):
    """An answer that is an error, with a sentence that says what to do."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.headers = status, dict(headers or {})
        self.detail = detail if len(detail) <= LONGEST else detail[: LONGEST - 1] + "…"

    def response(self, request_id: str) -> Response:
        """The answer."""
        content = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "request_id": request_id,
        }
        return Response(json.dumps(content), self.status, self.headers, MEDIA_TYPE)


class IdentityBroken(Exception):
    """A decision whose contributions do not sum to it: it is not sent."""

    def __init__(self, error: float) -> None:
        super().__init__(
            f"The contributions do not sum to the decision (relative error {error:.1e}), so there is no answer: "
            "the model's weights or this machine's arithmetic are damaged. Load the model again."
        )


class QueueFull(Exception):
    """More texts wait than may."""
