"""Gates: from word logits to the words that are open, and how strongly.

Every gate is non-decreasing in the logit, so `gate(max z) == max gate(z)`: documents may pool logits first.
Logits of -inf (padding, sense slots not chosen) are closed and send no gradient. At z == threshold a gate is closed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import PositiveFloat
from torch import Tensor, nn

from lexical_sae.utils.part import PartConfig
from lexical_sae.utils.precision import full_precision

ROUNDING = 1e-3
"""Share by which a word may lie beyond a kernel's reach and still count as within."""


@dataclass(frozen=True)
class GateOutput:
    """A gate's output for each word, by name; as a pair, `out, gate_probs = gate(x)`, activation and open probability.

    The pair leaves the mask out: an open word has an activation above zero.
    """

    activated: Float[Tensor, "*batch V"]
    """Strength of the open words, zero elsewhere."""
    gate_mask: Float[Tensor, "*batch V"]
    """One where open, zero where closed; its gradient, where the gate has one, is a surrogate for the step's."""
    open_prob: Float[Tensor, "*batch V"]
    """Smooth stand-in for the mask, for penalties on the number of open words."""

    def map(self, change: Callable[[Tensor], Tensor]) -> "GateOutput":
        """The same change of all three."""
        return GateOutput(change(self.activated), change(self.gate_mask), change(self.open_prob))

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.activated, self.open_prob))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Tensor:
        return (self.activated, self.open_prob)[index]


class Gate(nn.Module, ABC):
    """A threshold per word, an optional learned offset per word, and words that are closed for good.

    A subclass defines how a shifted logit is activated. Closing is the last step and a fill with zero, so a closed word
    is bitwise zero for every input, whatever its threshold, offset or decoder bias.
    """

    closed: Bool[Tensor, " V"]
    lowest_opening: float = 0.0
    """A word cannot be active below this, whatever its threshold."""

    def __init__(self, size: int, *, use_offset: bool) -> None:
        super().__init__()
        self.register_buffer("closed", torch.zeros(size, dtype=torch.bool))
        self.offset = nn.Parameter(torch.zeros(size)) if use_offset else None

    @abstractmethod
    def thresholds(self) -> Float[Tensor, " V"]:
        """The threshold of each word, which its logit plus offset must exceed to open it."""

    @abstractmethod
    def activate(self, z: Float[Tensor, "*batch V"], theta: Float[Tensor, "*#batch V"]) -> GateOutput:
        """The gate of logits that already carry their offset; closed words are not its business."""

    def _watch(self, z: Float[Tensor, "*batch V"]) -> None:  # noqa: B027 - most gates have nothing to watch
        """Follow the logits of all words in training, offset included; some words alone are no fair sample."""

    @full_precision()
    def forward(self, logits: Float[Tensor, "*batch V"], words: Int[Tensor, "*#batch V"] | None = None) -> GateOutput:
        """The gate of all words' logits or, with `words`, of the logits of those words only."""
        theta, closed, offset = self.thresholds(), self.closed, self.offset
        if words is not None:
            theta, closed, offset = theta[words], closed[words], None if offset is None else offset[words]
        z = _shifted(logits, offset)
        if self.training and words is None:
            self._watch(z.detach())
        output = self.activate(z, theta)
        return output.map(lambda field: field.masked_fill(closed, 0.0))

    @torch.no_grad()
    def live_words(self, logits: Float[Tensor, "N V"]) -> Bool[Tensor, " V"] | None:
        """Words that are open, or near enough to learn, in at least one of the samples; None if every word may learn.

        All others have zero activation, zero `open_prob`, and send no gradient through either: a training step can
        leave them out. To be called in training, once per batch and before the gate of the live words: the gate watches
        all logits here.
        """
        if self.reach() is None:
            return None
        z = _shifted(logits, self.offset)
        if self.training:
            self._watch(z)
        # Asked again: the watch moves it, and the gate of the live words will use what it is now.
        reach = self.reach()
        assert reach is not None
        # A little further, because the gate's own arithmetic rounds in other places.
        lowest = self.thresholds() - reach * (1 + ROUNDING)
        # Not `z > ...`: what is not a number must not vanish, or a broken model would train on in silence.
        return (~(z <= lowest)).any(0) & ~self.closed

    def reach(self) -> Float[Tensor, ""] | None:
        """How far below its threshold a logit still learns; None is without end."""
        return None

    def openings(self) -> Float[Tensor, " V"]:
        """The logit that each word must exceed to be active, with its gradient; closed words are not its business."""
        opening = self.thresholds().clamp(min=self.lowest_opening)
        return opening if self.offset is None else opening - self.offset

    @torch.no_grad()
    def opening_logits(self) -> Float[Tensor, " V"]:
        """The same for inference; infinite for closed words."""
        return self.openings().masked_fill(self.closed, torch.inf)

    @torch.no_grad()
    def close(self, dimensions: Bool[Tensor, " V"]) -> None:
        """Close these words for good."""
        self.closed |= dimensions.to(self.closed.device)


