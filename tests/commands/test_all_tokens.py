"""What is listed by default: whole words by name and one sum for the rest, in every command and view, for each recipe.

What counts as noise is said here anew, by how a name looks, so that the filter is not checked against itself.
"""

import json
import re
from html.parser import HTMLParser

import pytest
import torch
import typer
from rich.console import Console
from typer.testing import CliRunner

from lexical_sae.commands import corpus as corpora
from lexical_sae.commands import explain as explaining
from lexical_sae.commands import tag as tagging
from lexical_sae.inference import explain
from lexical_sae.inference.tag_explaining import explain_tags
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.layers.shapes import ShapeFeatures
from lexical_sae.models.lexical_sae import TAG, LexicalSAE
from lexical_sae.models.persistence import from_pretrained, save_pretrained
from lexical_sae.recipes import RECIPES, recipe_by_name
from tests import tiny

TEXTS = [
    "happily playing, the unhappy dogs played!",
    "a good film with a boringly bad plot.",
    "Muslims play films?",
    "the bank, the river",
]
TEXT = TEXTS[0]
TOKENIZERS = {"wordpiece": tiny.wordpiece, "byte_bpe": tiny.byte_bpe}
# Literal words are whole words and tag nothing: there is no piece to leave out.
CASES = [*((recipe, "wordpiece") for recipe in RECIPES if recipe != "anchored"), ("cajt", "byte_bpe")]
ANY_WORD = {"neighbourhood": None}
"""As taggers are configured: every token may open every dimension, word pieces too."""

app = typer.Typer()
for command in (explaining.explain, explaining.why_not, explaining.flip, tagging.tag, corpora.lexicon, corpora.diff):
    app.command(command.__name__.replace("_", "-"))(command)


def is_noise(name: str) -> bool:
    """Whether a name is a continuation, a special token, punctuation, or a number."""
    return name.startswith(("##", "[", "<")) or not name[:1].isalpha()


def made(recipe: str, cut: str, seed: int = 1, **parts) -> LexicalSAE:
    config = recipe_by_name(recipe).model.model_copy(update={"shapes": ShapeFeatures.Config(), **parts})
    tokenizer = TOKENIZERS[cut]()
    torch.manual_seed(seed)
    backbone = Backbone(tiny.masked_lm(vocab_size=len(tokenizer)), tokenizer)
    labels = {"classify": ["negative", "neutral", "positive"], "tag": ["O", "B-PER", "I-PER", "B-LOC"]}
    model = LexicalSAE(config, backbone, labels)
    model.start_from_backbone()
    with torch.no_grad():
        # So that every sentence has entities to explain.
        model.head(TAG).class_bias[0] -= 5
    return model.eval()


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def saved(request, tmp_path_factory):
    """A tiny model of each recipe and tokenizer in which word pieces may be active."""
    return save_pretrained(made(*request.param, **ANY_WORD), tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS) + "\n")
    return path


@pytest.fixture
def run(monkeypatch):
    for script in (explaining, tagging, corpora):
        monkeypatch.setattr(script, "console", Console(width=160))
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False).stdout


