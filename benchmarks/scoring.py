"""What is scored in benchmarks: a model of the default recipe with a random table, and texts of any length."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from lexical_sae.data import TextDataset, TextSplit, load_text_dataset
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.recipes import recipe_by_name
from lexical_sae.runs.calibrating import calibrate

SYLLABLES = [a + b for a in ("b", "d", "f", "k", "l", "m", "n", "r", "s", "t") for b in ("a", "e", "i", "o", "u")]
"""What invented words are made of, which no tokenizer knows whole."""
CALIBRATED_ON = 128
"""Texts."""


def literal_model(classes: int = 2, more_words: int = 0) -> LexicalSAE:
    """The recipe `anchored` on the bundled encoder: so many classes, and so many more words that the tokenizer splits.

    As of training, it has the words of training texts and a calibration: warnings about unusual texts have their cost.
    """
    labels = {CLASSIFY: tuple(f"class {i}" for i in range(classes))}
    known = (*load_text_dataset("movie_snippets").train.texts, *invented_words(more_words))
    model = LexicalSAE.from_backbone(recipe_by_name("anchored").model, labels, known)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        head = model.head()
        head.word_vectors.copy_(0.5 * torch.randn(head.word_vectors.shape, generator=generator))
        if model.context is not None:
            model.context.size.copy_(head.word_vectors.abs().amax(-1))
            layer = model.context.layer.weight
            layer.copy_(0.02 * torch.randn(layer.shape, generator=generator))
    texts = tuple(cut_out(CALIBRATED_ON, words=16, seed=1, split="train"))
    split = TextSplit(texts, tuple(i % classes for i in range(len(texts))))
    model.calibration = calibrate(model.eval(), TextDataset("reviews", labels[CLASSIFY], split, split, split))
    return model


def invented_words(count: int) -> list[str]:
    """Different words of three syllables and a number in syllables."""
    return ["zq" + "".join(SYLLABLES[i // 50**place % 50] for place in range(4)) for i in range(count)]


def review_texts(path: Path, rows: int, words: int, seed: int = 0) -> Path:
    """A Parquet file of texts of so many words each, cut at random places out of film reviews that no model saw."""
    pq.write_table(pa.table({"text": cut_out(rows, words, seed)}), path)
    return path


def cut_out(rows: int, words: int, seed: int, split: str = "test") -> list[str]:
    """Texts of so many words each, cut at random places out of a split of the film reviews."""
    running = " ".join(getattr(load_text_dataset("movie_snippets"), split).texts).split()
    begins = np.random.default_rng(seed).integers(0, len(running) - words, rows).tolist()
    return [" ".join(running[begin : begin + words]) for begin in begins]
