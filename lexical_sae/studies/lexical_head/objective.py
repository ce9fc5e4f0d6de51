"""The objective of a lexical head: rank the word at each position first, then its nearest words.

The softmax of a step runs over the batch's own words and a random sample of the others, weighted to stand for all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.models.backbone import Backbone
from lexical_sae.studies.lexical_head.settings import LexicalHeadSettings
from lexical_sae.studies.lexical_head.states import Positions
from lexical_sae.studies.lexical_head.text import Piece


@dataclass(frozen=True)
class Candidates:
    """The words a step's softmax runs over."""

    ids: Int[Tensor, " K"]
    log_weight: Float[Tensor, " K"]
    """Log of how many words each one stands for: 0 for the batch's own, more for a random one."""
    place: Int[Tensor, " V"]
    """Index of each word among the candidates; undefined for the others."""


@dataclass(frozen=True)
class Neighbours:
    """For each word, the words nearest to it in the embedding; a row of zero shares for tokens that are not words."""

    ids: Int[Tensor, "V K"]
    shares: Float[Tensor, "V K"]


def embedding_neighbours(
    weight: Float[Tensor, "V D"], is_word: Bool[Tensor, " V"], count: int, temperature: float
) -> Neighbours:
    """The `count` words nearest by cosine to each word, with `softmax(cosine / temperature)` as their shares."""
    words = is_word.nonzero().flatten().to(weight.device)
    count = min(count, len(words) - 1)
    ids = torch.zeros(len(weight), max(count, 1), dtype=torch.long, device=weight.device)
    shares = torch.zeros(ids.shape, device=weight.device)
    if count < 1:
        return Neighbours(ids, shares)
    unit = F.normalize(weight[words], dim=1)
    # In slices: all pairs at once would take gigabytes.
    for rows in torch.arange(len(words), device=weight.device).split(1024):
        cosine = unit[rows] @ unit.T
        cosine[torch.arange(len(rows)), rows] = -math.inf
        near = cosine.topk(count)
        ids[words[rows]] = words[near.indices]
        shares[words[rows]] = (near.values / temperature).softmax(1)
    return Neighbours(ids, shares)


def sample_candidates(
    required: Int[Tensor, " N"], vocab_size: int, count: int, generator: torch.Generator
) -> Candidates:
    """The required words, and `count` random others that represent the rest.

    With `count >= vocab_size` these are all words, and the softmax is the exact one.
    """
    required = required.unique()
    is_other = torch.ones(vocab_size, dtype=torch.bool, device=required.device)
    is_other[required] = False
    others = is_other.nonzero().flatten()
    # Sampled on the CPU: the same seed gives the same words on every device.
    chosen = others[torch.randperm(len(others), generator=generator)[:count].to(others.device)]
    ids = torch.cat([required, chosen])
    log_weight = torch.zeros(len(ids), device=ids.device)
    log_weight[len(required) :] = math.log(len(others) / max(1, len(chosen))) if len(others) else 0.0
    place = torch.zeros(vocab_size, dtype=torch.long, device=ids.device)
    place[ids] = torch.arange(len(ids), device=ids.device)
    return Candidates(ids, log_weight, place)


class LexicalObjective:
    """The loss of a backbone's head at some positions, and how often each token is used for it."""

    def __init__(
        self, backbone: Backbone, pieces: Sequence[Piece], vocabulary: Vocabulary, settings: LexicalHeadSettings
    ) -> None:
        self.backbone, self.settings = backbone, settings
        self.parameters: dict[str, nn.Parameter] = backbone.lexical_head()
        own = {id(parameter) for parameter in self.parameters.values()}
        self.weight: Tensor = backbone.decoder.weight
        if id(backbone.decoder.weight) not in own:
            # Tied to the encoder's embedding: used, never learned.
            self.weight = self.weight.detach()
        device = self.weight.device
        self.neighbours = embedding_neighbours(
            self.weight.detach(), vocabulary.clean_mask, settings.neighbours, settings.neighbour_temperature
        )
        tokens = torch.tensor([token for piece in pieces for token in piece])
        frequency = torch.bincount(tokens, minlength=backbone.vocab_size).clamp(min=1) / len(tokens)
        self.kept_share = (settings.frequency_threshold / frequency).sqrt().clamp(max=1.0)
        self.device = device

    def hidden(self, states: Float[Tensor, "N E"]) -> Float[Tensor, "N D"]:
        return self.backbone.transform(states.to(self.device).float()[None])[0]

    def loss(self, positions: Positions, candidate_count: int, generator: torch.Generator) -> Float[Tensor, ""]:
        """Cross-entropy with the token's own word and, at unmasked words, one neighbour sampled by its share."""
        targets = positions.targets.to(self.device)
        shares = self.neighbours.shares[targets]
        has_neighbours = (shares.sum(1) > 0) & ~positions.is_masked.to(self.device)
        drawn = torch.multinomial(shares.cpu() + 1e-12, 1, generator=generator).to(self.device)
        near = torch.where(has_neighbours, self.neighbours.ids[targets].gather(1, drawn)[:, 0], targets)
        words = sample_candidates(torch.cat([targets, near]), len(self.weight), candidate_count, generator)
        logits = self.hidden(positions.states) @ self.weight[words.ids].T + words.log_weight
        if self.backbone.decoder.bias is not None:
            logits = logits + self.backbone.decoder.bias[words.ids]
        log_probs = logits.log_softmax(1)
        share = self.settings.neighbour_share
        own_word = log_probs.gather(1, words.place[targets][:, None])
        neighbour = log_probs.gather(1, words.place[near][:, None])
        return -((1 - share) * own_word + share * neighbour).mean()