def _shifted(logits: Float[Tensor, "*batch V"], offset: Float[Tensor, "*#batch V"] | None) -> Float[Tensor, "*batch V"]:
    """Logits with their offset; never below fp32, where a kernel narrower than the spacing would see no logit."""
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return z if offset is None else z + offset


class _FreeThreshold(Gate):
    """A gate whose thresholds are parameters as they are, of either sign."""

    def __init__(self, size: int, initial_threshold: float, *, use_offset: bool) -> None:
        super().__init__(size, use_offset=use_offset)
        self.theta = nn.Parameter(torch.full((size,), initial_threshold))

    def thresholds(self) -> Float[Tensor, " V"]:
        return self.theta


class DReLU(_FreeThreshold):
    """`relu(z - theta)`: a shifted ReLU with a learned threshold per word."""

    REFERENCE: ClassVar = "Formal et al. 2021, arXiv:2107.05720 (sparse lexical layer); threshold per word learned"
    lowest_opening = -torch.inf

    class Config(PartConfig):
        kind: Literal["drelu"] = "drelu"
        initial_threshold: float = 0.0
        """Threshold of every word before training, in logits."""
        offset: bool = False
        """Whether each word also gets a learned offset, which calibration can set."""

        def build(self, size: int) -> "DReLU":
            return DReLU(size, self.initial_threshold, use_offset=self.offset)

    def activate(self, z: Float[Tensor, "*batch V"], theta: Float[Tensor, "*#batch V"]) -> GateOutput:
        excess = z - theta
        return GateOutput(excess.relu(), (excess > 0).to(z.dtype), excess.sigmoid())


class GatedJumpReLU(_FreeThreshold):
    """`relu(z) * 1[z > theta]`; the step's gradient, in z and in theta, is that of a sigmoid of width one."""

    REFERENCE: ClassVar = "Rajamanoharan et al. 2024, arXiv:2407.14435"

    class Config(PartConfig):
        kind: Literal["gated_jumprelu"] = "gated_jumprelu"
        initial_threshold: float = 1.0
        """Threshold of every word before training, in logits."""
        offset: bool = False
        """Whether each word also gets a learned offset, which calibration can set."""

        def build(self, size: int) -> "GatedJumpReLU":
            return GatedJumpReLU(size, self.initial_threshold, use_offset=self.offset)

    def activate(self, z: Float[Tensor, "*batch V"], theta: Float[Tensor, "*#batch V"]) -> GateOutput:
        open_prob = (z - theta).sigmoid()
        # Above zero too: with a negative threshold the word would count as open at an activation of zero.
        hard = ((z > theta) & (z > 0)).to(z.dtype)
        gate_mask = hard + (open_prob - open_prob.detach())
        return GateOutput(z.relu() * gate_mask, gate_mask, open_prob)