class Cells(HTMLParser):
    """The first cell and the first number of every row of a page's tables, and all that is told in words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.alts: list[str] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag == "td" and self.rows:
            self.rows[-1].append("")
        elif tag == "img":
            self.alts.append(dict(attrs)["alt"])
        self.inside = tag in ("td", "strong", "b", "i", "span") and bool(self.rows)

    def handle_data(self, data):
        if self.inside and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()

    @property
    def named(self) -> list[tuple[str, float]]:
        numbers = [
            (row[0], [cell for cell in row[1:] if re.fullmatch(r"[+-]\d+\.\d\d", cell)]) for row in self.rows if row
        ]
        return [(name, float(found[0])) for name, found in numbers if found]


def printed_rows(output: str) -> list[tuple[str, float]]:
    """The rows of the table of words in the terminal, from its header to the sum."""
    lines = [line.strip("│ \n") for line in output.splitlines()]
    begin = next(i for i, line in enumerate(lines) if re.match(r"word +contribution", line))
    found = [re.match(r"(\S.*?) +([+-]\d+\.\d\d)(?!\d)", line) for line in lines[begin + 1 :]]
    rows = [(row[1], float(row[2])) for row in found if row]
    end = [name for name, _ in rows].index("sum")
    return rows[: end + 1]


def assert_adds_up(rows: list[tuple[str, float]]) -> None:
    """The last row is the sum of the others, but for two decimals each."""
    *parts, (_, total) = rows
    assert sum(amount for _, amount in parts) == pytest.approx(total, abs=0.0051 * len(rows))


def steps_of(told: str) -> list[tuple[str, float]]:
    """What the text beside a waterfall says, its total last."""
    steps, total = told.rsplit("; together ", 1)
    parts = [step.rsplit(" ", 1) for step in steps.split(", ") if " " in step]
    return [*((name, float(amount)) for name, amount in parts), ("together", float(total))]


def names_of(rows: list[tuple[str, float]]) -> list[str]:
    """Names of single dimensions among rows; sums of several have a count first."""
    sums = re.compile(
        r"\d+ (other words?|pieces and symbols|piece or symbol)|bias \(this input\)|sum|decision|together"
    )
    return [name for name, _ in rows if not sums.match(name)]


def assert_shows(rows: list[tuple[str, float]], *, all_tokens: bool) -> None:
    """No piece among the rows and one row for all of them; or, when asked for, the other way round."""
    assert_adds_up(rows)
    assert any(map(is_noise, names_of(rows))) == all_tokens
    assert any(re.match(r"\d+ pieces? (and|or) symbols?", name) for name, _ in rows) != all_tokens


def flag(all_tokens: bool) -> tuple[str, ...]:
    return ("--all-tokens",) if all_tokens else ()


@pytest.mark.parametrize("all_tokens", [False, True])
def test_the_terminal_names_words_and_adds_up(saved, run, all_tokens):
    for asked in (("explain", saved, TEXT), ("tag", saved, TEXT, "--why", "playing")):
        assert_shows(printed_rows(run(*asked, "--top", 999, *flag(all_tokens))), all_tokens=all_tokens)
    few = printed_rows(run("explain", saved, TEXT, "--top", 2, *flag(all_tokens)))
    assert_adds_up(few)
    assert len(names_of(few)) == 2


@pytest.mark.parametrize("all_tokens", [False, True])
def test_json_names_words_and_adds_up(saved, run, texts, all_tokens):
    label = json.loads(run("explain", saved, TEXT, "--json"))["label"]
    other = next(name for name in ("negative", "positive") if name != label)
    lines = run("explain", saved, "--file", texts, "--json", *flag(all_tokens)).splitlines()
    lines += run("why-not", saved, TEXT, other, "--json", *flag(all_tokens)).splitlines()
    windows = run("explain", saved, TEXT, "--windows", "--json", *flag(all_tokens)).splitlines()
    lines += [json.dumps(json.loads(line)["explanation"]) for line in windows]
    lines += run("tag", saved, TEXT, "--why", "playing", "--json", *flag(all_tokens)).splitlines()[1:]
    assert len(lines) == len(TEXTS) + 3
    for line in lines:
        found = json.loads(line)
        assert any(is_noise(word["word"]) for word in found["words"]) == all_tokens
        assert (found["pieces"] is None) == all_tokens == found["all_tokens"]
        pieces = found["pieces"]["contribution"] if found["pieces"] else 0.0
        total = sum(word["contribution"] for word in found["words"]) + pieces + found["bias"]
        assert total == pytest.approx(found["explained"], abs=1e-5)


@pytest.mark.parametrize("all_tokens", [False, True])
def test_pages_name_words_and_add_up(saved, run, texts, tmp_path, all_tokens):
    run("explain", saved, "--file", texts, "--html", tmp_path / "why.html", *flag(all_tokens))
    run("tag", saved, *TEXTS, "--html", tmp_path / "tags.html", *flag(all_tokens))
    for page in ("why.html", "tags.html"):
        cells = Cells((tmp_path / page).read_text())
        assert [name for name, _ in cells.named].count("decision") >= len(TEXTS)
        rows: list[tuple[str, float]] = []
        for row in cells.named:
            rows.append(row)
            if row[0] == "decision":
                assert_adds_up(rows)
                assert all_tokens or not any(map(is_noise, names_of(rows)))
                rows = []
        for told in filter(lambda alt: "; together" in alt, cells.alts):
            assert all_tokens or not any(map(is_noise, names_of(steps_of(told))))
        shown = any(map(is_noise, names_of(cells.named)))
        assert shown == all_tokens


@pytest.mark.parametrize("all_tokens", [False, True])
def test_python_views_name_words_while_its_data_is_complete(saved, all_tokens):
    model = from_pretrained(saved)
    for why in (
        explain(model, TEXT, all_tokens=all_tokens),
        explain_tags(model, TEXT, [1], all_tokens=all_tokens)[0],
    ):
        assert any(is_noise(word.word) for word in why.words)
        assert sum(word.contribution for word in why.words) + why.bias == pytest.approx(why.explained, abs=1e-5)
        names = {word.word for word in why.words if is_noise(word.word)}
        assert len(why.to_frame()) == len(why.words)
        top = len(why.words)
        told = re.search("<desc>(.*)</desc>", why.svg(top))[1]
        assert all_tokens == any(is_noise(name) for name in names_of(steps_of(told)) if name in names)
        html = Cells(why._repr_html_())
        assert_adds_up(html.named)
        if not all_tokens:
            assert not any(map(is_noise, names_of([*html.named, *printed_rows(str(why))])))
            assert "symbol" in str(why)


@pytest.mark.parametrize("all_tokens", [False, True])
def test_lists_over_a_corpus_name_words(saved, run, texts, all_tokens):
    found = json.loads(run("lexicon", saved, "--file", texts, "--json", "--top", 999, *flag(all_tokens)))
    sides = [
        word["name"]
        for own in found["lexicon"]["classes"]
        for word in (*own["contributes_to"], *own["contributes_against"])
    ]
    weights = [name for words in found["weights"].values() for name in words]
    atlas = [word["name"] for group in found["atlas"]["groups"] for words in group["words"].values() for word in words]
    for names in (sides, weights, atlas):
        assert any(map(is_noise, names)) == all_tokens
    assert any(own["pieces"] for own in found["lexicon"]["classes"]) != all_tokens
    assert ("pieces and symbols" in run("lexicon", saved, "--file", texts, *flag(all_tokens))) != all_tokens
    every = json.loads(run("lexicon", saved, "--file", texts, "--json", "--top", 999, "--all-tokens"))
    for own, whole in zip(found["lexicon"]["classes"], every["lexicon"]["classes"], strict=True):
        pieces = own["pieces"]["contribution"] if own["pieces"] else 0.0
        assert sum(listed(own)) + pieces == pytest.approx(sum(listed(whole)), abs=1e-6)


def listed(own: dict) -> list[float]:
    """The contributions that the lexicon of a class lists."""
    return [word["contribution"] for side in ("contributes_to", "contributes_against") for word in own[side]]


@pytest.mark.parametrize("all_tokens", [False, True])
def test_pages_of_words_and_differences_name_words(saved, run, texts, all_tokens, tmp_path):
    pages = json.loads(run("lexicon", saved, "--file", texts, "--word", "dog", "--json", *flag(all_tokens)))["pages"]
    triggers = [
        trigger["token"] for page in pages for trigger in page["triggers"] if trigger["token"] != "(whole text)"
    ]
    assert all_tokens or not any(is_noise(name) and "symbol" not in name for name in triggers)
    assert all(sum(t["count"] for t in page["triggers"]) == page["active_in"] for page in pages if not all_tokens)
    model = from_pretrained(saved)
    torch.manual_seed(9)
    with torch.no_grad():
        model.head().word_vectors.add_(torch.randn_like(model.head().word_vectors))
    other = save_pretrained(model, tmp_path / "other")
    found = json.loads(run("diff", saved, other, "--file", texts, "--json", "--top", 999, *flag(all_tokens)))
    changed = [word["name"] for own in found["classes"] for side in ("gained", "lost") for word in own[side]]
    assert any(map(is_noise, changed)) == all_tokens
    assert any(own["pieces"] for own in found["classes"]) != all_tokens
    for flip in found["flips"]:
        pieces = flip["pieces"]["contribution"] if flip["pieces"] else 0.0
        moved = sum(word["difference"] for word in flip["words"]) + flip["other_words"] + pieces + flip["bias"]
        assert moved == pytest.approx(flip["margin_after"] - flip["margin_before"], abs=1e-4)
        assert all_tokens or not any(is_noise(word["name"]) for word in flip["words"])


@pytest.mark.parametrize("all_tokens", [False, True])
def test_smallest_sets_name_words_and_count_the_rest(saved, run, all_tokens):
    for asked in (("flip", saved, TEXT), ("tag", saved, TEXT, "--flip", "playing")):
        found = json.loads(run(*asked, "--json", "--seconds", 0.2, *flag(all_tokens)).splitlines()[-1])
        for each in (found["flip"], found["enough"]):
            assert all_tokens or not any(map(is_noise, each["words"] or ()))
            assert not all_tokens or each["pieces"] == 0


@pytest.mark.parametrize("cut", TOKENIZERS)
def test_the_default_recipe_has_no_piece_to_hide(cut):
    for why in explain(made("neighbours", cut), TEXTS):
        assert not any(is_noise(word.word) for word in why.words)
        assert why.listed() is why
