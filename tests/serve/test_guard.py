"""Who is let in, and the headers of every answer."""

import time
from statistics import median

import pytest

from lexical_sae.serve.settings import Access

TEXT = {"texts": ["a good film"]}


@pytest.fixture(scope="module")
def guarded(client_with):
    with client_with("table", access=Access(token="s3cret token", origins=("https://friend.example",))) as made:
        yield made


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_every_answer_has_the_headers_that_keep_a_page_in_its_place(client):
    for response in (client.get("/health"), client.get("/docs/"), client.get("/none"), client.post("/v1/explain")):
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] in ("no-store", "no-cache")
        assert "access-control-allow-origin" not in response.headers
        assert "server" not in response.headers


def test_a_request_keeps_its_id_if_it_is_a_plain_one(client):
    assert client.get("/health", headers={"x-request-id": "my-id.7"}).headers["x-request-id"] == "my-id.7"
    for odd in ("a b", "<script>", "x" * 65, ""):
        given = client.get("/health", headers={"x-request-id": odd}).headers["x-request-id"]
        assert given != odd
        assert given.isalnum()


def test_a_token_opens_what_is_guarded_and_nothing_else_needs_one(guarded):
    for path in ("/health", "/ready", "/docs/", "/openapi.json"):
        assert guarded.get(path).status_code == 200
    for path in ("/v1/models", "/metrics"):
        assert guarded.get(path, headers=bearer("s3cret token")).status_code == 200
        assert guarded.get(path, headers={"authorization": "bearer s3cret token"}).status_code == 200
    assert guarded.post("/v1/explain", json=TEXT, headers=bearer("s3cret token")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(""),
        bearer("s3cret toke"),
        bearer("s3cret tokenn"),
        bearer("wrong"),
        {"authorization": "Basic s3cret token"},
        {"authorization": b"Bearer \xff\xfe"},
    ],
)
def test_without_the_token_nothing_is_told(guarded, headers):
    for path in ("/v1/models", "/v1/none", "/metrics", "/v1/corpus/table"):
        response = guarded.get(path, headers=headers)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert "table" not in response.text
    assert guarded.post("/v1/explain", json=TEXT, headers=headers).status_code == 401


def test_a_wrong_token_takes_as_long_whatever_is_right_about_it(guarded):
    """The comparison is of digests by `hmac.compare_digest`; this would see one that sleeps, or hashes slowly."""
    times: dict[str, list[float]] = {"x" * 12: [], "s3cret tokex": []}
    for _ in range(40):
        for token, taken in times.items():
            started = time.perf_counter()
            assert guarded.get("/v1/models", headers=bearer(token)).status_code == 401
            taken.append(time.perf_counter() - started)
    one, other = (median(taken) for taken in times.values())
    assert 0.5 < one / other < 2


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "[::1", "a b"])
def test_a_foreign_host_name_is_not_answered(client, host):
    response = client.get("/v1/models", headers={"host": host})
    assert response.status_code == 403
    assert "--allow-host" in response.json()["detail"]


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
def test_this_machine_is_answered_by_all_its_names(client, host):
    assert client.get("/v1/models", headers={"host": host}).status_code == 200


def test_other_hosts_are_answered_when_they_are_named(client_with):
    with client_with("table", access=Access(hosts=("models.example",))) as client:
        assert client.get("/health", headers={"host": "models.example:443"}).status_code == 200
        assert client.get("/health").status_code == 403
    with client_with("table", access=Access(hosts=())) as client:
        assert client.get("/health", headers={"host": "anything.example"}).status_code == 200


def test_pages_of_other_sites_may_not_ask_unless_they_are_named(guarded):
    for origin in ("https://evil.example", "null", "http://localhost:9999"):
        response = guarded.post("/v1/explain", json=TEXT, headers={"origin": origin, **bearer("s3cret token")})
        assert response.status_code == 403
        assert "access-control-allow-origin" not in response.headers
    own = guarded.post("/v1/explain", json=TEXT, headers={"origin": "http://localhost", **bearer("s3cret token")})
    assert own.status_code == 200
    friend = {"origin": "https://friend.example"}
    response = guarded.post("/v1/explain", json=TEXT, headers={**friend, **bearer("s3cret token")})
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "https://friend.example"
    assert "Origin" in response.headers["vary"]
    asked = guarded.options("/v1/explain", headers={**friend, "access-control-request-method": "POST"})
    assert asked.status_code == 204
    assert "Authorization" in asked.headers["access-control-allow-headers"]
    assert guarded.options("/v1/explain", headers={"origin": "https://evil.example"}).status_code == 403
    assert guarded.get("/v1/models", headers=friend).headers["access-control-allow-origin"] == friend["origin"]
