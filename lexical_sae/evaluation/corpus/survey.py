"""A model seen over a whole corpus, in one pass: the lexicon of each class, how steady its weights are, its regions."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from lexical_sae.data.language import grouped_forms, joined_forms
from lexical_sae.evaluation.collect import Collector, ReadBatch, collect, opened_to_corpus
from lexical_sae.evaluation.corpus.atlas import RegionAtlas, region_atlas
from lexical_sae.evaluation.corpus.lexicon import Lexicon, LexiconCollector
from lexical_sae.evaluation.corpus.regions import RegionSampler
from lexical_sae.evaluation.corpus.weff import WeightCollector, WeightSummary, WordWeight
from lexical_sae.inference.labels import labels_of
from lexical_sae.models.lexical_sae import CLASSIFY, LexicalSAE
from lexical_sae.utils.progress import OnStep, silent


@dataclass(frozen=True)
class Survey:
    """What a corpus shows of a model."""

    lexicon: Lexicon
    weights: dict[str, dict[str, WordWeight]]
    """Per label and word of the lexicon, the effective weight and how steady it is."""
    steadiness: WeightSummary
    atlas: RegionAtlas | None
    """None for a head that is not piecewise linear."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def survey(
    model: LexicalSAE,
    texts: Iterable[Any],
    labels: Iterable[Any] | None = None,
    *,
    top: int = 20,
    min_count: int = 5,
    batch_size: int = 32,
    all_tokens: bool = False,
    merge_inflections: bool = False,
    beside: Sequence[Collector] = (),
    on_step: OnStep = silent,
) -> Survey:
    """Lexicon, weights and atlas over the texts, each counted under its label, or else under its predicted class.

    Lists name whole words and sum the rest; with `all_tokens` they name word pieces and symbols too. With
    `merge_inflections` the lexicon has the forms of a word (film, films) as one, which has no one weight.
    `beside` are other collectors that are to see the same texts.

    Example: `survey(model, texts).lexicon.classes[0].contributes_to[0].name`
    """
    names = labels_of(model)
    model, texts = opened_to_corpus(model, texts)
    shape = len(names), len(model.dimensions)
    merged = WordForms(model) if merge_inflections else None
    words, weights = LexiconCollector(*shape, merged.counts_under if merged else None), WeightCollector(*shape)
    head = model.head(CLASSIFY)
    regions = RegionSampler(head) if head.is_piecewise_linear else None
    collectors: list[Collector] = [words, weights, *filter(None, (regions, merged)), *beside]
    collect(model, texts, collectors, labels, batch_size, on_step)

    def name_of(dimension: int) -> str:
        return model.dimensions[dimension].name

    listed = model.dimensions.listed_mask(all_tokens=all_tokens)
    lexicon = words.lexicon(names, merged.name if merged else name_of, top, min_count, listed)
    return Survey(
        lexicon,
        {} if merged else _weights_of(lexicon, weights),
        weights.summary(min_count),
        region_atlas(regions.sample(), names, name_of, listed) if regions else None,
    )


class WordForms:
    """Which words of a model are forms of one another, and which of them a corpus has."""

    def __init__(self, model: LexicalSAE) -> None:
        self.dimensions = model.dimensions
        every = [self.dimensions[i] for i in range(len(self.dimensions))]
        names = [dimension.name if dimension.kind == "word" else None for dimension in every]
        self.groups = {group[0]: group for group in grouped_forms(names)}
        self.counts_under = torch.arange(len(names))
        for first, group in self.groups.items():
            self.counts_under[group] = first
        self.is_met = torch.zeros(len(names), dtype=torch.bool)

    def update(self, batch: ReadBatch) -> None:
        self.is_met[batch.state.code.ids.cpu()] = True

    def name(self, dimension: int) -> str:
        """The forms that the corpus has of what counts under a dimension. Example: `film/films`"""
        return joined_forms(self.dimensions[i].name for i in self.groups[dimension] if self.is_met[i])


def _weights_of(lexicon: Lexicon, weights: WeightCollector) -> dict[str, dict[str, WordWeight]]:
    """The weights of the words that the lexicon shows."""
    found: dict[str, dict[str, WordWeight]] = {}
    for index, own in enumerate(lexicon.classes):
        shown = (*own.contributes_to, *own.contributes_against)
        pairs = ((word.name, weights.of(index, word.dimension)) for word in shown)
        found[own.label] = {name: weight for name, weight in pairs if weight is not None}
    return found
