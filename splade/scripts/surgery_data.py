"""Texts for a certificate, as the commands name them."""

from pathlib import Path
from typing import TYPE_CHECKING

from splade.scripts.corpus import Columns, load_corpus
from splade.scripts.unseen_texts import count_learned

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


def learned_among(folder: Path, texts: "NamedTexts") -> str:
    """What is to be said of texts that the run in the folder learned from; nothing where there are none, or no run."""
    from splade.data.examples import TextSplit

    count = count_learned(TextSplit(tuple(texts.texts), tuple(texts.labels or ())), folder) if texts.labels else 0
    if not count:
        return ""
    return (
        f"the model was trained on {count} of these {len(texts.texts)} texts, on which both accuracies look better "
        "than they are; for the accuracy to count, give texts that it has not seen"
    )
