"""The decision log: a chain that shows any change, and texts as keyed hashes."""

import json
import threading

import pytest

from lexical_sae.serve.decision_log import START, Decision, DecisionLog, verify
from lexical_sae.utils.errors import SavedFileError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.jsonl"


def written(path, count=5, **settings) -> list[str]:
    log = DecisionLog(path, **settings)
    for number in range(count):
        log.add("m", "abc", f"id-{number}", "explain", [Decision(f"text {number}", "positive", 0.5)])
    return path.read_text().splitlines()


def test_each_line_holds_the_hash_of_the_one_before(path):
    lines = [json.loads(line) for line in written(path)]
    assert [line["number"] for line in lines] == [1, 2, 3, 4, 5]
    assert [line["previous"] for line in lines] == [START, *(line["hash"] for line in lines[:-1])]
    assert verify(path) == 5


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:2], *lines[3:]],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [*lines[:2], lines[2].replace("positive", "negative"), *lines[3:]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: lines[1:],
        lambda lines: [*lines[:2], "{}", *lines[3:]],
        lambda lines: [*lines[:2], "", *lines[2:]],
    ],
)
def test_a_line_that_is_changed_moved_or_gone_breaks_the_chain(path, change):
    path.write_text("\n".join(change(written(path))) + "\n")
    with pytest.raises(SavedFileError, match="not the line that was written there"):
        verify(path)


def test_texts_are_not_written_but_can_be_recognised_with_the_key(path, tmp_path):
    (line,) = written(path, 1)
    assert "text 0" not in line
    assert json.loads(line)["text_hmac"] == DecisionLog(path).hmac_of("text 0")
    assert DecisionLog(tmp_path / "other.jsonl").hmac_of("text 0") != DecisionLog(path).hmac_of("text 0")
    assert path.with_name("decisions.jsonl.key").stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o077 == 0


def test_texts_are_written_when_asked(path):
    assert [json.loads(line)["text"] for line in written(path, 2, with_texts=True)] == ["text 0", "text 1"]
    assert verify(path) == 2


def test_a_log_goes_on_after_a_restart_also_if_its_last_line_was_cut_off(path):
    written(path, 3)
    path.write_bytes(path.read_bytes() + b'{"number": 4, "ti')
    assert len(written(path, 2)) == 5
    assert verify(path) == 5


def test_a_line_longer_than_what_is_read_at_once_is_found(path):
    log = DecisionLog(path, with_texts=True)
    for text in ("x" * 50_000, "short", "y" * 9_000):
        log.add("m", "abc", "id", "explain", [Decision(text, "positive", None)])
    assert verify(path) == 3


def test_several_writers_keep_one_chain(path):
    logs = [DecisionLog(path) for _ in range(4)]

    def write(log):
        for number in range(25):
            log.add("m", "abc", "id", "predict", [Decision(str(number), "positive", 0.5)] * 2)

    threads = [threading.Thread(target=write, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verify(path) == 200


def test_a_file_of_another_kind_is_not_written_to(path):
    path.write_text("my notes\n")
    with pytest.raises(SavedFileError, match="does not end with a line of a decision log"):
        written(path, 1)
    assert path.read_text() == "my notes\n"


def test_the_service_logs_its_decisions_and_answers_nothing_that_it_cannot_log(client_with, path):
    with client_with("table", "both", decision_log=path) as client:
        explained = client.post("/v1/explain", json={"model": "table", "texts": ["a good film", "a bad film"]})
        client.post("/v1/models/both:predict", json={"instances": ["a good film"]})
        client.post("/v1/tag", json={"model": "both", "texts": ["a good film"]})
        client.post("/v1/what-if", json={"model": "table", "texts": ["a good film"], "suppress": ["film"]})
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [(line["model"], line["asked"]) for line in lines] == [
            ("table", "explain"),
            ("table", "explain"),
            ("both", "predict"),
            ("both", "tag"),
        ]
        assert lines[0]["request_id"] == explained.json()["request_id"]
        assert [line["label"] for line in lines[:2]] == [why["label"] for why in explained.json()["explanations"]]
        assert verify(path) == 4
        assert "film" not in path.read_text()
        path.write_text("not a log\n")
        refused = client.post("/v1/explain", json={"model": "table", "texts": ["a good film"]})
        assert refused.status_code == 500
        assert "explanations" not in refused.text
