"""The application of one worker: routes, guard, and its models."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from lexical_sae.serve.guard import Guard
from lexical_sae.serve.settings import Settings

DOCS = Path(__file__).parent / "static"


def build_app(settings: Settings) -> Starlette:
    """The application with its models loaded: the worker listens only afterwards.

    What it imports takes seconds, and is imported in the worker alone.
    """
    import torch

    from lexical_sae.serve.openapi import document
    from lexical_sae.serve.routes import OPERATIONS
    from lexical_sae.serve.service import Service

    torch.set_num_threads(settings.threads)
    service = Service(settings)
    written = json.dumps(document(OPERATIONS, settings)).encode()

    async def openapi(request: Request) -> Response:
        request.scope["route_name"] = "/openapi.json"
        return Response(written, headers={"Cache-Control": "no-cache"}, media_type="application/json")

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        del app
        yield {"limits": settings.limits}
        # Every request is answered by now: the server waits for them before it ends the lifespan.
        service.close()

    made = Starlette(
        routes=[
            *(operation.route(service) for operation in OPERATIONS),
            Route("/openapi.json", openapi, methods=["GET"]),
            Mount("/docs", Pages(directory=DOCS, html=True), name="docs"),
            Route("/", _to_docs, methods=["GET"]),
        ],
        exception_handlers={HTTPException: _refusal},
        middleware=[Middleware(Guard, access=settings.access, metrics=service.metrics)],
        lifespan=lifespan,
    )
    made.state.service = service
    return made


class Pages(StaticFiles):
    """Files of the package; a new version shows at once, and an unchanged file is not sent again."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route_name"] = "pages"
        await super().__call__(scope, receive, send)

    def file_response(self, *arguments: object, **named: object) -> Response:
        """The file, to be asked about again before it is used from a cache."""
        response = super().file_response(*arguments, **named)  # pyright: ignore[reportArgumentType]
        response.headers["Cache-Control"] = "no-cache"
        return response


async def _to_docs(request: Request) -> Response:
    request.scope["route_name"] = "/"
    return RedirectResponse("/docs/")


async def _refusal(request: Request, error: Exception) -> Response:
    """What Starlette refuses: unknown paths and methods."""
    from lexical_sae.serve.problems import Problem

    assert isinstance(error, HTTPException)
    sentences = {
        404: "There is nothing at this address; /docs lists what there is.",
        405: "This address does not take that method; /docs lists what there is.",
    }
    detail = sentences.get(error.status_code, f"{error.detail}.")
    return Problem(error.status_code, detail, error.headers).response(request.scope["state"]["request_id"])
