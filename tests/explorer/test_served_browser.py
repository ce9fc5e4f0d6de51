"""The page with a service behind it: a stand-in that answers by the library, as the real one does."""

import json
import mimetypes
from urllib.parse import urlsplit

import pytest

from lexical_sae.explorer import STATIC
from lexical_sae.explorer.corpus import corpus_payload
from lexical_sae.inference import explain, predict_proba
from lexical_sae.runs.texts import Corpus
from tests.literal import TEXTS, literal_model

pytestmark = pytest.mark.browser
HOST = "http://explorer.test"
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
LABELS = ("negative", "neutral", "positive")
CORPUS = Corpus(TEXTS, [i % 3 for i in range(len(TEXTS))])
TYPED = "a wonderful film, not a boring plot"


class StandIn:
    """What the service would answer."""

    def __init__(self, model, token=None):
        self.model, self.token = model, token

    def __call__(self, route, request):
        path = urlsplit(request.url).path
        if not path.startswith("/v1/"):
            file = STATIC / (path.strip("/") or "index.html")
            kind = mimetypes.guess_type(file.name)[0]
            headers = {"Content-Security-Policy": POLICY, "Content-Type": kind or "text/plain"}
            return route.fulfill(body=file.read_bytes(), headers=headers)
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return self.say(route, {"detail": "a token is needed"}, 401)
        return self.say(route, *self.answer(path, json.loads(request.post_data or "{}")))

    @staticmethod
    def say(route, answer, status=200):
        route.fulfill(body=json.dumps(answer), status=status, headers={"Content-Type": "application/json"})

    def answer(self, path, asked):
        match path:
            case "/v1/models":
                state = {"name": "x.csv", "texts": 5, "labelled": True, "state": "ready", "done": 1, "detail": None}
                return [{"models": [{"name": "tiny", "tasks": ["classify"], "labels": LABELS, "corpus": state}]}]
            case "/v1/corpus/tiny":
                return [corpus_payload(self.model, CORPUS)]
            case "/v1/codes" if "too long" in asked["texts"][0]:
                return [{"detail": "The text is too long."}, 422]
            case "/v1/codes":
                return [{"codes": corpus_payload(self.model, Corpus(asked["texts"], None), whole_table=False)}]
            case "/v1/explain":
                why = explain(self.model, asked["texts"], causes=asked["causes"])
                return [{"explanations": [json.loads(one.to_json()) for one in why]}]
        return [{"detail": f"there is no {path}"}, 404]


@pytest.fixture(scope="module")
def model():
    return literal_model()


@pytest.fixture
def page(browser, model, request):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    made = context.new_page()
    complaints = []
    made.on("console", lambda message: complaints.append(message.text))
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.route("**/*", StandIn(model, getattr(request, "param", None)))
    made.goto(f"{HOST}/#/read")
    yield made
    expected = [line for line in complaints if "status of 4" not in line]
    assert expected == []
    context.close()


def chances(page):
    rows = page.locator("lx-read .labels li").all()
    cells = [(row.locator(".name").inner_text(), row.locator(".number").inner_text()) for row in rows]
    return {name: float(share.removesuffix("%")) / 100 for name, share in cells}


def test_typing_colours_the_words_and_shows_the_librarys_probabilities(page, model):
    page.wait_for_selector("html[data-ready]")
    page.get_by_label("Type or paste a text").fill(TYPED)
    page.wait_for_selector("button.word:has-text('wonderful')")
    assert chances(page) == pytest.approx(
        dict(zip(LABELS, predict_proba(model, TYPED).tolist(), strict=True)), abs=6e-4
    )
    assert page.evaluate("getComputedStyle(document.querySelector('.labels li')).display") == "grid"
    tinted = page.locator("button.word.for, button.word.against").all_inner_texts()
    assert {word.rstrip("↑↓↺") for word in tinted} >= {"wonderful", "film", "boring"}
    page.get_by_label("Type or paste a text").press_sequentially(" unseenly bad")
    page.wait_for_selector("button.word:has-text('bad')")
    longer = f"{TYPED} unseenly bad"
    assert chances(page) == pytest.approx(
        dict(zip(LABELS, predict_proba(model, longer).tolist(), strict=True)), abs=6e-4
    )


def test_what_the_service_refuses_is_said(page):
    page.wait_for_selector("html[data-ready]")
    page.get_by_label("Type or paste a text").fill("this is too long")
    page.wait_for_selector("text=The text is too long.")


@pytest.mark.parametrize("page", ["secret"], indirect=True)
def test_a_service_with_a_token_is_opened_by_it(page):
    page.get_by_label("This service asks for a token").fill("secret")
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-ready]")
    assert page.locator("button.word").count() > 0
