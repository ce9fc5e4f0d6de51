"""How `make site` makes the documentation site from README, docs/ and examples/: offline, and so are its pages.

1. Pages keep the paths that they have in the repository, so that a link holds there and on the site.
2. README is the first page; `contents.md`, which follows it unseen, is the order of all others.
3. The reference is taken from docstrings. Notebooks show their stored outputs; nothing is executed.
"""

import shutil
from pathlib import Path

from sphinx.application import Sphinx

import lexical_sae

HERE = Path(__file__).parent

project = "Lexical-SAE"
release = lexical_sae.__version__
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/**/*.md",
    "docs/reference/*.rst",
    "examples/*.md",
    "benchmarks/results/*.md",
    "examples/*.ipynb",
]
exclude_patterns = [".*", "build", "results", "site", "docs/site", "lexical_sae", "tests", "**/node_modules"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
nb_execution_mode = "off"
default_role = "code"  # docstrings quote as Markdown does
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"  # shapes are long; the parameters say what they take
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = "Lexical-SAE"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False


CHILDREN = {
    "docs/adr/README": "*",
    "docs/lab/README": "*",
    "examples/README": "train_and_explain\nremove_a_word\nwrong_labels",
}
"""Pages that lead to others of their folder; patterns of those."""


def setup(app: Sphinx) -> None:
    """Give the pages their order, and open the site with the first."""
    app.connect("builder-inited", keep_outputs_away, priority=900)
    app.connect("source-read", with_contents)
    app.connect("build-finished", as_index)


def keep_outputs_away(app: Sphinx) -> None:
    """Outputs of notebooks go where the other intermediate files are, not beside the site."""
    folder = Path(app.doctreedir) / "notebooks"
    app.env.mystnb_config = app.env.mystnb_config.copy(output_folder=str(folder))


def with_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """A page with the order of those below it, which GitHub would show as code."""
    if docname == app.config.root_doc:
        source[0] += "\n" + (HERE / "contents.md").read_text()
    elif docname in CHILDREN:
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{CHILDREN[docname]}\n```\n"


def as_index(app: Sphinx, failure: Exception | None) -> None:
    """A copy of the first page where a browser looks for it."""
    if failure is None and app.builder.format == "html":
        out = Path(app.outdir)
        shutil.copy(out / f"{app.config.root_doc}.html", out / "index.html")
