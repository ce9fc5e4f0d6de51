"""The page in a real browser: what people do with it, and what may never happen."""

import re

import pytest

from lexical_sae.explorer import STATIC
from lexical_sae.explorer.corpus import corpus_payload
from lexical_sae.explorer.page import page_html
from lexical_sae.inference import explain, predict, predict_proba
from lexical_sae.intervene import SuppressedModel
from lexical_sae.runs.texts import Corpus
from tests import tiny
from tests.literal import TEXTS, UNSEEN, literal_model
from tests.report.explanations import NASTY

pytestmark = pytest.mark.browser
ALL = [*TEXTS, *UNSEEN]
GOLD = [i % 3 for i in range(len(ALL))]
VIEWS = ("overview", "read", "corpus", "words", "compare", "health")
LABELS = ("negative", "neutral", "positive")
TEXT = 3
WORD = "church"


def model_data(model, texts=ALL, name="tiny"):
    codes = corpus_payload(model, Corpus(texts, [i % 3 for i in range(len(texts))]))
    rows = [["accuracy", "50.0%", "on test texts"], ["context-free accuracy", "48.0%", name]]
    about = {"name": name, "about": name, "address": name, "accuracies": rows}
    return {**about, "codes": codes, "measures": [{"heading": name, "rows": [[name, name, name]]}]}


@pytest.fixture(scope="module")
def model():
    return literal_model()


