"""Texts in folds, each decided on by a table that was fitted without it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from lexical_sae.data.batches import TokenizedTexts, shuffled_batches, shuffled_buckets
from lexical_sae.models.assembly import add_heads
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.training.samples import Encoded
from lexical_sae.training.tasks import Documents, Task
from lexical_sae.utils.errors import SettingsError

FOLDS = 5


@dataclass(frozen=True)
class FoldedDocuments(Documents):
    """Documents in folds; the samples of fold k are decided on by the head `<head>_without_<k>`."""

    folds: Int[Tensor, " T"] = torch.empty(0, dtype=torch.long)

    @classmethod
    def of(cls, documents: Documents, seed: int) -> "FoldedDocuments":
        """The documents in folds at random; texts that contain one another stay together."""
        # Of texts with several labels, those with the same ones are dealt out together.
        _, strata = np.unique(documents.labels.cpu().numpy(), axis=0, return_inverse=True)
        folds = random_folds(documents.texts.ids, seed, strata.reshape(-1))
        if len(folds.unique()) < 2:
            raise SettingsError(
                f"a table of words is fitted with a part of the texts left out, but the {len(folds)} given cannot be "
                "parted; give at least two texts of which neither contains the other"
            )
        return cls(**{**vars(documents), "folds": folds})

    @property
    def heads(self) -> tuple[str, ...]:
        return tuple(f"{self.head}_without_{k}" for k in range(FOLDS))

    def alike(self, rows: Sequence[int]) -> list[list[int]]:
        by_fold: defaultdict[int, list[int]] = defaultdict(list)
        for row in rows:
            by_fold[int(self.folds[row])].append(row)
        return [by_fold[k] for k in sorted(by_fold)]

    def batches(self, size: int, generator: np.random.Generator, short_first: float) -> list[list[int]]:
        """All rows in random batches, each of one fold."""
        batches: list[list[int]] = []
        for k in range(FOLDS):
            rows = (self.folds == k).nonzero().flatten().tolist()
            part = TokenizedTexts(
                tuple(self.texts.ids[row] for row in rows),
                tuple(self.texts.tokens_cut[row] for row in rows),
                self.texts.pad_id,
            )
            batches += [[rows[i] for i in batch] for batch in shuffled_buckets(part, size, generator)]
        return shuffled_batches(self.texts, batches, generator, short_first)

    def encode(self, model: LexicalSAE, rows: Sequence[int], *, live_only: bool = False) -> Encoded:
        (fold,) = {int(self.folds[row]) for row in rows}
        of_fold = Documents(**{field.name: getattr(self, field.name) for field in fields(Documents)})
        of_fold = replace(of_fold, head=self.heads[fold])
        return of_fold.encode(model, rows, live_only=live_only)


def in_folds(model: LexicalSAE, train: Task, seed: int, most_windows: int | None) -> FoldedDocuments:
    """The documents in folds, with a head for each in the model until training ends."""
    if not isinstance(train, Documents):
        raise SettingsError("literal words are trained on documents with a label each; tag with recipe: neighbours")
    folded = train if isinstance(train, FoldedDocuments) else FoldedDocuments.of(train, seed)
    folded = replace(folded, most_windows=most_windows)
    add_heads(model, folded.heads, like=train.head)
    return folded


def random_folds(texts: Sequence[Sequence[int]], seed: int, labels: Int[np.ndarray, " T"]) -> Int[Tensor, " T"]:
    """The fold of each tokenised text, at random, the labels in proportion; a text inside a longer one is in its
    fold."""
    groups = np.array(containing_texts(texts))
    whole, places = np.unique(groups, return_inverse=True)
    dealt = stratified_folds(labels[whole], np.random.default_rng([seed, FOLDS]))
    return torch.from_numpy(dealt[places])


def stratified_folds(labels: Int[np.ndarray, " T"], draw: np.random.Generator) -> Int[np.ndarray, " T"]:
    """The fold of each text: those of each label are dealt out in a random order.

    Example: 10 texts of each of two labels -> 2 of each in every fold
    """
    folds = np.empty(len(labels), dtype=np.int64)
    dealt = 0
    for label in np.unique(labels):
        rows = draw.permutation(np.flatnonzero(labels == label))
        # Going on where the label before ended keeps folds of equal size when labels are rare.
        folds[rows] = (dealt + np.arange(len(rows))) % FOLDS
        dealt += len(rows)
    return folds


def containing_texts(texts: Sequence[Sequence[int]]) -> list[int]:
    """For each tokenised text, the row of a text that contains it, itself if none does; special tokens do not count.

    Example: [CLS] a good film [SEP], [CLS] good film [SEP] -> [0, 0]
    """
    inner = [tuple(ids[1:-1]) for ids in texts]
    rows_with: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    found = list(range(len(texts)))
    for row in sorted(range(len(texts)), key=lambda i: -len(inner[i])):
        ids = inner[row]
        if not ids:
            continue
        pairs = list(zip(ids, ids[1:], strict=False)) or [(ids[0],)]
        # Any text that contains this one contains its rarest pair of tokens: only those few are compared.
        rarest = min(pairs, key=lambda pair: len(rows_with[pair]))
        wanted = _written(ids)
        whole = next((other for other in rows_with[rarest] if wanted in _written(inner[other])), None)
        if whole is not None:
            found[row] = whole
            continue
        for part in {*pairs, *((token,) for token in ids)}:
            rows_with[part].append(row)
    return found


def _written(ids: Sequence[int]) -> str:
    return f" {' '.join(map(str, ids))} "
