"""From a part of the input to a file of scored rows; the same work under every engine.

A part is written whole or not at all, under a name that follows from its place. Done twice, by whomever, it is the same
file: that is what makes retries and `--resume` safe.
"""

import logging
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from pydantic import Field

from lexical_sae.inference.explaining import explain_batch
from lexical_sae.inference.labels import labels_of
from lexical_sae.inference.question import Question
from lexical_sae.inference.reading import answers
from lexical_sae.models.persistence import from_pretrained, saved_sha256
from lexical_sae.scale.inputs import Columns
from lexical_sae.scale.parts import REJECTED, Part, PartKey
from lexical_sae.scale.records import record_batch
from lexical_sae.scale.schema import About, Explain, kept_name
from lexical_sae.utils.errors import SavedFileError
from lexical_sae.utils.files import publish_file
from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.precision import EncoderType, keeping_casts, require_encoder_type

REJECTED_FOLDER, WORK_FOLDER = "rejected", ".work"


class ScoreSettings(PartConfig):
    """What makes the rows what they are: a resumed run has the same."""

    model: str
    """SHA-256 of the saved model."""
    columns: Columns
    explain: Explain = "top"
    """Which words are listed: the strongest, all, or none."""
    top: int = Field(default=10, gt=0)
    """How many, with `explain: top`."""
    all_tokens: bool = False
    """Whether word pieces and symbols are listed too."""
    batch_size: int = Field(default=32, gt=0)
    """Texts that the model reads at a time."""
    rows: int = Field(default=4096, gt=0)
    """Of a part."""
    dtype: EncoderType = "float32"
    """What the encoder computes in."""


class PartDone(NamedTuple):
    """A part that is written."""

    key: PartKey
    rows: int
    rejected: int
    read: float
    """Share of its file that was read up to its end."""
    seconds: float = 0.0
    """Of work on it."""


class Scorer:
    """A model, loaded once, that scores parts."""

    def __init__(self, folder: str, settings: ScoreSettings, out: str, device: str = "cpu") -> None:
        """Weights are mapped from the file, so that the processes of one machine share them."""
        if (found := saved_sha256(folder)) != settings.model:
            raise SavedFileError(
                f"the model in {folder} has SHA-256 {found[:12]}…, and {settings.model[:12]}… was to score; give every "
                "process the same folder"
            )
        self._device = torch.device(device)
        require_encoder_type(settings.dtype, self._device, "--dtype")
        self.model = from_pretrained(folder, mapped=True).to(self._device)
        self.model.backbone.encodes_in = settings.dtype
        self.settings, self.out = settings, Path(out)
        self._question = Question.of(
            self.model,
            None,
            None,
            "dla",
            effects=settings.explain != "none",
            places=settings.explain != "none",
            all_tokens=settings.all_tokens,
            words_only=True,
        )
        labels = labels_of(self.model, "score")
        names = {name: kept_name(name) for name in settings.columns.kept}
        top = settings.top if settings.explain == "top" else None
        self._about = About(
            model=settings.model, labels=labels, explain=settings.explain, top=top, dtype=settings.dtype, kept=names
        )
        # Texts that were cut are counted in the table; a line per part would say it over and over.
        logging.getLogger("lexical_sae.inference.reading").setLevel(logging.ERROR)

    def __call__(self, part: Part) -> PartDone:
        """Score a part and write its rows; those that are rejected first, for the part's own file says that it is
        done."""
        started = time.monotonic()
        with keeping_casts(self._device):
            scored = self._scored(part)
        if len(part.rejected):
            self._write(pa.Table.from_batches([part.rejected], REJECTED), self.out / REJECTED_FOLDER / part.key.name)
        self._write(pa.Table.from_batches([scored]), self.out / part.key.name)
        return PartDone(part.key, len(scored), len(part.rejected), part.read, time.monotonic() - started)

    def _scored(self, part: Part) -> pa.RecordBatch:
        found = answers(
            self.model, part.texts, self.settings.batch_size, lambda read: explain_batch(self._question, read)
        )
        return record_batch(list(found), part.places, self._about, part.kept)

    def _write(self, table: pa.Table, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        with publish_file(path, self.out / WORK_FOLDER) as work:
            pq.write_table(table, work, compression="zstd")
