"""Frames of every library, lazy too, and data sets of the hub give the rows of a list."""

import datasets
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lexical_sae.data.files import as_table, read_text_dataset
from lexical_sae.data.tables.frames import column_values
from lexical_sae.utils.errors import DataError

ROWS = [(f"text number {i}", ("good", "bad")[i % 2]) for i in range(40)]
COLUMNS = {"text": [text for text, _ in ROWS], "label": [label for _, label in ROWS]}


def hub():
    columns = COLUMNS | {"label": [int(label == "good") for label in COLUMNS["label"]]}
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    return datasets.Dataset.from_dict(columns, features=features)


def duck():
    frame = pd.DataFrame(COLUMNS)
    return duckdb.connect().from_df(frame)


FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas categories": lambda: pd.DataFrame(COLUMNS).astype({"label": "category"}),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars lazy": lambda: pl.LazyFrame(COLUMNS).filter(pl.col("label") != "neither"),
    "pyarrow": lambda: pa.table(COLUMNS),
    "duckdb": duck,
    "hub": hub,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_gives_the_rows_of_a_list(kind):
    assert read_text_dataset(FRAMES[kind]()).train == read_text_dataset(ROWS).train


def test_all_splits_at_once_in_a_dict_or_a_data_set_of_the_hub():
    by_name = {"train": pl.DataFrame(COLUMNS), "test": [("unseen", "good"), ("new", "bad")]}
    assert set(read_text_dataset(by_name).test.texts) == {"unseen", "new"}
    both = datasets.DatasetDict(train=hub(), test=hub().select(range(6)))
    assert len(read_text_dataset(both).test) == 6
    with pytest.raises(DataError, match="one key per split.*it has 'text', 'label'"):
        read_text_dataset(COLUMNS)


def test_a_row_without_a_label_is_named_by_its_place_in_the_frame():
    frame = pl.DataFrame({"text": ["a", "b", "c"], "label": ["x", None, "y"]})
    with pytest.raises(DataError, match=r"train DataFrame row 1 \(no label\)"):
        read_text_dataset(frame)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame([["a", "b"]], columns=["text", "text"]), pa.table([["a"], ["b"]], names=["text", "text"])]
)
def test_two_columns_of_one_name_are_refused(frame):
    with pytest.raises(DataError, match="more than one column named 'text'"):
        as_table(frame)


def test_columns_may_be_numbered():
    assert dict(as_table(pd.DataFrame([["a", "b"], ["c", "d"]])).columns) == {"0": ["a", "c"], "1": ["b", "d"]}


COLUMN = {
    "pandas Series": lambda: pd.Series(COLUMNS["text"]),
    "polars Series": lambda: pl.Series(COLUMNS["text"]),
    "pyarrow array": lambda: pa.array(COLUMNS["text"]),
    "pyarrow chunked array": lambda: pa.chunked_array([COLUMNS["text"][:9], COLUMNS["text"][9:]]),
    "pandas frame": lambda: pd.DataFrame({"text": COLUMNS["text"]}),
    "polars frame": lambda: pl.DataFrame({"text": COLUMNS["text"]}),
    "polars lazy frame": lambda: pl.LazyFrame({"text": COLUMNS["text"]}),
    "pyarrow table": lambda: pa.table({"text": COLUMNS["text"]}),
    "duckdb": lambda: duck().project("text"),
}


@pytest.mark.parametrize("kind", COLUMN)
def test_a_column_of_any_library_is_an_array(kind):
    values = column_values(COLUMN[kind]())
    assert isinstance(values, np.ndarray)
    assert values.tolist() == COLUMNS["text"]


def test_numbers_keep_their_type_and_other_things_are_left_as_they_are():
    assert column_values(pl.Series([1, 2])).dtype == np.int64
    assert column_values(pa.array([True, False])).dtype == np.bool_
    assert column_values(COLUMNS["text"]) is COLUMNS["text"]
