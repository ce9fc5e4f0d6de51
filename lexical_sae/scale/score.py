"""Score all rows of some files: from what was asked to a finished table."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from lexical_sae.scale.folder import ScoredFolder, Totals
from lexical_sae.scale.inputs import Input
from lexical_sae.scale.local import score_locally
from lexical_sae.scale.parts import Part, PartKey, parts_of
from lexical_sae.scale.scorer import PartDone, ScoreSettings
from lexical_sae.utils.progress import OnStep, Step, silent

THOUSANDTHS = 1000
"""Steps of the whole: how many rows there are is not known before they are read."""

Engine = Callable[[str, ScoreSettings, str, Iterator[Part], int], Iterator[PartDone]]


@dataclass
class _Pace:
    """How far the work is, by bytes of the input."""

    inputs: Sequence[Input]
    on_step: OnStep
    rows_before: int
    started: float
    thousandths: int = 0

    def show(self, done: PartDone, totals: Totals) -> None:
        """Report every thousandth that was passed, with the rate and the minutes left."""
        size = sum(each.size for each in self.inputs) or 1
        ahead = sum(each.size for each in self.inputs[: done.key.file])
        share = min(1.0, (ahead + done.read * self.inputs[done.key.file].size) / size)
        seconds = time.monotonic() - self.started
        rate = (totals.rows - self.rows_before) / max(seconds, 1e-9)
        # At the rate of rows, and as many rows per byte as until here: a resumed run passes over what is done.
        left = totals.rows * (1 / share - 1) / rate / 60 if share and rate else 0.0
        figures = {"rows": totals.rows, "rejected": totals.rejected, "rows/s": rate, "minutes left": left}
        while self.thousandths < min(THOUSANDTHS - 1, int(THOUSANDTHS * share)):
            self.thousandths += 1
            self.on_step(Step("scoring", self.thousandths, THOUSANDTHS, figures))


def score_files(
    model: str,
    inputs: Sequence[Input],
    settings: ScoreSettings,
    out: str,
    *,
    workers: int = 1,
    engine: Engine = score_locally,
    resume: bool = False,
    on_step: OnStep = silent,
) -> Totals:
    """What the table in `out` holds when every row is scored or rejected.

    Args:
        model: Folder of the saved model.
        inputs: The files (`find_inputs`).
        settings: What to make of them.
        out: Folder of the table.
        workers: Processes, or actors; 0 for as many as there is room for.
        engine: Who runs them.
        resume: Whether to go on in a folder that was begun.
        on_step: Gets progress, in thousandths of the input's bytes.
    """
    with ScoredFolder(out, settings, inputs, resume=resume) as folder:
        written = folder.done()
        totals = Totals()
        for part in written.values():
            totals = totals.with_part(part)
        pace = _Pace(inputs, on_step, totals.rows, time.monotonic())
        coming = _missing(inputs, settings, written)
        for done in engine(model, settings, str(folder.path), coming, workers):
            totals = totals.with_part(done)
            pace.show(done, totals)
        folder.finish(totals)
        on_step(Step("scoring", THOUSANDTHS, THOUSANDTHS, {"rows": totals.rows, "rejected": totals.rejected}))
    return totals


def _missing(inputs: Sequence[Input], settings: ScoreSettings, written: Collection[PartKey]) -> Iterator[Part]:
    """The parts that are not written yet."""
    for each in inputs:
        for part in parts_of(each, settings.columns, settings.rows):
            if part.key not in written:
                yield part
