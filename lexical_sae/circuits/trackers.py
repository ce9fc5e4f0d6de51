"""What the circuit losses remember between batches. All of it is in buffers, so a checkpoint keeps it."""

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn


def class_means(
    values: Float[Tensor, "N V"], labels: Int[Tensor, " N"], num_labels: int
) -> tuple[Float[Tensor, "C V"], Bool[Tensor, " C"]]:
    """Mean row of each class, and which classes are there at all; the row of an absent class is zero."""
    counts = labels.bincount(minlength=num_labels)
    totals = values.new_zeros(num_labels, values.shape[-1]).index_add(0, labels, values)
    return totals / counts.clamp(min=1)[:, None], counts > 0


def spread(values: Shaped[Tensor, "N K"], words: Int[Tensor, " K"] | None, size: int) -> Shaped[Tensor, "N V"]:
    """Values of some words with a place for every word, zero at the others; None is all words, and changes nothing."""
    if words is None:
        return values
    return values.new_zeros(len(values), size).index_copy(1, words, values)


class AttributionCentroidTracker(nn.Module):
    """Per class, a moving average of the batch mean of |attribution|; a class absent from a batch is left as it is."""

    centroids: Float[Tensor, "C V"]
    seen: Bool[Tensor, " C"]

    def __init__(self, size: int, num_labels: int, decay: float = 1 - 2 / 21) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("centroids", torch.zeros(num_labels, size))
        self.register_buffer("seen", torch.zeros(num_labels, dtype=torch.bool))

    def blend(
        self, attr: Float[Tensor, "N K"], labels: Int[Tensor, " N"], words: Int[Tensor, " K"] | None = None
    ) -> tuple[Float[Tensor, "C V"], Bool[Tensor, " C"]]:
        """`(1 - m) * buffer + m * batch mean`, and the classes seen so far, this batch included.

        The gradient flows through the batch mean: between buffers alone a cosine has none. Changes nothing. With
        `words`, `attr` has columns for those alone and is zero at all others.
        """
        means, present = class_means(attr.abs(), labels, len(self.seen))
        means = spread(means, words, self.centroids.shape[1])
        # The first value of a class is copied.
        momentum = torch.where(self.seen, 1 - self.decay, 1.0) * present
        return torch.lerp(self.centroids, means, momentum[:, None].to(means.dtype)), self.seen | present

    @torch.no_grad()
    def keep(self, centroids: Float[Tensor, "C V"], seen: Bool[Tensor, " C"]) -> None:
        """Remember what `blend` gave."""
        self.centroids.copy_(centroids)
        self.seen.copy_(seen)

    def update(
        self, attr: Float[Tensor, "N K"], labels: Int[Tensor, " N"], words: Int[Tensor, " K"] | None = None
    ) -> None:
        """Take in one batch."""
        self.keep(*self.blend(attr.detach(), labels, words))


class DocumentFrequencyTracker(nn.Module):
    """In how many texts each word was open; older epochs count less and less."""

    counts: Float[Tensor, " V"]
    texts: Float[Tensor, ""]

    def __init__(self, size: int, epoch_decay: float = 0.9) -> None:
        super().__init__()
        self.epoch_decay = epoch_decay
        self.register_buffer("counts", torch.zeros(size))
        self.register_buffer("texts", torch.zeros(()))

    def update(self, is_open: Bool[Tensor, "N V"]) -> None:
        """Count one batch."""
        self.counts += is_open.sum(0)
        self.texts += len(is_open)

    def frequencies(self) -> Float[Tensor, " V"]:
        """Share of texts in which each word was open; zero before the first."""
        return self.counts / self.texts.clamp(min=1)

    def end_of_epoch(self) -> None:
        """Let what was counted so far fade."""
        self.counts *= self.epoch_decay
        self.texts *= self.epoch_decay


class FeatureFrequencyTracker(nn.Module):
    """How often each word opens, as a moving average over batches, and which words are worth opening at all."""

    average: Float[Tensor, " V"]
    steps: Int[Tensor, ""]
    live_now: Bool[Tensor, " V"]
    live_before: Bool[Tensor, " V"]
    proposed: Bool[Tensor, " V"]

    def __init__(self, size: int, decay: float = 0.99, quiet_steps: int = 50) -> None:
        super().__init__()
        self.decay, self.quiet_steps = decay, quiet_steps
        self.register_buffer("average", torch.zeros(size))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("live_now", torch.zeros(size, dtype=torch.bool))
        self.register_buffer("live_before", torch.zeros(size, dtype=torch.bool))
        self.register_buffer("proposed", torch.zeros(size, dtype=torch.bool))

    def propose(self, words: Bool[Tensor, " V"]) -> None:
        """Make these words candidates for good, whether they ever open or not."""
        self.proposed |= words.to(self.proposed.device)

    def update(self, is_open: Bool[Tensor, "N V"], in_reach: Bool[Tensor, " V"] | None = None) -> None:
        """Take in one batch: what opened in each text, and what might have opened in any of them."""
        self.average.lerp_(is_open.to(self.average.dtype).mean(0), 1 - self.decay)
        self.steps += 1
        self.live_now |= is_open.any(0) if in_reach is None else is_open.any(0) | in_reach

    def frequencies(self) -> Float[Tensor, " V"]:
        """Share of texts in which each word opens, of late; corrected for the zero that the average starts from."""
        return self.average / (1 - self.decay ** self.steps.clamp(min=1))

    def under_active(self, least: float) -> Bool[Tensor, " V"]:
        """Candidates that open less often than this; none in the first steps.

        A candidate was proposed before training, or opened or was within reach in this epoch or the one before.
        Flagging the whole vocabulary instead would work against every penalty on open words.
        """
        candidates = self.live_now | self.live_before | self.proposed
        return candidates & (self.frequencies() < least) & (self.steps > self.quiet_steps)

    def end_of_epoch(self) -> None:
        """Words that neither opened nor were within reach for an epoch stop being candidates, unless proposed."""
        self.live_before.copy_(self.live_now)
        self.live_now.zero_()
