"""Decisions whose reasons are known: two words speak for each class, the others hardly at all."""

import torch

from lexical_sae.models.heads import ReluHead
from tests.evaluation.corpora import read_batch, relu_head

SIZE, PLANTED = 60, ((3, 4), (10, 11), (20, 21))


def planted_head() -> ReluHead:
    """Three classes; without any word the first one wins."""
    generator = torch.Generator().manual_seed(0)
    vectors = 0.01 * torch.rand(SIZE, 3, generator=generator, dtype=torch.float64)
    for label, words in enumerate(PLANTED):
        vectors[list(words), label] = 1.0
    return relu_head(vectors.tolist(), torch.eye(3).tolist(), class_bias=[0.1, 0.0, 0.0])


def planted_texts(count: int = 60) -> tuple[torch.Tensor, list[int]]:
    """Sparse vectors with about twenty words each, the two of their class among them, and their classes."""
    generator = torch.Generator().manual_seed(1)
    activations = torch.rand(count, SIZE, generator=generator, dtype=torch.float64)
    activations *= torch.rand(count, SIZE, generator=generator) < 0.3
    labels = [row % 3 for row in range(count)]
    activations[:, [word for words in PLANTED for word in words]] = 0
    for row, label in enumerate(labels):
        activations[row, list(PLANTED[label])] = 1.0
    return activations, labels


def fed(collector, head, vectors, labels=None, batch_size=30):
    """The collector after it has seen the texts in batches."""
    for start in range(0, len(vectors), batch_size):
        rows = range(start, min(start + batch_size, len(vectors)))
        classes = None if labels is None else [labels[row] for row in rows]
        collector.update(read_batch(head, vectors[list(rows)], classes, rows=rows))
    return collector


def some_vectors(count=24, size=9, seed=0) -> torch.Tensor:
    """Sparse vectors of which one has no word at all."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.rand(count, size, generator=generator, dtype=torch.float64)
    vectors *= torch.rand(count, size, generator=generator) < 0.6
    vectors[2] = 0
    return vectors
