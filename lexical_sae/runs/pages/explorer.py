"""A run's explorer: its test texts, its table and its measures on one page."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lexical_sae.data.examples import TextSplit
from lexical_sae.explorer.corpus import Texts, corpus_payload
from lexical_sae.explorer.page import page_html
from lexical_sae.inference.labels import labels_of
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.runs.folder import EXPLORER
from lexical_sae.runs.pages.report_parts import ReportParts
from lexical_sae.runs.run import Run
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import require_writable_target, write_text
from lexical_sae.utils.progress import OnStep, silent

PAGE_TEXTS = 5_000
"""Texts in a file that is to open at once, and to be sent; the service takes more."""


def write_explorer(
    run: Run,
    out: Path | None = None,
    against: Run | None = None,
    corpus: Texts | None = None,
    *,
    texts: int = PAGE_TEXTS,
    on_step: OnStep = silent,
) -> Path:
    """Write the explorer of a run as one HTML file; where it is.

    Args:
        run: The run of a classifier.
        out: The file; by default `explorer.html` in the run's folder.
        against: A run to compare it with, on the same texts.
        corpus: The texts; by default the run's test texts.
        texts: Most of them to take, drawn at random.
        on_step: Gets progress.
    """
    place = out or run.folder / EXPLORER
    require_writable_target(place)
    if run.is_tagger:
        raise SettingsError(f"{run.folder} holds a tagger; the explorer shows decisions on texts, so use `report`")
    shown = own_texts(run) if corpus is None else corpus
    models = [explored(one, shown, texts, on_step) for one in (run, *([against] if against else []))]
    return write_text(place, page_html(run.folder.resolve().name, models))


def own_texts(run: Run) -> TextSplit:
    """The test texts of a run, with the identities that they mention where those are known."""
    _, dataset = run.first.model_and_data()
    return dataset.test


def explored(run: Run, corpus: Texts, texts: int, on_step: OnStep = silent) -> dict[str, Any]:
    """A run's model with some texts, as the page shows it."""
    model = run.first.model
    return {**about(run), "codes": corpus_payload(model, _checked(model, corpus), on_step, most=texts)}


def about(run: Run) -> dict[str, Any]:
    """What a page says of a run: what it is, and what was measured."""
    parts = ReportParts(run)
    evaluation = parts.evaluation()
    topics = [] if evaluation is None else [topic.figures for topic in evaluation.topics]
    figures = [*parts.results(), *parts.names(), *parts.baselines(), *topics]
    return {
        "name": run.folder.resolve().name,
        "address": shlex.quote(_address(run.folder)),
        "about": parts.about(),
        "accuracies": [list(row) for row in parts.accuracies()],
        "measures": [{"heading": one.heading, "rows": [list(row) for row in one.rows]} for one in figures],
    }


def _address(folder: Path) -> str:
    """What to call a run in a command: its folder, but nothing of where it lies on this machine."""
    return folder.name if folder.is_absolute() else folder.as_posix()


def _checked(model: LexicalSAE, corpus: Texts) -> Texts:
    """The texts, refused where their labels are not the model's."""
    labels: Sequence[int] = corpus.labels or ()
    if labels and max(labels) >= len(labels_of(model)):
        raise SettingsError(
            f"the texts have {max(labels) + 1} labels, and the model decides between {len(labels_of(model))}; compare "
            "models of the same labels"
        )
    return corpus
