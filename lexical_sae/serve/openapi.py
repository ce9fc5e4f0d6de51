"""The OpenAPI document, from the same schemas that requests are checked by."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import lexical_sae
from lexical_sae.serve import answers, problems
from lexical_sae.serve.routes import Operation
from lexical_sae.serve.settings import Settings

REFUSALS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The Host or Origin header is not one that is answered.",
    404: "There is no such model, or no such page.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "A value cannot be used: an unknown key, label or word, a text that is too long.",
    429: "Too many texts wait.",
    500: "Contributions do not sum to the decision, or a bug.",
    503: "Shutting down, or out of time.",
}
OF_BODIES = (400, 408, 413, 415)
OF_QUESTIONS = (404, 422, 429, 500, 503)
EVERYWHERE = (401, 403)
OPEN = ("/health", "/ready")
"""Paths that need no token."""


def document(operations: Sequence[Operation], settings: Settings) -> dict[str, Any]:
    """The document of a service."""
    shapes, definitions = _schemas(operations, settings)
    names = tuple(name for name, _ in settings.models)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, shapes, names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lexical-SAE",
            "version": lexical_sae.__version__,
            "summary": "Text classifiers whose features are words, and exact explanations of what they decide.",
            "description": "Contributions and bias sum to the decision, up to rounding (1e-5 relative). Numbers may "
            "differ in the sixth digit between requests, because texts are read in batches.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}] if settings.access.token is not None else [],
    }


def _schemas(operations: Sequence[Operation], settings: Settings) -> tuple[dict[Any, Any], dict[str, Any]]:
    given: list[tuple[type[BaseModel], Any]] = [(answers.ProblemDocument, "serialization")]
    for operation in operations:
        given += [(made, "validation") for made in (operation.request, operation.query) if made is not None]
        given += [(made, "serialization") for made in (operation.answer,) if made is not None]
    distinct = list(dict.fromkeys(given))
    shapes, found = models_json_schema(distinct, ref_template="#/components/schemas/{model}")
    definitions = found["$defs"]
    limits = settings.limits
    for node in _nodes(definitions):
        # Checks that depend on the service are not in the classes, but clients should know of them.
        if node.get("title") in ("Texts", "Instances") and node.get("type") == "array":
            node["maxItems"] = limits.texts
            if node["items"].get("type") == "string":
                node["items"]["maxLength"] = limits.characters
    flip = definitions["FlipRequest"]["properties"]
    flip["seconds"]["maximum"], flip["text"]["maxLength"] = limits.flip_seconds, limits.characters
    return shapes, definitions


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for inner in node.values():
            yield from _nodes(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _nodes(inner)


def _described(operation: Operation, shapes: dict[Any, Any], models: tuple[str, ...]) -> dict[str, Any]:
    answer = {} if operation.answer is None else {"schema": shapes[(operation.answer, "serialization")]}
    statuses = {status: REFUSALS[status] for status in sorted(_statuses(operation))}
    refusal = {problems.MEDIA_TYPE: {"schema": shapes[(answers.ProblemDocument, "serialization")]}}
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation, models), *_query_parameters(operation)],
        "responses": {
            "200": {"description": "The answer.", "content": {operation.media_type: answer}},
            **{str(status): {"description": said, "content": refusal} for status, said in statuses.items()},
        },
    }
    if operation.path in OPEN:
        made["security"] = []
    if operation.request is not None:
        shape = shapes[(operation.request, "validation")]
        content = {"application/json": {"schema": shape, "example": _for(operation, models)}}
        made["requestBody"] = {"required": True, "content": content}
    return made


def _statuses(operation: Operation) -> set[int]:
    found: set[int] = {*EVERYWHERE}
    if operation.request is not None:
        found |= {*OF_BODIES, *OF_QUESTIONS}
    if operation.query is not None or "{model}" in operation.path:
        found |= set(OF_QUESTIONS)
    if operation.path == "/ready":
        found |= {503}
    return found


def _for(operation: Operation, models: tuple[str, ...]) -> dict[str, Any]:
    """An example that works as it stands, also where the service has several models."""
    names_model = operation.request is not None and "model" in operation.request.model_fields
    return {**({"model": models[0]} if names_model and len(models) > 1 else {}), **operation.example}


def _path_parameters(operation: Operation, models: tuple[str, ...]) -> list[dict[str, Any]]:
    if "{model}" not in operation.path:
        return []
    schema = {"type": "string", "enum": list(models)}
    return [{"name": "model", "in": "path", "required": True, "schema": schema, "example": models[0]}]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    found = operation.query.model_json_schema()["properties"]
    return [
        {
            "name": name,
            "in": "query",
            "description": schema.pop("description", ""),
            "schema": schema,
            **({"example": operation.example[name]} if name in operation.example else {}),
        }
        for name, schema in found.items()
    ]
