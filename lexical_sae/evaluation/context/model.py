"""What a model must answer for its use of context to be measured."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from numpy import ndarray

from lexical_sae.evaluation.names.model import NamedModel, NamedWord, Reading
from lexical_sae.utils.progress import OnStep, silent

Contributions = tuple[float, ...]
"""Class-centred, one per class."""


@runtime_checkable
class ContextModel(NamedModel, Protocol):
    """A `NamedModel` whose head can be asked about chosen features, and whose words may have explicit defaults.

    Readings are those of `NamedModel.contributions`: per text its active features, each a `NamedWord` with its
    dimension, the span of the input word that activated it (None for a special token), its activation (`strength`) and
    its class-centred contributions. A dimension may come once per text (pooled) or once per occurrence of its word.

    For a model with a table of words and shifts by context:
    - `contributions` lists every word of the text whose default or context part is not zero, once per occurrence, with
      the sum of both parts as its contributions;
    - `default_contributions` gives the table's row of each (class-centred), so that the rest is the context part, and
      exactly zero where context changes nothing;
    - `decide` is the bias plus the sum of the `contributions` of the features it is given: they may be defaults.

    For a model without explicit defaults `default_contributions` is None, and `decide` must use `dimension` and
    `strength` alone: defaults are then estimated from the other occurrences of a word, and carry no contributions.
    """

    def read_edited(self, texts: Sequence[str], on_step: OnStep = silent) -> list[Reading]:
        """As `contributions`, of texts that `as_read` gave and an edit changed: `blank` in them is the model's own."""
        ...

    def decide(self, texts: Sequence[Sequence[NamedWord]]) -> Float[ndarray, "T C"]:
        """Class logits of the model's own head, given these features of each text and nothing else.

        Entries of one dimension are pooled as the model pools positions. A text without features gets the bias.
        """
        ...

    def default_contributions(self, readings: Sequence[Reading]) -> list[list[Contributions]] | None:
        """The context-free part of every feature's contributions, in the order of `Reading.words`; None without."""
        ...
