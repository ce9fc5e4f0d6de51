"""A tiny model with literal words, its table drawn at random and its context made to shift some of them."""

import torch

from lexical_sae.data.batches import tokenize
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.recipes import recipe_by_name
from tests import tiny

SPLIT = ("badly", "filmed")
"""Words of the model that its tokenizer splits."""
TEXTS = [
    "a badly filmed plot, and not a good film",
    "good good film",
    "the acting was wonderful",
    "boring boring boring church and a bad dog!",
    "!",
]
UNSEEN = ["a boringly good film", "unhappyness: filmed boringly, badly"]


def literal_model(words=SPLIT, *, shifting=True, **others) -> LexicalSAE:
    settings = recipe_by_name("anchored").model.model_dump()
    settings["literal"] = {"multi_piece_words": words}
    made = tiny.model(ModelConfig.model_validate({**settings, **others}))
    generator = torch.Generator().manual_seed(5)

    def draw(like, scale):
        return scale * torch.randn(like.shape, generator=generator)

    with torch.no_grad():
        head = made.head()
        head.word_vectors.copy_(draw(head.word_vectors, 0.5))
        head.class_bias.copy_(draw(head.class_bias, 0.1))
        head.unseen_weights.copy_(draw(head.unseen_weights, 0.1))
        if made.context is not None:
            made.context.size.copy_(head.word_vectors.abs().amax(-1))
            if shifting:
                made.context.layer.weight.copy_(draw(made.context.layer.weight, 0.02))
    return made


def batch_of(model, *texts):
    batch = tokenize(model.tokenizer, texts, model.max_length).batch(range(len(texts)))
    return batch.input_ids, batch.attention_mask


def opened(model, *texts):
    return model.opened_to(tokenize(model.tokenizer, texts, model.max_length).ids)
