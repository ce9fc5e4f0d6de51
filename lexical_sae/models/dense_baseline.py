"""The dense baselines: the same encoder with a layer for classes or tags, as one would fine-tune it without words."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedTokenizerBase,
)

from lexical_sae.models.bundled import resolve_source
from lexical_sae.models.pretrained import load_tokenizer, quiet_transformers, without_attention_dropout


def _load(kind: Any, name: str, num_labels: int) -> tuple[Any, PreTrainedTokenizerBase]:
    """A model of one of transformers' automatic kinds on a backbone's encoder, and its tokenizer."""
    source = resolve_source(name)
    config = without_attention_dropout(AutoConfig.from_pretrained(source, num_labels=num_labels))
    with quiet_transformers():
        model = kind.from_pretrained(
            source, config=config, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
        )
    return model, load_tokenizer(source)


class DenseClassifier(nn.Module):
    """`AutoModelForSequenceClassification` on a backbone's encoder, with its tokenizer."""

    def __init__(self, name: str, num_labels: int) -> None:
        super().__init__()
        self.model, self.tokenizer = _load(AutoModelForSequenceClassification, name, num_labels)

    def forward(self, input_ids: Int[Tensor, "B L"], attention_mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B C"]:
        """Logits of each class."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask.long()).logits


class DenseTagger(nn.Module):
    """`AutoModelForTokenClassification` on a backbone's encoder, with orthographic features as input.

    Shapes go in where they can do most: into the input vectors, so that every position sees them all, and to the tags.
    """

    def __init__(self, name: str, num_tags: int, num_shapes: int = 0) -> None:
        super().__init__()
        self.model, self.tokenizer = _load(AutoModelForTokenClassification, name, num_tags)
        width = self.model.get_input_embeddings().embedding_dim
        self.shapes = nn.Parameter(torch.zeros(num_shapes, width))
        self.shape_tags = nn.Parameter(torch.zeros(num_shapes, num_tags))

    def forward(
        self, input_ids: Int[Tensor, "B L"], attention_mask: Bool[Tensor, "B L"], shapes: Bool[Tensor, "B L S"]
    ) -> Float[Tensor, "B L C"]:
        """Logits of each tag at every position."""
        vectors = self.model.get_input_embeddings()(input_ids)
        present = shapes.to(vectors.dtype)
        vectors = vectors + present @ self.shapes
        logits = self.model(inputs_embeds=vectors, attention_mask=attention_mask.long()).logits
        return logits + present @ self.shape_tags
