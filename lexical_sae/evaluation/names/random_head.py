"""A control for names: the same model with its lexical projection permuted.

Every word gets the decoder row, the bias and the place in neighbourhoods of another word; encoder, gate and head stay.
What then opens when "good" is written is a word sampled at random. Names are noise in such a model, and a test of
names that it passes is no test of names: the deletion test asks where an activation comes from, whatever it is called,
and stays high.
"""

import copy

import torch
from torch import nn

from lexical_sae.models.layers.cut_words import NO_WORD
from lexical_sae.models.lexical_sae import LexicalSAE


@torch.no_grad()
def with_random_lexical_head(model: LexicalSAE, seed: int = 0) -> LexicalSAE:
    """A copy of the model in which the words that may open have changed places at random; split words stay."""
    control = copy.deepcopy(model).eval()
    decoder = control.backbone.decoder
    size = len(decoder.weight)
    may_move = ~control.gate.closed[:size].cpu()
    if control.expander is not None:
        may_move[control.expander.token_ids.cpu()] = False
    words = may_move.nonzero().flatten()
    drawn = words[torch.randperm(len(words), generator=torch.Generator().manual_seed(seed))]
    # What word i was, word `becomes[i]` is now.
    becomes = torch.arange(size).index_copy(0, words, drawn).to(decoder.weight.device)
    comes_from = becomes.argsort()
    # New parameters: the decoder shares its weight with the input embedding, which must not change.
    decoder.weight = nn.Parameter(decoder.weight[comes_from].clone(), requires_grad=False)
    if decoder.bias is not None:
        decoder.bias = nn.Parameter(decoder.bias[comes_from].clone(), requires_grad=False)
    if control.neighbourhood is not None:
        table = control.neighbourhood.table
        table.copy_(torch.where(table == NO_WORD, NO_WORD, becomes[table.clamp(min=0)]))
        # Cut words change places among themselves, each with the row that it is read by.
        cut_rows, opens = control.neighbourhood.decoder_rows, control.neighbourhood.cut_dimensions
        drawn = torch.randperm(len(opens), generator=torch.Generator().manual_seed(seed)).to(table.device)
        opens.copy_(size + drawn)
        cut_rows[opens] = becomes[control.neighbourhood.cut.first_tokens]
    return control
