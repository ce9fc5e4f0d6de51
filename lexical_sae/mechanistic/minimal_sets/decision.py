"""`Decision`: the two-layer head at one text, reduced to the words that are active there."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lexical_sae.utils.errors import SettingsError

_OVERFLOW_ROOM = 16
"""Nothing that a proof computes is larger than this many times the sizes it starts from."""


@dataclass(frozen=True)
class Decision:
    """`logits = readout @ relu(hidden_bias + sum of the kept words' terms) + class_bias`.

    Kept in fp64 on the CPU, whatever comes in: proofs need the digits, and a text's share of a head is small.
    """

    word_terms: Float[Tensor, "K H"]
    """What each active word adds to each hidden unit: its vector times its activation."""
    hidden_bias: Float[Tensor, " H"]
    readout: Float[Tensor, "C H"]
    """How much each hidden unit, when on, counts for each class."""
    class_bias: Float[Tensor, " C"]

    def __post_init__(self) -> None:
        for field in fields(self):
            values = getattr(self, field.name).detach().to("cpu", torch.float64)
            bad = values[~values.isfinite()]
            if len(bad):
                raise SettingsError(
                    f"{field.name} holds {float(bad[0])}, and nothing can be proved about such a head; "
                    "check the saved weights, or the training run that made them"
                )
            object.__setattr__(self, field.name, values)
        if not bool((_OVERFLOW_ROOM * torch.cat([self._sizes, self._magnitude])).isfinite().all()):
            raise SettingsError(
                f"hidden units may reach {float(self._sizes.max())} and logits {float(self._magnitude.max())}: such "
                "numbers overflow, and nothing can be proved about them; check the saved weights"
            )
        if len(self.class_bias) < 2:
            raise SettingsError(f"class_bias has {len(self.class_bias)} class; a decision is between two or more")

    @property
    def num_words(self) -> int:
        """K, the active words of the text."""
        return len(self.word_terms)

    @property
    def num_classes(self) -> int:
        """C."""
        return len(self.class_bias)

    @cached_property
    def winner(self) -> int:
        """The class decided on when no word is removed."""
        return int(self.logits(torch.ones(self.num_words, dtype=torch.bool)).argmax())

    def hidden(self, kept: Bool[Tensor, "*sets K"]) -> Float[Tensor, "*sets H"]:
        """Hidden units before their ReLU when only the given words are kept."""
        return kept.double() @ self.word_terms + self.hidden_bias

    def logits(self, kept: Bool[Tensor, "*sets K"]) -> Float[Tensor, "*sets C"]:
        """Logits when only the given words are kept."""
        return self.hidden(kept).relu() @ self.readout.T + self.class_bias

    @cached_property
    def rounding(self) -> Float[Tensor, " C"]:
        """More than all rounding that one class's share of a margin, or of a bound on a margin, can gather in fp64.

        With `size_k = |hidden_bias_k| + sum_j |term_jk|` nothing in unit k exceeds `4 size_k`, bounds included, and no
        number is the result of more than `10 K + 5 H + 46` additions and products in a row. Each of them errs by at
        most one unit roundoff u, so `16 (K + H + 16) u (|class_bias| + sum_k |readout_k| size_k)` is above the sum of
        first-order errors of a bound and of any fp64 evaluation compared with it, second orders included. A product
        that underflows errs by an absolute amount instead, which its other factor, a weight or a size, may enlarge.
        """
        K, H = self.word_terms.shape
        limits = torch.finfo(torch.float64)
        # eps is 2 u; `tiny` is 2^53 times what one underflow loses.
        underflow = limits.tiny * (1 + self.readout.abs().sum(-1) + self._sizes.sum())
        return 8 * (K + H + 16) * limits.eps * self._magnitude + underflow

    @property
    def _sizes(self) -> Float[Tensor, " H"]:
        """The most that a hidden unit can be, either way."""
        return self.word_terms.abs().sum(0) + self.hidden_bias.abs()

    @property
    def _magnitude(self) -> Float[Tensor, " C"]:
        """The most that a logit can be, either way."""
        return self.readout.abs() @ self._sizes + self.class_bias.abs()

    def checked_words(self, words: Iterable[int]) -> list[int]:
        """The given words in ascending order, each once; refused if one is not an active word."""
        chosen = sorted({int(word) for word in words})
        strange = [word for word in chosen if not 0 <= word < self.num_words]
        if strange:
            raise SettingsError(
                f"word {strange[0]} is not among the {self.num_words} active words of this text; "
                "words are given by their place among the active ones, starting at 0"
            )
        return chosen
