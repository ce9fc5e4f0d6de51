"""What cannot be answered is refused with a status and a sentence, and the service answers on."""

import json
import logging
import threading
from dataclasses import replace

import pytest

from lexical_sae.serve import questions
from lexical_sae.serve.answers import ProblemDocument
from lexical_sae.serve.problems import MEDIA_TYPE
from lexical_sae.serve.settings import Batching, Limits
from tests.serve.waiting import wait_until

JSON = {"content-type": "application/json"}
TEXT = {"texts": ["a good film"]}
SMALL = Limits(body_bytes=2000, texts=3, characters=40, all_characters=100, words=2, flip_seconds=2.0)


def check_refusal(response, status: int, *said: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == MEDIA_TYPE
    problem = ProblemDocument.model_validate_json(response.content)
    assert problem.status == status
    assert problem.request_id == response.headers["x-request-id"]
    for part in said:
        assert part in problem.detail
    assert "Traceback" not in response.text


@pytest.fixture(scope="module")
def small(client_with):
    with client_with("table", "both", limits=SMALL) as made:
        yield made


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/v1/explain", b"{", 400, "not JSON"),
        ("/v1/explain", b"\xff\xfe", 400, "not JSON"),
        ("/v1/explain", b'{"texts": ["\\ud800"]}', 400, "hex escape"),
        ("/v1/explain", b"[" * 1500, 400, "not JSON"),
        ("/v1/explain", b"[]", 422, "the body: Input should be an object"),
        ("/v1/explain", b"null", 422, "the body"),
        ("/v1/explain", {}, 422, "texts: Field required"),
        ("/v1/explain", {"texts": []}, 422, "texts: List should have at least 1 item"),
        ("/v1/explain", {"texts": "a good film"}, 422, "texts: Input should be a valid array"),
        ("/v1/explain", {"texts": [["a"]]}, 422, "texts.0: Input should be a valid string"),
        ("/v1/explain", {"texts": [None]}, 422, "texts.0: Input should be a valid string"),
        ("/v1/explain", {"texts": ["a"] * 4}, 422, "there are 4 texts, and a request may hold 3"),
        ("/v1/explain", {"texts": ["a" * 40] * 3}, 422, "the texts have 120 characters together"),
        ("/v1/explain", {"texts": ["a" * 41]}, 422, "the text has 41 characters, and this service reads 40"),
        ("/v1/explain", {**TEXT, "tob": 1}, 422, "tob is unknown; did you mean 'top'?"),
        ("/v1/explain", {**TEXT, "top": 0}, 422, "top: Input should be greater than or equal to 1"),
        ("/v1/explain", {**TEXT, "top": "1"}, 422, "top: Input should be a valid integer"),
        ("/v1/explain", {**TEXT, "method": "magic"}, 422, "method: Input should be 'dla'"),
        ("/v1/explain", {**TEXT, "abstain": 1.5}, 422, "abstain: Input should be less than 1"),
        ("/v1/explain", b'{"texts": ["a"], "abstain": NaN}', 422, "abstain: Input should be a finite number"),
        ("/v1/explain", TEXT, 422, "Say which model: this service has table, both"),
        ("/v1/explain", {**TEXT, "model": "tabel"}, 404, "did you mean 'table'?"),
        ("/v1/explain", {**TEXT, "model": "../table"}, 404, "There is no model"),
        ("/v1/explain", {**TEXT, "model": "both", "target": "positiv"}, 422, "did you mean 'positive'?"),
        ("/v1/explain", {**TEXT, "model": "both", "abstain": 0.9}, 422, "has no calibration"),
        ("/v1/what-if", {**TEXT, "model": "both"}, 422, "at least one word under 'suppress'"),
        ("/v1/what-if", {**TEXT, "model": "both", "suppress": ["a", "b", "c"]}, 422, "there are 3 words"),
        ("/v1/what-if", {**TEXT, "model": "both", "suppress": ["qqqq"]}, 422, "qqqq"),
        ("/v1/what-if", {**TEXT, "model": "both", "suppress": ["film", "Film"]}, 422, "given twice"),
        ("/v1/what-if", {**TEXT, "model": "both", "suppress": [""]}, 422, "suppress.0: String should have at least"),
        ("/v1/what-if", {**TEXT, "model": "both", "set": {"film": {"positive": 1}}}, 422, "no table of words"),
        ("/v1/what-if", {**TEXT, "model": "table", "set": {"film": {"positiv": 1}}}, 422, "did you mean 'positive'?"),
        ("/v1/what-if", {**TEXT, "model": "table", "set": {"film": {}}}, 422, "set.film"),
        ("/v1/what-if", {**TEXT, "model": "table", "set": {"a good film": {"positive": 1}}}, 422, "not one word"),
        (
            "/v1/what-if",
            {**TEXT, "model": "table", "set": {"Film": {"positive": 1}}, "suppress": ["film"]},
            422,
            "has a new weight, but is suppressed",
        ),
        ("/v1/flip", {"model": "both", "text": "a good film", "seconds": 3}, 422, "3 seconds are more than the 2"),
        ("/v1/flip", {"model": "both", "text": "a good film", "to": "x"}, 422, "to 'x' is not a label"),
        ("/v1/tag", {"model": "table", "texts": ["a"]}, 422, "does not tag words; it can: classify"),
        ("/v1/models/none:predict", {"instances": ["a"]}, 404, "There is no model 'none'"),
        ("/v1/models/both:predict", {"instances": ["a"], "parameters": {"top": 1}}, 422, "parameters.top is unknown"),
        ("/v1/models/both:train", {"instances": ["a"]}, 405, "does not take that method"),
    ],
)
def test_a_request_that_cannot_be_meant_gets_a_sentence(small, path, body, status, said):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    check_refusal(small.post(path, content=content, headers=JSON), status, said)
    assert small.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/v1/lexicon?model=both", 422, "no table of words"),
        ("/v1/lexicon?model=table&top=0", 422, "top: Input should be greater"),
        ("/v1/lexicon?model=table&tob=1", 422, "did you mean 'top'?"),
        ("/v1/lexicon?model=table&label=x", 422, "label 'x' is not a label"),
        ("/v1/corpus/table", 404, "--data texts.csv"),
        ("/v1/models/x", 404, "There is no model 'x'"),
        ("/v1/explain", 405, "does not take that method"),
        ("/..%2f..%2fetc/passwd", 404, "nothing at this address"),
        ("/docs/..%2f..%2fapp.py", 404, "nothing at this address"),
    ],
)
def test_addresses_that_lead_nowhere_get_a_sentence(small, path, status, said):
    check_refusal(small.get(path), status, said)


