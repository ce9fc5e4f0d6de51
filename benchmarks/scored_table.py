"""Invented scored tables, by the schema that `score` writes: for tests, and for the cost of an audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexical_sae.scale.schema import WORD, About, scored_schema

CLASSES = ("negative", "neutral", "positive")
REGIONS = ("north", "east", "south", "west", "coast", "isles")
PER_TEXT = 10
"""Words of a text."""
SHIFTED, WRONG, UNUSUAL = 0.1, 0.03, 0.04
"""Shares of contributions that context shifts, of wrong labels, and of texts with unknown words."""


@dataclass(frozen=True)
class Invented:
    """What the table is like."""

    rows: int
    seed: int = 0
    vocabulary: int = 20_000
    """Words, a tenth of them for each place in a text: no text has a word twice."""
    first: date = date(2026, 1, 1)
    days: int = 365
    more_often: Mapping[str, float] = field(default_factory=dict)
    """Words that stand in this share of the texts instead of another word."""
    stronger: Mapping[str, float] = field(default_factory=dict)
    """Words whose contribution is greater by this."""
    planted_from: date | None = None
    """Since when these are so; always if None."""
    splits: int = 0
    """Further columns of dates, `date_0`, …, each drawn anew."""


def write_scored(folder: Path, made: Invented, rows_per_part: int = 4096) -> Path:
    """Write the table, its words drawn by Zipf's law and its weights at random."""
    folder.mkdir(parents=True, exist_ok=True)
    model = np.random.default_rng(99)
    names = [*(f"word{i}" for i in range(made.vocabulary)), *made.more_often]
    weights = np.full((len(CLASSES), len(names)), 0.5)
    weights[:, : made.vocabulary] = model.normal(0, 0.5, (len(CLASSES), made.vocabulary))
    for number, start in enumerate(range(0, made.rows, rows_per_part)):
        count = min(rows_per_part, made.rows - start)
        generator = np.random.default_rng([made.seed, number])
        batch = _batch(made, generator, start, count, names, weights)
        pq.write_table(pa.Table.from_batches([batch]), folder / f"part-00000-{number:06d}.parquet", compression="zstd")
    return folder


def _batch(
    made: Invented, generator: np.random.Generator, start: int, count: int, names: Sequence[str], weights: np.ndarray
) -> pa.RecordBatch:
    per = made.vocabulary // PER_TEXT
    chance = 1 / np.arange(2, per + 2)
    drawn = np.minimum(np.searchsorted(np.cumsum(chance) / chance.sum(), generator.random((count, PER_TEXT))), per - 1)
    ids = drawn * PER_TEXT + np.arange(PER_TEXT)
    days = generator.integers(0, made.days, count)
    since = 0 if made.planted_from is None else (made.planted_from - made.first).days
    is_late = days >= since
    for place, share in enumerate(made.more_often.values()):
        ids[is_late & (generator.random(count) < share), place] = made.vocabulary + place
    predicted = generator.integers(0, len(CLASSES), count)
    shifts = np.where(generator.random(ids.shape) < SHIFTED, generator.normal(0, 0.6, ids.shape), 0.0)
    default = weights[predicted[:, None], ids]
    for word, more in made.stronger.items():
        default = default + more * ((ids == names.index(word)) & is_late[:, None])
    contribution = default + shifts
    order = np.argsort(-np.abs(contribution), axis=1)
    ids, default, shifts, contribution = (
        np.take_along_axis(each, order, 1).ravel() for each in (ids, default, shifts, contribution)
    )
    is_wrong = generator.random(count) < WRONG
    label = np.where(is_wrong, (predicted + 1) % len(CLASSES), predicted)
    probabilities = generator.dirichlet([1.0] * len(CLASSES), count).astype(np.float32) * 0.4
    probabilities[np.arange(count), predicted] += 0.6
    dates = {"date": days, **{f"date_{i}": generator.integers(0, made.days, count) for i in range(made.splits)}}
    about = About(model="5e" * 32, labels=CLASSES, top=PER_TEXT, kept={name: name for name in ("region", *dates)})
    kept = pa.schema([("region", pa.string()), *((name, pa.date32()) for name in dates)])
    classes, nulls = pa.array(CLASSES), pa.nulls(count * PER_TEXT, pa.int32())
    fields = [pa.array(names).take(pa.array(ids)), contribution, contribution, nulls, nulls, default, shifts]
    words = pa.StructArray.from_arrays(
        [pa.array(values, kind.type) for values, kind in zip(fields, WORD, strict=True)], fields=list(WORD)
    )
    begin = (made.first - date(1970, 1, 1)).days
    summed = contribution.reshape(count, PER_TEXT).sum(1)
    columns = [
        pa.array(np.arange(start, start + count)),
        pa.repeat(pa.scalar("texts.parquet"), count),
        pa.array(np.arange(start + 1, start + count + 1)),
        classes.take(pa.array(label)),
        classes.take(pa.array(predicted)),
        pa.array(probabilities.max(1)),
        pa.ListArray.from_arrays(_offsets(count, len(CLASSES)), pa.array(probabilities.ravel())),
        pa.array(summed, pa.float32()),
        pa.array(np.zeros(count, np.float32)),
        pa.ListArray.from_arrays(_offsets(count, PER_TEXT), words, type=pa.list_(WORD)),
        pa.array(np.zeros(count, np.float32)),
        pa.array(np.full(count, PER_TEXT, np.int32)),
        pa.array((generator.random(count) < 0.01).astype(np.int32) * 7),
        pa.array(
            [["unknown_words"] if odd else [] for odd in generator.random(count) < UNUSUAL], pa.list_(pa.string())
        ),
        pa.repeat(pa.scalar("5e" * 32), count),
        pa.array(REGIONS).take(pa.array(generator.integers(0, len(REGIONS), count))),
        *(pa.array((begin + values).astype(np.int32), pa.date32()) for values in dates.values()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=scored_schema(about, kept))


def _offsets(count: int, each: int) -> pa.Array:
    return pa.array(np.arange(count + 1) * each, pa.int32())
