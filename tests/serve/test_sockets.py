"""The service on a real socket: slow, broken and leaving clients, and a shutdown that finishes what was taken."""

import json
import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

import httpx2 as httpx
import pytest
import uvicorn

from lexical_sae.serve import questions
from lexical_sae.serve.app import build_app
from lexical_sae.serve.server import server_config
from lexical_sae.serve.settings import Limits, Settings
from tests.serve.waiting import wait_until

QUICK = Limits(head_seconds=0.4, body_seconds=0.4, connections=20)
BODY = json.dumps({"texts": ["a good film"]}).encode()
POST = (
    b"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    % len(BODY)
)


@contextmanager
def running(folders, spool, limits):
    """A server in a thread, and its address; it has stopped when this ends."""
    settings = Settings(models=(("table", folders["table"]),), spool=spool, limits=limits)
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(server_config(partial(build_app, settings), settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield server, bound.getsockname()
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def address(folders, tmp_path_factory):
    with running(folders, tmp_path_factory.mktemp("spool"), QUICK) as (_, place):
        yield place


def answer_to(address, *parts: bytes, pause: float = 0.0) -> bytes:
    """Everything that comes back before the connection is closed, and nothing if it is closed at once."""
    with socket.create_connection(address, timeout=10) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(pause)
        found = b""
        try:
            while part := connection.recv(65536):
                found += part
        except ConnectionResetError:
            pass
        return found


def check_alive(address) -> None:
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(POST + BODY)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([b""], b"408"),
        ([b"GET /health HTTP/1.1\r\n", *[b"X-A: b\r\n"] * 6], b"408"),
        ([POST, b"{", b'"'], b"408"),
        ([b"no http at all\r\n\r\n"], b"400"),
        ([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"], b"4"),
        ([b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000], b"400"),
        ([b"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n"], b"400"),
        ([b"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"], b"4"),
    ],
)
def test_a_slow_or_broken_request_gets_a_status_and_the_service_lives(address, parts, status):
    started = time.monotonic()
    found = answer_to(address, *parts, pause=0.1 if len(parts) > 1 else 0.0)
    assert found.startswith(b"HTTP/1.1 " + status), found[:200]
    assert time.monotonic() - started < 8
    check_alive(address)


def test_many_slow_clients_do_not_keep_others_out(address):
    slow = [socket.create_connection(address) for _ in range(QUICK.connections + 5)]
    for connection in slow:
        with suppress(OSError):
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
    time.sleep(QUICK.head_seconds + 0.3)
    check_alive(address)
    for connection in slow:
        connection.close()


def test_a_connection_serves_several_requests_and_pauses_between_them(address):
    with httpx.Client(base_url=f"http://127.0.0.1:{address[1]}") as client:
        for _ in range(3):
            assert client.post("/v1/explain", content=BODY, headers={"content-type": "application/json"}).is_success
            # Longer than a head may take: between requests nobody is slow.
            time.sleep(QUICK.head_seconds + 0.1)


def test_a_client_that_leaves_does_no_harm(address):
    for part in (POST, POST + BODY[:5], POST + BODY):
        with socket.create_connection(address) as connection:
            connection.sendall(part)
    check_alive(address)


def test_parallel_bad_requests_get_their_own_answers(address):
    bad = [b"{", b"[]", BODY, b'{"texts": [1]}']
    status = {b"{": 400, b"[]": 422, BODY: 200, b'{"texts": [1]}': 422}
    found = []

    def ask(body):
        with httpx.Client(base_url=f"http://127.0.0.1:{address[1]}") as client:
            for _ in range(5):
                made = client.post("/v1/explain", content=body, headers={"content-type": "application/json"})
                found.append((made.status_code, status[body]))

    threads = [threading.Thread(target=ask, args=(body,)) for body in bad * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40
    assert all(got == wanted for got, wanted in found)


def test_a_shutdown_answers_what_was_taken_and_takes_nothing_more(folders, tmp_path, monkeypatch):
    may_go, began = threading.Event(), threading.Event()
    own = questions.Explain.answer

    def slowly(self, served, items):
        began.set()
        assert may_go.wait(20)
        return own(self, served, items)

    monkeypatch.setattr(questions.Explain, "answer", slowly)
    found = []
    limits = replace(QUICK, head_seconds=10, body_seconds=10)
    with running(folders, tmp_path, limits) as (server, address):
        taken = threading.Thread(target=lambda: found.append(answer_to(address, POST + BODY)))
        taken.start()
        assert began.wait(20)
        server.should_exit = True
        wait_until(lambda: not server.servers[0].is_serving())
        with pytest.raises(OSError, match="refused|reset"):
            socket.create_connection(address, timeout=10).recv(1)
        assert not found
        may_go.set()
        taken.join(20)
    assert found[0].startswith(b"HTTP/1.1 200 ")
    assert b'"explanations"' in found[0]
