"""Texts for a certificate, as the commands name them."""

from pathlib import Path
from typing import TYPE_CHECKING

from splade.scripts.corpus import Columns, load_corpus

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from splade.certificate import NamedTexts
    from splade.models.lexical_sae import LexicalSAE


def named_texts(model: "LexicalSAE", file: Path | None, data: str | None, columns: Columns) -> "NamedTexts":
    """The texts of a file or of a named set; the model tells how its classes are numbered."""
    from splade.certificate import NamedTexts

    corpus = load_corpus(model, file, data, columns)
    name = data if file is None else file.name
    assert name is not None
    return NamedTexts(name, corpus.texts, corpus.labels, file)