class JumpReLUGate(Gate):
    """`r * 1[r > theta]` with `r = relu(z)`, `theta = exp(log_theta)`: hard step, full magnitude, kernel gradient.

    The kernel's width is a fraction of the running spread of the logits, so that thresholds of any backbone see
    enough logits to learn from.
    """

    REFERENCE: ClassVar = "Rajamanoharan et al. 2024, arXiv:2407.14435"

    logit_spread: Float[Tensor, ""]
    spread_is_known: Bool[Tensor, ""]

    class Config(PartConfig):
        kind: Literal["jumprelu"] = "jumprelu"
        initial_threshold: PositiveFloat = 1.0
        """Threshold of every word before training, in logits."""
        bandwidth: PositiveFloat = 0.1
        """Width of the kernel that stands in for the step when differentiating, in running standard deviations of
        the logits."""
        kernel: Literal["rectangle", "sigmoid"] = "sigmoid"
        """Shape of that kernel; a rectangle is exactly sparse, which keeps the fused backward fast."""
        offset: bool = False
        """Whether each word also gets a learned offset, which calibration can set."""

        def build(self, size: int) -> "JumpReLUGate":
            return JumpReLUGate(self, size)

    def __init__(self, config: Config, size: int) -> None:
        super().__init__(size, use_offset=config.offset)
        self.config = config
        self.log_theta = nn.Parameter(torch.full((size,), config.initial_threshold).log())
        self.register_buffer("logit_spread", torch.tensor(1.0))
        self.register_buffer("spread_is_known", torch.tensor(False))

    def thresholds(self) -> Float[Tensor, " V"]:
        return self.log_theta.exp()

    def reach(self) -> Float[Tensor, ""] | None:
        half = _KERNELS[self.config.kernel].half_width
        return None if half is None else half * self.config.bandwidth * self.logit_spread

    def activate(self, z: Float[Tensor, "*batch V"], theta: Float[Tensor, "*#batch V"]) -> GateOutput:
        r = z.relu()
        width = self.config.bandwidth * self.logit_spread
        kernel = _KERNELS[self.config.kernel]
        activated, gate_mask = _JumpStep.apply(r, theta, width, kernel)
        # Of z, not of relu(z): a word far below zero is not "almost open" at a small threshold.
        open_prob = kernel.cumulative((z - theta) / width)
        return GateOutput(activated, gate_mask, open_prob)

    @torch.no_grad()
    def _watch(self, z: Float[Tensor, "*batch V"]) -> None:
        """Follow the spread of the logits; padding (-inf) and closed words do not count, what is not a number does."""
        unseen = (z == -torch.inf) | self.closed
        count = unseen.numel() - unseen.sum()
        # Sums with zeros in them, not a selection: looking up each place that is kept costs ten times as much.
        centered = z - z.masked_fill(unseen, 0.0).sum() / count
        # Not `norm`, which loses a thousandth over many millions of numbers.
        spread = (centered.masked_fill_(unseen, 0.0).square_().sum() / (count - 1)).sqrt()
        # Without branching on a device value: the first batch is copied, later ones are averaged in.
        momentum = torch.where(self.spread_is_known, 0.01, 1.0)
        is_enough = count >= 2
        found = torch.where(is_enough, spread.clamp(min=1e-6), self.logit_spread)
        self.logit_spread.lerp_(found, momentum)
        self.spread_is_known |= is_enough


class _Sigmoid:
    half_width = None
    """It ends nowhere."""

    @staticmethod
    def cumulative(u: Tensor) -> Tensor:
        return u.sigmoid()

    @staticmethod
    def density(u: Tensor) -> Tensor:
        p = u.sigmoid()
        return p * (1 - p)


class _Rectangle:
    half_width = 0.5

    @staticmethod
    def cumulative(u: Tensor) -> Tensor:
        return (u + 0.5).clamp(0, 1)

    @staticmethod
    def density(u: Tensor) -> Tensor:
        return (u.abs() < 0.5).to(u.dtype)


_KERNELS = {"sigmoid": _Sigmoid, "rectangle": _Rectangle}


class _JumpStep(torch.autograd.Function):
    """`(r * 1[r > theta], 1[r > theta])`, differentiated as the JumpReLU paper does.

    dy/dr = 1[r > theta]; dtheta = -(g_y * r + g_gate) * kernel((r - theta) / width) / width.
    """

    @staticmethod
    def forward(ctx: Any, r: Tensor, theta: Tensor, width: Tensor, kernel: Any) -> tuple[Tensor, Tensor]:
        gate = (r > theta).to(r.dtype)
        ctx.save_for_backward(r, theta, width, gate)
        ctx.kernel = kernel
        return r * gate, gate

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_activated, grad_gate = grads
        r, theta, width, gate = ctx.saved_tensors
        pull = (grad_activated * r + grad_gate) * ctx.kernel.density((r - theta) / width) / width
        return grad_activated * gate, -pull.sum_to_size(theta.shape), None, None


class PresenceGate(Gate):
    """Open for every word that is in reach, whatever its logit: what a literal word needs. Nothing is learned."""

    lowest_opening = -torch.inf

    class Config(PartConfig):
        kind: Literal["presence"] = "presence"
        offset: Literal[False] = False
        """There is no threshold to shift."""

        def build(self, size: int) -> "PresenceGate":
            return PresenceGate(size, use_offset=False)

    def thresholds(self) -> Float[Tensor, " V"]:
        return torch.full_like(self.closed, -torch.inf, dtype=torch.float32)

    def activate(self, z: Float[Tensor, "*batch V"], theta: Float[Tensor, "*#batch V"]) -> GateOutput:
        present = (z > theta).to(z.dtype)
        return GateOutput(present, present, present)
