"""The dense twin: the same encoder with a classification layer, as one would fine-tune it without words in between."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForSequenceClassification

from splade.models.backbone import load_tokenizer, quiet_transformers, without_attention_dropout
from splade.models.bundled import resolve_source


class DenseClassifier(nn.Module):
    """`AutoModelForSequenceClassification` on a backbone's encoder, with its tokenizer."""

    def __init__(self, name: str, num_labels: int) -> None:
        super().__init__()
        source = resolve_source(name)
        config = without_attention_dropout(AutoConfig.from_pretrained(source, num_labels=num_labels))
        with quiet_transformers():
            self.model = AutoModelForSequenceClassification.from_pretrained(
                source, config=config, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
            )
        self.tokenizer = load_tokenizer(source)

    def forward(self, input_ids: Int[Tensor, "B L"], attention_mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B C"]:
        """Logits of each class."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask.long()).logits
