"""The letters used in every shape of this package.

| letter | counts |
|---|---|
| B | texts in a batch |
| L | token positions of a text, padding included |
| V | dimensions of the sparse layer: vocabulary words, sense slots, shape features |
| K | active words |
| H | hidden units of the task head |
| D | width of the vectors that the vocabulary decoder multiplies |
| E | width of the encoder's hidden states |
| C | classes or tags |
| N | labelled tokens |

`*batch` stands for any leading dimensions: `[B]` for documents, `[B, L]` for positions.
"""

from jaxtyping import Bool, Int
from torch import Tensor

TokenIds = Int[Tensor, "B L"]
TokenMask = Bool[Tensor, "B L"] | Int[Tensor, "B L"]
"""True or 1 at real tokens, padding on either side: what callers may pass."""