@pytest.fixture(scope="module")
def written(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    nasty = [f"a good {one} film" for one in NASTY]
    bad = model_data(model, nasty, " ".join(NASTY))
    bad["codes"]["labels"] = [f"{one} {NASTY[0]}" for one in LABELS]
    bad["codes"]["words"]["names"][0] = NASTY[0]
    pages = {
        "ordinary": [model_data(model)],
        "pair": [model_data(model), model_data(SuppressedModel(model, ["film"]), name="other")],
        "opaque": [model_data(tiny.model())],
        "fixed": [model_data(literal_model(context=None))],
        "nasty": [bad],
    }
    for name, models in pages.items():
        (folder / f"{name}.html").write_text(page_html("nasty" if name == "nasty" else "tiny", models))
    return folder


@pytest.fixture(scope="module")
def opened(browser):
    """Opens an address in a page of which all complaints and requests are kept."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(10_000)
    kept = []

    def go(address):
        page = context.new_page()
        page.complaints, page.asked = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        kept.append(page)
        return page

    yield go
    context.close()


@pytest.fixture
def page(opened, written):
    made = opened((written / "ordinary.html").as_uri())
    yield made
    assert made.complaints == []
    assert [address for address in made.asked if not address.startswith(("file:", "data:", "blob:"))] == []
    made.close()


def visit(page, address):
    page.evaluate("address => { location.hash = address }", address)
    page.wait_for_selector(f"lx-{address.removeprefix('#/').partition('?')[0]}")


def chances(page):
    rows = page.locator("lx-read .labels li").all()
    cells = [(row.locator(".name").inner_text(), row.locator(".number").inner_text()) for row in rows]
    return {name: float(share.removesuffix("%")) / 100 for name, share in cells}


def expected(model, text):
    return dict(zip(LABELS, predict_proba(model, text).tolist(), strict=True))


def test_suppressing_a_word_gives_the_librarys_probabilities_and_undo_brings_the_old_ones_back(page, model):
    visit(page, f"#/read?text={TEXT}")
    before = expected(model, ALL[TEXT])
    assert chances(page) == pytest.approx(before, abs=6e-4)
    page.get_by_role("button", name=re.compile(f"^{WORD}: ")).click()
    after = expected(SuppressedModel(model, [WORD]), ALL[TEXT])
    assert chances(page) == pytest.approx(after, abs=6e-4)
    assert before != pytest.approx(after, abs=1e-2)
    assert page.get_by_role("button", name=f"{WORD}: suppressed").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="undo").click()
    assert chances(page) == pytest.approx(before, abs=6e-4)
    page.get_by_role("button", name="redo").click()
    assert chances(page) == pytest.approx(after, abs=6e-4)


def test_the_waterfall_ends_at_the_librarys_logit_for_the_question_that_was_asked(page, model):
    visit(page, f"#/read?text={TEXT}&why=neutral&not=positive")
    why = explain(model, ALL[TEXT], target="neutral", contrast="positive", effects=False)
    total = float(page.locator("[data-sum]").inner_text().replace("−", "-"))
    assert total == pytest.approx(why.explained, abs=6e-3)
    words = page.locator("lx-read .waterfall tbody th").all_inner_texts()
    assert words[: len(why.words)] == [word.word for word in why.words if abs(word.contribution) > 0][: len(words)]


def test_changing_a_weight_decides_all_texts_again_and_tells_accuracy_and_labels_that_change(page):
    visit(page, "#/words?word=film")
    before = page.get_by_role("spinbutton", name="Weight for negative").input_value()
    page.get_by_role("spinbutton", name="Weight for negative").fill("9")
    page.get_by_role("spinbutton", name="Weight for negative").press("Tab")
    effect = page.locator("[data-effect]").inner_text()
    changed = int(re.search(r"(\d+) labels? of", effect)[1])
    assert changed > 0
    assert page.locator(".changes li").count() == changed
    assert page.locator("[data-accuracy]").is_visible()
    page.keyboard.press("Control+z")
    assert page.get_by_role("spinbutton", name="Weight for negative").input_value() == before


def test_the_saved_table_is_what_the_edit_command_reads(page):
    visit(page, "#/words?word=church")
    page.locator("[data-key=suppress]").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="save as words.csv").click()
    lines = saved.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "word,weight:negative,weight:neutral,weight:positive,texts,suppress"
    assert re.fullmatch(r"church,-?[\d.]+,-?[\d.]+,-?[\d.]+,,true", lines[1])


def test_figures_of_other_texts_stand_beside_those_of_the_run_and_replace_none(page, model):
    visit(page, "#/overview")
    right = sum(LABELS[gold] == label for gold, label in zip(GOLD, predict(model, ALL), strict=True))
    names = page.locator(".tiles .name").all_inner_texts()
    assert names == ["accuracy here", "accuracy", "context-free accuracy"]
    assert page.locator(".tiles b").all_inner_texts()[:2] == [f"{right / len(ALL):.1%}", "50.0%"]


def test_a_cell_of_the_confusion_matrix_opens_its_texts_and_the_words_responsible(page, model):
    visit(page, "#/corpus")
    decided = predict(model, ALL)
    pairs = [(LABELS[gold], label) for gold, label in zip(GOLD, decided, strict=True)]
    wrong = next(pair for pair in pairs if pair[0] != pair[1])
    page.get_by_role("button", name=f"labelled {wrong[0]}, decided {wrong[1]}").click()
    page.wait_for_selector("#responsible")
    assert page.locator(".texts tbody tr").count() == pairs.count(wrong)


def test_texts_are_found_by_words_letters_and_errors(page, model):
    visit(page, "#/corpus?word=film")
    assert page.locator(".texts tbody tr").count() == sum("film " in f"{text} " for text in ALL)
    visit(page, "#/corpus?query=DOG")
    page.wait_for_function("document.querySelectorAll('.texts tbody tr').length === 1")
    visit(page, "#/corpus?show=wrong")
    wrong = sum(label != LABELS[gold] for label, gold in zip(predict(model, ALL), GOLD, strict=True))
    page.wait_for_function(f"document.querySelectorAll('.texts tbody tr').length === {wrong}")


def test_a_shared_address_carries_the_question_and_the_edit(opened, written, model):
    hash_ = f'#/read?text={TEXT}&edit={{"suppressed":["{WORD}"],"weights":{{}}}}'
    page = opened((written / "ordinary.html").as_uri() + hash_)
    assert chances(page) == pytest.approx(expected(SuppressedModel(model, [WORD]), ALL[TEXT]), abs=6e-4)
    page.close()


def test_everything_is_reached_and_done_by_keyboard(page):
    visit(page, f"#/read?text={TEXT}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.innerText")
        if name.startswith(f"{WORD}: "):
            break
        seen.add(name)
    page.keyboard.press("Enter")
    assert page.locator("[data-edits]").inner_text() == "Edited: 1 word"
    # Everything was drawn anew, and the word still has the focus.
    assert page.evaluate("document.activeElement.ariaLabel") == f"{WORD}: suppressed"
    reachable = "a[href], button:not(:disabled), select, input, textarea, summary"
    hidden = page.evaluate(f"[...document.querySelectorAll('{reachable}')].filter(e => e.tabIndex < 0).length")
    assert hidden == 0


@pytest.mark.parametrize("view", VIEWS)
def test_strings_from_outside_stay_text_in_every_view(opened, written, view):
    page = opened((written / "nasty.html").as_uri() + f"#/{view}")
    tags = set(page.evaluate("[...document.querySelectorAll('lx-app *')].map(e => e.tagName)"))
    assert tags.isdisjoint({"SCRIPT", "IMG", "IFRAME", "SVG", "STYLE", "LINK", "FORM", "OBJECT"})
    attributes = page.evaluate("[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())")
    assert not [name for name in attributes if name.startswith("on")]
    if view in ("read", "corpus"):
        assert "<" in page.locator("lx-app").inner_text()
    assert page.complaints == []
    page.close()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_a_phone_in_both_themes(browser, written, view):
    for theme in ("light", "dark"):
        context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme=theme)
        page = context.new_page()
        page.goto((written / "pair.html").as_uri() + f"#/{view}")
        page.wait_for_selector(f"lx-{view}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate(
            "[...document.querySelectorAll('nav a')].every(e => e.getBoundingClientRect().right <= 390)"
        )
        context.close()


def test_two_models_are_compared_on_the_same_texts(opened, written, model):
    page = opened((written / "pair.html").as_uri() + "#/compare")
    ours, theirs = predict(model, ALL), predict(SuppressedModel(model, ["film"]), ALL)
    differ = sum(a != b for a, b in zip(ours, theirs, strict=True))
    assert page.locator("lx-compare .tiles b").nth(2).inner_text() == str(differ)
    assert differ > 0
    page.close()


def test_a_model_that_is_no_table_offers_no_edit_and_says_why(opened, written):
    page = opened((written / "opaque.html").as_uri() + "#/read?text=0")
    assert "hidden layer" in page.locator("lx-read").inner_text()
    assert page.locator("button.word").count() == 0
    visit(page, "#/words")
    assert page.locator("[data-key=suppress]").count() == 0
    assert page.complaints == []
    page.close()


def test_of_a_model_without_context_nothing_is_said_about_context(opened, written):
    for name, is_said in (("fixed", False), ("ordinary", True)):
        page = opened((written / f"{name}.html").as_uri())
        for place in ("#/overview", "#/read?text=0", "#/words?word=film", "#/health"):
            visit(page, place)
            said = (
                page.locator(f"lx-{place.removeprefix('#/').partition('?')[0]}")
                .inner_text()
                .replace("context-free", "")
            )
            assert ("context" in said.replace("without context", "").lower()) == is_said, place
        page.close()


def test_the_browser_refuses_another_script(browser, written, tmp_path):
    changed = tmp_path / "changed.html"
    changed.write_text((written / "ordinary.html").read_text().replace("</script>\n</body>", "//</script>\n</body>"))
    page = browser.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(changed.as_uri())
    assert any("Content Security Policy" in line for line in complaints)
    assert page.locator("html[data-ready]").count() == 0
    page.close()


def test_the_page_without_its_data_is_small():
    assert sum(path.stat().st_size for path in STATIC.iterdir()) <= 300_000