def test_a_large_body_is_refused_whether_its_size_is_declared_or_not(small):
    body = json.dumps({"texts": ["a" * 3000]}).encode()
    check_refusal(small.post("/v1/explain", content=body, headers=JSON), 413, "larger than 2,000 bytes")
    check_refusal(small.post("/v1/explain", content=iter([body]), headers=JSON), 413, "larger than 2,000 bytes")
    lying = {**JSON, "content-length": "9" * 5000}
    check_refusal(small.post("/v1/explain", content=b"{}", headers=lying), 413, "larger than 2,000 bytes")


def test_a_body_of_another_kind_is_refused(small):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        response = small.post("/v1/explain", content=b"{}", headers={"content-type": kind})
        check_refusal(response, 415, "must be application/json")


def test_a_full_queue_and_a_slow_answer_are_refused_and_what_was_taken_is_answered(client_with, monkeypatch):
    may_go, began = threading.Event(), threading.Event()
    own = questions.Explain.answer

    def slowly(self, served, items):
        began.set()
        assert may_go.wait(20)
        return own(self, served, items)

    limits = replace(SMALL, waiting=1)
    with client_with("table", limits=limits, batching=Batching(texts=1)) as client:
        monkeypatch.setattr(questions.Explain, "answer", slowly)
        lane, found, threads = client.app.state.service.posts["table"].quick, [], []
        for is_taken in (began.is_set, lambda: lane.waiting == 1):
            thread = threading.Thread(target=lambda: found.append(client.post("/v1/explain", json=TEXT)))
            thread.start()
            threads.append(thread)
            wait_until(is_taken)
        refused = client.post("/v1/explain", json=TEXT)
        check_refusal(refused, 429, "1 texts wait already")
        assert refused.headers["retry-after"] == "1"
        may_go.set()
        for thread in threads:
            thread.join(20)
        assert [response.status_code for response in found] == [200, 200]
    with client_with("table", limits=replace(SMALL, seconds=0.05)) as client:
        may_go.clear()
        threading.Timer(0.5, may_go.set).start()
        check_refusal(client.post("/v1/explain", json=TEXT), 503, "no answer within 0.05 seconds")
        assert may_go.wait(20)


def test_a_broken_identity_is_an_error_and_never_an_answer(client_with, monkeypatch):
    own = questions.explain

    def broken(*arguments, **named):
        found = own(*arguments, **named)
        return [replace(why, identity_error=2e-5 if "bad" in why.text else why.identity_error) for why in found]

    monkeypatch.setattr(questions, "explain", broken)
    with client_with("table") as client:
        for path, key in (("/v1/explain", "texts"), ("/v1/models/table:predict", "instances")):
            check_refusal(
                client.post(path, json={key: ["a good film", "a bad film"]}), 500, "do not sum to the decision"
            )
            assert client.post(path, json={key: ["a good film"]}).status_code == 200
        asked = {"texts": ["a bad film"], "suppress": ["bad"]}
        check_refusal(client.post("/v1/what-if", json=asked), 500, "do not sum")


def test_a_bug_is_an_error_without_details_and_no_text_is_logged(client_with, monkeypatch, caplog):
    def buggy(_self, _served, items):
        raise RuntimeError(f"cannot read {items}")

    monkeypatch.setattr(questions.Explain, "answer", buggy)
    caplog.set_level(logging.DEBUG)
    with client_with("table") as client:
        response = client.post("/v1/explain", json={"texts": ["my secret text"]})
        check_refusal(response, 500, "bug in lexical-sae", response.headers["x-request-id"])
        assert client.post("/v1/models/table:predict", json={"instances": ["my secret text"]}).status_code == 200
    assert "secret" not in response.text
    assert "RuntimeError" in caplog.text
    assert "buggy" in caplog.text
    assert "secret" not in caplog.text


def test_a_service_that_is_closing_takes_nothing_more(client_with):
    with client_with("table") as client:
        client.app.state.service.is_closing = True
        check_refusal(client.post("/v1/explain", json=TEXT), 503, "shutting down")
        check_refusal(client.get("/ready"), 503, "shutting down")
        assert client.get("/health").status_code == 200
