"""Word vectors that learn together: what near words have in common is learned once, for all of them.

A row of a head's first layer learns only from texts where its word is open, and most words are rare. So while a model
learns, each row is predicted from its word's embedding, through a projection common to all words, plus the word's own:

    word_vectors = own + embeddings @ projection

What "dreadful" teaches, "ghastly" knows. Afterwards the rows are written out, and the head is as it always was.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils import parametrize

from lexical_sae.models.heads import Head


class Together(nn.Module):
    """Adds to each row of a first layer what its word's embedding predicts."""

    embeddings: Float[Tensor, "V D"]

    def __init__(self, embeddings: Float[Tensor, "V D"], width: int) -> None:
        super().__init__()
        centered = normalize(embeddings - embeddings.mean(0), dim=-1)
        self.register_buffer("embeddings", centered, persistent=False)
        self.projection = nn.Parameter(embeddings.new_zeros(embeddings.shape[1], width))

    def forward(self, own: Float[Tensor, "V H"]) -> Float[Tensor, "V H"]:
        return own + self.embeddings @ self.projection

    def rows(self, own: Float[Tensor, "V H"], words: Int[Tensor, " K"]) -> Float[Tensor, "K H"]:
        """The same for some words alone."""
        return own.index_select(0, words) + self.embeddings[words] @ self.projection


def learn_together(head: Head, embeddings: Float[Tensor, "V D"]) -> None:
    """From now on the head's word vectors learn together, from where they are."""
    write_out(head)
    own = head.get_parameter(head.word_layer)
    parametrize.register_parametrization(head, head.word_layer, Together(embeddings, own.shape[1]))


def write_out(head: Head) -> None:
    """The head with its word vectors as one matrix, bitwise as they were computed; nothing if they learned alone."""
    if parametrize.is_parametrized(head, head.word_layer):
        parametrize.remove_parametrizations(head, head.word_layer, leave_parametrized=True)
