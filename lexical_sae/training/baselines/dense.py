"""The dense baseline of classes: the same encoder fine-tuned on the same rows, without words in between."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.data.batches import Batch, TokenizedTexts, batches, tokenize
from lexical_sae.models.dense_baseline import DenseClassifier
from lexical_sae.training.baselines.fine_tuning import DenseTraining, best_of_rates, fine_tune
from lexical_sae.training.baselines.scores import BaselineScores, scores_on
from lexical_sae.utils.device import resolve_device
from lexical_sae.utils.progress import OnStep, silent


def dense_baseline(dataset: TextDataset, backbone: str, asked: DenseTraining) -> BaselineScores:
    """The same encoder fine-tuned without words in between: best of a few learning rates, chosen on validation."""

    def tokens(model: DenseClassifier, split: TextSplit) -> TokenizedTexts:
        return tokenize(model.tokenizer, split.texts, asked.max_length)

    def trained(rate: float) -> DenseClassifier:
        model = DenseClassifier(backbone, len(dataset.label_names)).to(resolve_device(asked.device))
        texts, labels = tokens(model, dataset.train), torch.tensor(dataset.train.labels)

        def loss_of(rows: list[int]) -> Tensor:
            logits = _logits(model, texts.batch(rows))
            return cross_entropy(logits, labels[rows].to(logits.device))

        fine_tune(model, texts, loss_of, rate, asked)
        return model

    def accuracy(model: DenseClassifier) -> float:
        predicted = predict(model, tokens(model, dataset.validation), asked.on_step)
        return float((predicted == torch.tensor(dataset.validation.labels)).float().mean())

    model, best, found = best_of_rates(asked, trained, accuracy)
    predicted = predict(model, tokens(model, dataset.test), asked.on_step)
    return scores_on(dataset.test, "dense baseline", predicted.numpy(), best, found)


def _logits(model: DenseClassifier, batch: Batch) -> Float[Tensor, "B C"]:
    device = next(model.parameters()).device
    return model(batch.input_ids.to(device), batch.attention_mask.to(device))


@torch.no_grad()
def predict(model: DenseClassifier, texts: TokenizedTexts, on_step: OnStep = silent) -> Int[Tensor, " T"]:
    """The class of each text."""
    model.eval()
    predicted = torch.empty(len(texts), dtype=torch.long)
    for batch in batches(texts, 64, "dense baseline, deciding", on_step):
        predicted[batch.rows] = _logits(model, batch).argmax(-1).cpu()
    return predicted
