import importlib
import re
import runpy
from pathlib import Path

import pytest

import lexical_sae
import splade
from lexical_sae.config.load import full_name

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])


def test_configuration_page_is_what_the_schema_says():
    page = runpy.run_path(str(ROOT / "tools" / "config_docs.py"))["render"]()
    assert (ROOT / "docs" / "configuration.md").read_text() == page, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


def test_every_path_on_the_architecture_page_exists():
    paths = re.findall(r"`([\w./-]+(?:\.py|/))`", (ROOT / "docs" / "architecture.md").read_text())
    assert len(paths) > 50
    assert [path for path in paths if not any((base / path).exists() for base in (ROOT, ROOT / "lexical_sae"))] == []


def test_readme_names_only_make_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", (ROOT / "README.md").read_text(), re.M))
    assert {a or b for a, b in named} <= targets
    assert {a or b for a, b in named} >= {"quickstart", "test"}


def test_every_page_has_a_place_on_the_site():
    placed = set((ROOT / "docs" / "site" / "contents.md").read_text().split())
    pages = {f"/{page.relative_to(ROOT).with_suffix('')}" for page in ROOT.glob("docs/*.md")}
    assert pages - placed == set(), "list them in docs/site/contents.md"


def test_the_reference_has_every_public_name():
    pages = "\n".join(page.read_text() for page in ROOT.glob("docs/reference/*.rst"))
    named = set(re.findall(r"^\.\. auto\w+:: lexical_sae\.(\w+)$", pages, re.M))
    assert named == set(lexical_sae.__all__) - {"__version__"}


def _seed_map() -> tuple[dict[str, str], dict[str, str]]:
    """The names that have changed, and the modules whose earlier path still imports; each with its new home."""
    page = (ROOT / "docs" / "seed-map.md").read_text()
    changed, forwarded = page.split("Modules that have moved", 1)
    row = re.compile(r"^\| `([\w.]+)` \| `([\w.]+)` \|", re.M)
    return dict(row.findall(changed)), dict(row.findall(forwarded.split("Files and commands:")[0]))


def test_every_new_home_in_the_seed_map_imports():
    changed, _ = _seed_map()
    assert len(changed) >= 7
    for earlier, now in changed.items():
        assert _resolves(now), f"{now} does not import"
        assert not _resolves(earlier), f"{earlier} imports: take it off this table"


def test_the_seed_map_lists_every_module_that_splade_forwards_to_another_name():
    _, forwarded = _seed_map()
    assert forwarded == {f"splade.{earlier}": f"lexical_sae.{now}" for earlier, now in splade._MOVED.items()}
    for earlier, now in forwarded.items():
        assert importlib.import_module(earlier) is importlib.import_module(now)


EARLIER_NAMES = (ROOT / "tests" / "earlier_names.txt").read_text().split()
EARLIER_DOCUMENTS = sorted((ROOT.parent / "shared" / "seeds").glob("*.txt"))


def _replaced_names() -> set[str]:
    """What the first columns of the seed map name."""
    cells = re.findall(r"^\|([^|]+)\|", (ROOT / "docs" / "seed-map.md").read_text(), re.M)
    return {name.partition(":")[0] for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize("name", EARLIER_NAMES)
def test_every_earlier_name_is_there_or_in_the_seed_map(name):
    is_there = (ROOT / name).is_file() if "/" in name else _resolves(name) or _is_key(name)
    assert is_there or name in _replaced_names()


def test_a_name_that_is_nowhere_is_found_missing():
    for name in ("lexical_sae.models.lexical_sae.LexicalSAE.vanish", "training.vanish", "model.gate.vanish"):
        assert not _resolves(name)
        assert not _is_key(name)
        assert name not in _replaced_names()


def _is_key(name: str) -> bool:
    """Whether an experiment file may have this key, by its short name too."""
    return f"| `{full_name(name, None)[0]}` |" in (ROOT / "docs" / "configuration.md").read_text()


NOT_OURS = set(
    """
    AdamW AutoModelForMaskedLM CivilComments CoNLL DeBERTa H100 HuggingFace JumpReLU ModernBERT NamedTuple ReLU
    RoBERTa TopK answerdotai/ModernBERT arXiv banking77 classifier.git cosine/Jaccard github.com/<repo
    gradient/IG/attention lexicalsae2025 paper_imdb results/paper/imdb torch.Tensor torch.zeros_like

    CE_loss K_active L1 L_CE L_DF L_completeness L_separation L_sharpness L_sparsity W1 W2 _c _cc _ce _gate _j _sep b1
    b_eff_c cc_loss e6 fc1 fc2 freq_loss gate_loss gate_sparsity logit_c p_full p_masked s_j s_seq sep_loss sum_j
    W_eff_seq max_pool tag_logits token_id steps_per_epoch

    W_active activated.masked_fill active_ids active_mask active_mask.nonzero argmax as_tuple attention_mask
    attention_mask.unsqueeze attribution_scores bool gate_probs input_ids max_abs result.scatter_
    return_offsets_mapping scatter_ self.training sparse_seq sparse_seq.topk sparse_vector.abs subword_scores
    subword_scores.abs subword_scores.sum token_ids token_logits topk_idx topk_vals
    """.split()  # noqa: SIM905 - a list of strings would be a page long
)
"""Names of libraries and data sets; symbols of formulas; arguments and variables of the printed snippets."""


@pytest.mark.skipif(not EARLIER_DOCUMENTS, reason="the documents of the earlier generations are not beside this folder")
def test_no_code_name_of_the_earlier_documents_is_left_out():
    known = {name.removesuffix(".py").replace("/", ".") for name in EARLIER_NAMES}
    for document in EARLIER_DOCUMENTS:
        for name in _code_names(document.read_text()) - NOT_OURS:
            plain = re.sub(r"^(self|state|model)\.", "", name).removesuffix(".py").replace("/", ".")
            assert any(f".{one}".endswith(f".{plain}") for one in known), f"{name} ({document.name})"


def _code_names(text: str) -> set[str]:
    """Words between backticks and in code blocks that are not plain English: with a dot, a slash, an underscore, ..."""
    blocks = re.findall(r"```[^\n]*\n(.*?)```", text, re.S)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
    found = re.findall(r"[A-Za-z_]\w*(?:[./][A-Za-z_<]\w*)*(?:\(\))?", "\n".join([*blocks, *spans]))
    return {name.removesuffix("()") for name in found if re.search(r"[_./(\d]|[a-z][A-Z]", name)}


def _resolves(name: str) -> bool:
    """Whether a dotted name is a module, or leads from one to an attribute or a field."""
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
        return True
    except ImportError:
        pass
    if not module:
        return False
    try:
        owner = importlib.import_module(module)
    except ImportError:
        owner = _class_named(module)
    return hasattr(owner, attribute) or attribute in getattr(owner, "__dataclass_fields__", {})


def _class_named(name: str) -> object:
    """The class behind a dotted name; None if there is none."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute, None)
    except (ImportError, ValueError):
        return None
