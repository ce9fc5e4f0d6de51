"""The OpenAPI document describes the service, its examples work, and its page loads nothing from elsewhere."""

import json
import re

import pytest

from lexical_sae.serve.app import DOCS


@pytest.fixture(scope="module")
def document(client):
    return client.get("/openapi.json").json()


def references(node) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if "$ref" in node else []
        return own + [found for value in node.values() for found in references(value)]
    return [found for value in node for found in references(value)] if isinstance(node, list) else []


def test_every_reference_leads_somewhere(document):
    known = document["components"]["schemas"]
    found = {reference.removeprefix("#/components/schemas/") for reference in references(document)}
    assert found <= known.keys()
    assert {"ExplainRequest", "WrittenExplanation", "WordContribution", "ProblemDocument"} <= found


def test_every_example_works_as_it_stands(client, document):
    tried = 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parameters = {one["name"]: one["example"] for one in operation["parameters"] if "example" in one}
            address = path.replace("{model}", parameters.pop("model", ""))
            if path == "/v1/corpus/{model}":
                continue
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
            if "model" in (body or {}):
                body["model"] = "both" if path == "/v1/tag" else "table"
            if path == "/v1/lexicon":
                parameters["model"] = "table"
            response = client.request(method, address, params=parameters, json=body)
            assert response.status_code == 200, (path, response.text)
            tried += 1
    assert tried == 12


def test_limits_of_the_service_are_in_the_document(document):
    schemas = document["components"]["schemas"]
    assert schemas["ExplainRequest"]["properties"]["texts"]["maxItems"] == 64
    assert schemas["ExplainRequest"]["properties"]["texts"]["items"]["maxLength"] == 20_000
    assert schemas["FlipRequest"]["properties"]["seconds"]["maximum"] == 5


def test_the_page_loads_nothing_from_elsewhere_and_has_no_inline_script(client):
    for name in ("index.html", "docs.js", "docs.css"):
        response = client.get(f"/docs/{name}")
        assert response.status_code == 200
        assert response.text == (DOCS / name).read_text()
        assert not re.search(r"https?://|innerHTML|style=|<style|onclick|eval\(", response.text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", client.get("/docs/").text) == [""]
    assert client.get("/docs/index.html", headers={"if-none-match": response.headers["etag"]}).status_code in (200, 304)


@pytest.mark.slow
def test_no_request_that_the_document_allows_or_forbids_breaks_the_service(client):
    """Schemathesis makes requests from the document, good and bad ones, and checks answers against it."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, settings

    checks = schemathesis.checks
    wanted = [
        checks.not_a_server_error,
        schemathesis.specs.openapi.checks.status_code_conformance,
        schemathesis.specs.openapi.checks.content_type_conformance,
        schemathesis.specs.openapi.checks.response_schema_conformance,
        schemathesis.specs.openapi.checks.negative_data_rejection,
    ]
    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app, headers={"host": "localhost"})
    tried = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path.startswith("/v1/corpus"):
            continue

        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
        @_given(operation)
        def check(case):
            nonlocal tried
            tried += 1
            response = case.call(headers={"host": "localhost"})
            case.validate_response(response, checks=wanted)

        check()
    assert tried > 100


def _given(operation):
    from hypothesis import given

    return given(case=operation.as_strategy())


def test_the_document_is_plain_json(document):
    json.dumps(document, allow_nan=False)
