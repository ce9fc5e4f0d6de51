"""The table of a model with literal words, as far as a corpus uses it: the strongest words of each class.

Some words have weight only because the training data gave it to them: that reviews of bad films say "movie" is true of
reviews, not of the word. Whether a row is of the word's meaning, its neighbours tell: the words nearest to it in the
pretrained embedding were chosen without any label, and where they do not say on average what it says, its weight is
the data's alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from lexical_sae.data.language import stem
from lexical_sae.evaluation.collect import ReadBatch
from lexical_sae.evaluation.corpus.lexicon import strongest_first
from lexical_sae.evaluation.names.text import is_content_word
from lexical_sae.inference.labels import names_of
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.models.table_head import TableHead
from lexical_sae.utils.errors import DataError

NEIGHBOURS = 8
"""Words nearest in the pretrained embedding; forms of the word itself are not asked."""
MOST_FORMS = 16
"""Forms of a word among those nearest to it, itself included, that are passed over."""
LEAST_AGREEMENT = 0.1
"""Share of a word's row that its neighbours say on average, from which on the row is of its meaning."""
LOOKED_AT = 200
"""Words that carry most of the contributions, among which those are looked for."""


@dataclass(frozen=True)
class TableWord:
    """A word of the table."""

    name: str
    weight: float
    """What it says for the class by default, in a text of usual length."""
    texts: int
    """Texts of the corpus that have it."""


@dataclass(frozen=True)
class TableWords:
    """What the table says, in words."""

    classes: tuple[tuple[str, tuple[TableWord, ...]], ...]
    """Per label, or side of a number, the words that contribute most to it."""
    from_data_alone: tuple[str, ...]
    """Content words that carry weight which their neighbours do not share, those that carry most of it first."""


class TableWordCollector:
    """Counts the texts that have each word of the table."""

    def __init__(self, model: LexicalSAE) -> None:
        head = model.head(CLASSIFY)
        if model.literal is None or not isinstance(head, TableHead):
            raise DataError("this model has no table of words; train with a recipe of literal words")
        self.model, self.sides = model, model.output.sides(names_of(model))
        self.rows = model.output.weights(head.word_vectors.detach().cpu())
        self.texts = torch.zeros(len(self.rows), dtype=torch.long)

    def update(self, batch: ReadBatch) -> None:
        """Count the texts of a batch. Words that the model never met come after the others, and are none of these."""
        size = len(self.texts)
        self.texts += torch.bincount(batch.state.code.ids.cpu(), minlength=size)[:size]

    def words(self, top: int = 12, min_count: int = 5) -> TableWords:
        """The `top` words of each class among those in `min_count` texts and more, or else among all that occur."""
        is_listed = self.texts >= min_count
        listed = is_listed if bool(is_listed.any()) else self.texts > 0
        classes = [(title, self._strongest(sign * self.rows[:, c], sign, top, listed)) for title, c, sign in self.sides]
        return TableWords(tuple(classes), self._from_data_alone(top))

    def _strongest(self, weights: Float[Tensor, " V"], sign: int, top: int, listed: Tensor) -> tuple[TableWord, ...]:
        return tuple(
            TableWord(self.model.dimensions[i].name, sign * float(weights[i]), int(self.texts[i]))
            for i in strongest_first(weights, top, listed)
        )

    def _from_data_alone(self, top: int) -> tuple[str, ...]:
        carried = self.rows.norm(dim=-1) * self.texts
        first = [i for i in strongest_first(carried, LOOKED_AT) if is_content_word(self.model.dimensions[i].letters)]
        agreement = neighbour_agreement(self.model, self.rows, first)
        return tuple(
            self.model.dimensions[i].name for i, a in zip(first, agreement, strict=True) if a < LEAST_AGREEMENT
        )[:top]


@torch.no_grad()
def neighbour_agreement(model: LexicalSAE, rows: Float[Tensor, "V C"], words: Sequence[int]) -> list[float]:
    """How much of each word's row the words nearest in meaning say: 1 the same, 0 nothing, below it the opposite.

    `mean(rows of neighbours) . row / |row|^2`; for two classes, the ratio of the weights.
    """
    assert model.literal is not None
    table: Int[Tensor, " T"] = (~model.gate.closed.cpu()[: len(rows)] & (rows != 0).any(-1)).nonzero().flatten()
    embeddings = model.literal.embeddings(model.backbone.input_embeddings()).detach().cpu()
    near = normalize(embeddings - embeddings[table].mean(0), dim=-1)
    nearest = (near[list(words)] @ near[table].T).topk(min(NEIGHBOURS + MOST_FORMS, len(table))).indices
    found = []
    for word, candidates in zip(words, table[nearest].tolist(), strict=True):
        own = stem(model.dimensions[word].name)
        others = [i for i in candidates if stem(model.dimensions[i].name) != own][:NEIGHBOURS]
        mean = rows[others].mean(0) if others else torch.zeros_like(rows[word])
        found.append(float(mean @ rows[word] / rows[word].square().sum()))
    return found
