"""The words that contribute to each type of entity, over many sentences: a lexicon per type."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lexical_sae.data.tagging import parse_tag
from lexical_sae.evaluation.corpus.lexicon import PieceSum, strongest_first
from lexical_sae.inference.word_decisions import read_words, words_of
from lexical_sae.mechanistic.attribution import attribute_code
from lexical_sae.models.lexical_sae import TAG, LexicalSAE
from lexical_sae.utils.progress import OnStep, silent


@dataclass(frozen=True)
class LexiconWord:
    """What one dimension says for a type of entity."""

    word: str
    kind: str
    """A word, a sense of one, or a shape feature."""
    contribution: float
    """Class-centred contribution to the predicted tag, over all positions with a tag of this type, those where it is
    not active included."""
    active: float
    """Share of those positions where it is active."""


@dataclass(frozen=True)
class TypeLexicon:
    """The dimensions that say most for a type of entity, the top-attributed first."""

    type: str
    positions: int
    """Words that were predicted to be part of such an entity."""
    words: tuple[LexiconWord, ...]
    pieces: PieceSum | None = None
    """Word pieces and symbols, where they are not listed."""


@torch.no_grad()
def entity_lexicons(
    model: LexicalSAE,
    sentences: Sequence[Sequence[str]],
    top: int = 20,
    *,
    batch_size: int = 32,
    all_tokens: bool = False,
    on_step: OnStep = silent,
) -> list[TypeLexicon]:
    """For each type, in alphabetical order, the dimensions that contribute most to it where the model predicts it.

    Word pieces and symbols are summed, or with `all_tokens` listed like words.
    """
    parsed = [parse_tag(name)[1] for name in model.labels[TAG]]
    types = sorted(set(parsed) - {""})
    # O is the type after the last.
    type_of = torch.tensor([types.index(kind) if kind else len(types) for kind in parsed])
    said = torch.zeros(len(types) + 1, len(model.dimensions), dtype=torch.float64)
    active, positions = torch.zeros_like(said), torch.zeros(len(types) + 1)
    rows = words_of(model, sentences)
    for read in read_words(model, sentences, rows, batch_size=batch_size, on_step=on_step):
        predicted = read.state.logits.argmax(-1)
        contributions = attribute_code(read.state, predicted, centered=True).double().cpu()
        kinds = type_of[predicted.cpu()]
        code = read.state.code
        at = (kinds[code.rows.cpu()], code.ids.cpu())
        said.index_put_(at, contributions, accumulate=True)
        active.index_put_(at, torch.ones_like(contributions), accumulate=True)
        positions += kinds.bincount(minlength=len(positions))
    counted: list[int] = positions.long().tolist()
    listed = model.dimensions.listed_mask(all_tokens=all_tokens)
    share = positions.clamp(min=1).double()[:, None]
    means, active = said / share, active / share
    return [
        TypeLexicon(
            name,
            counted[i],
            _strongest(model, means[i], active[i], top, listed),
            PieceSum.of(means[i], active[i] > 0, listed),
        )
        for i, name in enumerate(types)
    ]


def _strongest(
    model: LexicalSAE, means: Float[Tensor, " V"], active: Float[Tensor, " V"], top: int, listed: Bool[Tensor, " V"]
) -> tuple[LexiconWord, ...]:
    dimensions = [(model.dimensions[i], i) for i in strongest_first(means, top, listed)]
    return tuple(LexiconWord(d.name, d.kind, float(means[i]), float(active[i])) for d, i in dimensions)
