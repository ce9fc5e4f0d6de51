"""The explorer behind the service: its page, its texts, and what it reads while somebody types."""

import gzip
import json

import pytest

from lexical_sae.explorer import STATIC
from lexical_sae.explorer.corpus import corpus_payload
from lexical_sae.models.persistence import from_pretrained
from lexical_sae.runs.texts import Corpus
from lexical_sae.serve import answers, corpora
from lexical_sae.serve.settings import Data
from lexical_sae.utils.errors import LexicalSAEError
from tests.serve.waiting import wait_until

ROWS = [("a good film", "positive"), ("a bad film", "negative"), ("the plot was boring", "negative")]
TEXTS = [text for text, _ in ROWS]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    file = tmp_path_factory.mktemp("texts") / "test.csv"
    file.write_text("\n".join(["text,label", *(f"{text},{label}" for text, label in ROWS)]) + "\n")
    return Data(str(file))


def state_of(client, model="table") -> dict:
    return client.get(f"/v1/models/{model}").json()["corpus"]


def payload(folder, texts, labels=None, **named) -> dict:
    return json.loads(json.dumps(corpus_payload(from_pretrained(folder), Corpus(texts, labels), **named)))


def test_the_page_is_at_the_root_with_every_file_that_it_loads(client):
    assert client.get("/").text == (STATIC / "index.html").read_text()
    for path in STATIC.iterdir():
        response = client.get(f"/{path.name}")
        assert response.status_code == 200
        assert response.content == path.read_bytes()
    assert client.get("/main.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/explorer.css").headers["content-type"].startswith("text/css")
    tag = client.get("/main.js").headers["etag"]
    assert client.get("/main.js", headers={"if-none-match": tag}).status_code == 304
    assert client.head("/main.js").status_code == 200
    assert client.get("/none.js").status_code == 404


def test_the_texts_are_made_once_and_kept_by_the_browser(client_with, folders, data):
    with client_with("table", data=data) as client:
        wait_until(lambda: state_of(client)["state"] == "ready")
        state = answers.CorpusState.model_validate(state_of(client))
        assert (state.name, state.texts, state.labelled, state.done) == ("test.csv", 3, True, 1.0)
        response = client.get("/v1/corpus/table")
        assert response.json() == payload(folders["table"], TEXTS, [2, 0, 0])
        assert response.headers["content-encoding"] == "gzip"
        assert response.headers["x-model-sha256"] == client.get("/v1/models/table").json()["sha256"]
        plain = client.get("/v1/corpus/table", headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.json() == response.json()
        kept = client.get("/v1/corpus/table", headers={"if-none-match": response.headers["etag"]})
        assert (kept.status_code, kept.content) == (304, b"")


def test_one_worker_makes_the_texts_for_all(client_with, data, monkeypatch):
    made = []
    monkeypatch.setattr(corpora, "corpus_payload", lambda *_: made.append(1) or {"made": len(made)})
    monkeypatch.setattr(corpora, "LOOK_AGAIN", 0.01)
    with client_with("table", data=data) as first:
        wait_until(lambda: state_of(first)["state"] == "ready")
        post = first.app.state.service.posts["table"]
        other = corpora.CorpusFile(post.served, data, post.corpus.folder.parent)
        wait_until(lambda: other.state()["state"] == "ready")
        other.close()
        assert json.loads(gzip.decompress(other.payload.read_bytes())) == {"made": 1}
    assert made == [1]


def test_a_failure_of_the_texts_is_told_and_the_service_answers_on(client_with, data, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("a good film")

    monkeypatch.setattr(corpora, "corpus_payload", broken)
    with client_with("table", data=data) as client:
        wait_until(lambda: state_of(client)["state"] == "failed")
        refused = client.get("/v1/corpus/table")
        assert refused.status_code == 503
        assert "RuntimeError" in refused.json()["detail"]
        assert client.post("/v1/explain", json={"texts": TEXTS}).status_code == 200
    assert "good film" not in caplog.text


def test_labels_that_the_model_has_not_end_the_start(client_with, tmp_path):
    file = tmp_path / "other.csv"
    file.write_text("text,label\na good film,sports\na bad film,positive\n")
    with pytest.raises(LexicalSAEError, match="'sports' is not a label"), client_with("table", data=Data(str(file))):
        pass


@pytest.mark.parametrize("name", ["table", "both"])
def test_codes_of_typed_texts_are_those_of_the_explorer(client, folders, name):
    response = client.post("/v1/codes", json={"model": name, "texts": TEXTS[:2]})
    answers.CodesAnswer.model_validate_json(response.content)
    assert response.json()["codes"] == payload(folders[name], TEXTS[:2], whole_table=False)
