"""Scores of a lexical head: rank of the input word, related words next, and the scale of logits.

Each score takes a function from states to word logits, so that a fitted head, an unfitted one and the plain product
of states and embedding are measured alike.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from torch import Tensor

from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.models.backbone import Backbone
from lexical_sae.studies.lexical_head.wordnet import WordNet
from lexical_sae.utils.errors import DataError

WordLogits = Callable[[Float[Tensor, "N E"]], Float[Tensor, "N V"]]
ROWS = 500
"""Positions at a time: their logits over the whole vocabulary must fit in memory."""
WORDS_AFTER = 10


@dataclass(frozen=True)
class TopK:
    """Share of positions whose token is the first, or among the first five, of the head's ranking."""

    top1: float
    top5: float
    positions: int


@dataclass(frozen=True)
class LogitScale:
    """Mean logit of the token itself and at some ranks, and their spread."""

    token: float
    rank_2: float
    rank_10: float
    rank_100: float
    median: float
    standard_deviation: float


@dataclass(frozen=True)
class Relatedness:
    """Of the ten words that follow the input word in the ranking, how many are related to it in WordNet, on average."""

    related_of_10: float
    positions: int


def head_logits(backbone: Backbone) -> WordLogits:
    """Word logits through the backbone's own head."""
    device = backbone.decoder.weight.device
    return lambda states: backbone.decoder(backbone.transform(states.to(device).float()[None])[0]).cpu()


def identity_logits(backbone: Backbone) -> WordLogits:
    """Word logits without a head: states times embedding, for encoders where both have one width."""
    weight = backbone.decoder.weight.detach()
    return lambda states: (states.to(weight.device).float() @ weight.T).cpu()


@torch.no_grad()
def score_top_k(logits_of: WordLogits, states: Float[Tensor, "N E"], targets: Int[Tensor, " N"]) -> TopK:
    """How often the token is found. Example: ranks 1, 1, 3, 9 give `top1=0.5, top5=0.75`."""
    _require_positions(targets)
    first = five = 0
    for rows in torch.arange(len(targets)).split(ROWS):
        ranked = logits_of(states[rows]).topk(5).indices
        is_token = ranked == targets[rows, None]
        first += int(is_token[:, 0].sum())
        five += int(is_token.sum())
    return TopK(first / len(targets), five / len(targets), len(targets))


@torch.no_grad()
def measure_scale(logits_of: WordLogits, states: Float[Tensor, "N E"], targets: Int[Tensor, " N"]) -> LogitScale:
    """Logits of the token and of the next ranks; a threshold must fit in between."""
    _require_positions(targets)
    sums = torch.zeros(6, dtype=torch.float64)
    for rows in torch.arange(len(targets)).split(ROWS):
        logits = logits_of(states[rows])
        best = logits.topk(min(100, logits.shape[1])).values
        columns = [logits.gather(1, targets[rows, None])[:, 0], best[:, 1], best[:, min(10, best.shape[1]) - 1]]
        columns += [best[:, -1], logits.median(1).values, logits.std(1)]
        sums += torch.stack([column.double().sum() for column in columns])
    return LogitScale(*(sums / len(targets)).tolist())


@torch.no_grad()
def score_relatedness(
    logits_of: WordLogits,
    states: Float[Tensor, "N E"],
    targets: Int[Tensor, " N"],
    vocabulary: Vocabulary,
    wordnet: WordNet,
) -> Relatedness:
    """Mean number of WordNet relatives among the ten whole lower-case words ranked after the input word itself."""
    _require_positions(targets)
    is_word = lower_case_words(vocabulary)
    related = 0
    for rows in torch.arange(len(targets)).split(ROWS):
        logits = logits_of(states[rows]).masked_fill(~is_word, -torch.inf)
        logits = logits.scatter(1, targets[rows, None], -torch.inf)
        for token, following in zip(targets[rows].tolist(), logits.topk(WORDS_AFTER).indices.tolist(), strict=True):
            related += sum(wordnet.is_related(vocabulary.names[token], vocabulary.names[i]) for i in following)
    return Relatedness(related / len(targets), len(targets))


def lower_case_words(vocabulary: Vocabulary) -> Bool[Tensor, " V"]:
    """Dimensions that are whole words of lower-case letters only."""
    plain = [name.isalpha() and name.islower() for name in vocabulary.names]
    return torch.tensor(plain) & vocabulary.clean_mask


def content_words(vocabulary: Vocabulary, wordnet: WordNet) -> Bool[Tensor, " V"]:
    """Whole lower-case words that WordNet knows and that are not function words."""
    known = [name not in ENGLISH_STOP_WORDS and bool(wordnet.lemmas(name)) for name in vocabulary.names]
    return torch.tensor(known) & lower_case_words(vocabulary)


def _require_positions(targets: Int[Tensor, " N"]) -> None:
    if not len(targets):
        raise DataError("no position to score; give more held-out text")
