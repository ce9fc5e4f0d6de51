"""What a sentence encoder does without any training: mean states into a logistic regression.

1. The encoder reads every text once, as it was published; a text is the mean of its tokens' states.
2. Columns are scaled to the training texts' mean and standard deviation.
3. The regression's prior is chosen by cross-validation on the training texts; validation texts are not used.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from lexical_sae.data import TextDataset, TextSplit
from lexical_sae.data.batches import length_buckets, tokenize
from lexical_sae.data.encoding import special_tokens_around
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.long_texts import Windows, longest
from lexical_sae.models.pretrained import load_backbone
from lexical_sae.training.baselines.scores import BaselineScores, scores_on
from lexical_sae.training.folds import FOLDS, stratified_folds
from lexical_sae.utils.device import resolve_device
from lexical_sae.utils.progress import OnStep, Step, silent

NAME = "frozen encoder"
STRENGTHS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
"""What the regression may choose from; the weaker its prior, the larger."""
USUAL_STRENGTH = 0.01
"""Where there are too few texts to choose."""


@dataclass(frozen=True)
class FrozenEncoder:
    """An encoder as it was published, and how much of a text it reads."""

    backbone: str
    """`bundled:minilm`, a local folder or a hub name."""
    max_length: int
    """Tokens that the encoder reads at once."""
    most_windows: int = 1
    """How many windows of so many tokens a longer text is read in; what is left of it is cut."""
    device: str = "auto"

    def states(self, splits: Iterable[TextSplit], on_step: OnStep = silent) -> list[Float[ndarray, "T E"]]:
        """The mean state of each text, split by split."""
        encoder = load_backbone(self.backbone, reads_logits=False).to(resolve_device(self.device)).eval()
        read = partial(mean_states, encoder, max_length=self.max_length, most_windows=self.most_windows)
        return [read(split.texts, on_step=on_step).double().numpy() for split in splits]


def frozen_baseline(dataset: TextDataset, encoder: FrozenEncoder, on_step: OnStep = silent) -> BaselineScores:
    """Logistic regression on the mean states of an encoder that is not trained.

    Args:
        dataset: Its training texts are fitted on, its test texts scored.
        encoder: What reads them.
        on_step: Told of progress.

    Returns:
        Its scores, as those of the other baselines; `validation` holds the cross-validated accuracies.
    """
    train, test = encoder.states((dataset.train, dataset.test), on_step)
    fitted = FrozenRegression.fit(train, np.asarray(dataset.train.labels), on_step)
    named = {f"C={strength:g}": accuracy for strength, accuracy in fitted.validated.items()}
    return scores_on(dataset.test, NAME, fitted.predict(test), f"C={fitted.strength:g}", named)


@dataclass(frozen=True)
class FrozenRegression:
    """A logistic regression on mean states, its prior chosen by cross-validation."""

    model: LogisticRegression
    centre: Float[ndarray, " E"]
    scale: Float[ndarray, " E"]
    strength: float
    validated: dict[float, float]
    """Cross-validated accuracy of every strength; empty where texts were too few to choose."""

    @classmethod
    def fit(
        cls, states: Float[ndarray, "T E"], labels: Int[ndarray, " T"], on_step: OnStep = silent
    ) -> "FrozenRegression":
        """The regression on these texts."""
        centre, scale = states.mean(0), states.std(0) + 1e-6
        states = (states - centre) / scale
        found = cross_validated(states, labels, on_step)
        # Of equal ones the strongest prior.
        best = max(found, key=lambda strength: found[strength]) if found else USUAL_STRENGTH
        return cls(_regression(best).fit(states, labels), centre, scale, best, found)

    def predict(self, states: Float[ndarray, "T E"]) -> Int[ndarray, " T"]:
        """The class of each text."""
        return np.asarray(self.model.predict((states - self.centre) / self.scale))

    def probabilities(self, states: Float[ndarray, "T E"]) -> Float[ndarray, "T C"]:
        """The probability of each class."""
        return self.model.predict_proba((states - self.centre) / self.scale)


@torch.no_grad()
def mean_states(
    encoder: Backbone,
    texts: Sequence[str],
    max_length: int,
    most_windows: int = 1,
    *,
    on_step: OnStep = silent,
) -> Float[Tensor, "T E"]:
    """The mean of the encoder's last states over the tokens of each text, special tokens included."""
    window, around = min(max_length, encoder.max_tokens), special_tokens_around(encoder.tokenizer)
    tokenized = tokenize(encoder.tokenizer, texts, longest(window, sum(around), most_windows))
    means = torch.empty(len(texts), encoder.encoder_width)
    device = next(encoder.parameters()).device
    done = 0
    for rows in length_buckets(tokenized, 64):
        batch = tokenized.batch(rows)
        mask = batch.attention_mask.to(device).bool()
        windows = Windows.of(mask, window, around)
        states = windows.states(encoder.encoder_states, batch.input_ids.to(device))
        sums = (states * mask[..., None]).sum(1)
        means[rows] = (sums / mask.sum(1, keepdim=True).clamp(min=1)).cpu()
        done += len(rows)
        on_step(Step("frozen encoder, reading", done, len(texts)))
    return means


def cross_validated(
    states: Float[ndarray, "T E"], labels: Int[ndarray, " T"], on_step: OnStep = silent
) -> dict[float, float]:
    """Accuracy of every strength over stratified folds; empty where a fold would leave fewer than two classes."""
    folds = stratified_folds(labels, np.random.default_rng(0))
    parts = [(folds != k, folds == k) for k in range(FOLDS) if (folds == k).any()]
    if any(len(np.unique(labels[kept])) < 2 for kept, _ in parts):
        return {}
    right = dict.fromkeys(STRENGTHS, 0)
    for done, (kept, left_out) in enumerate(parts):
        for strength, model in _path(states[kept], labels[kept]):
            right[strength] += int(np.sum(model.predict(states[left_out]) == labels[left_out]))
        on_step(Step("frozen encoder, fitting", done + 1, len(parts)))
    return {strength: count / len(labels) for strength, count in right.items()}


def _path(states: ndarray, labels: ndarray) -> Iterator[tuple[float, LogisticRegression]]:
    """The regression at every strength, each begun where the stronger prior before it ended."""
    model = _regression(STRENGTHS[0])
    for strength in STRENGTHS:
        model.set_params(C=strength)
        yield strength, model.fit(states, labels)


def _regression(strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, max_iter=5000, tol=1e-3, warm_start=True)
