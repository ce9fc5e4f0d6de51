"""A masked-LM head for an encoder that has none, fitted so that the words it reads out of a text are the text's words.

1. The frozen encoder reads pieces of plain text; its states are cached, a bounded number of tokens at a time.
2. The head learns to name the token at each position: the one that stands there, or, where it was masked, stood there.
   Frequent tokens are thinned out, as in word2vec, so that rare words count.
3. A share of the target of each token that is a word goes to its neighbours in the embedding, so that related words
   come next.
4. The softmax runs over the batch's own words and a random sample of the others, weighted to stand for all.
5. The loss on validation documents, over the whole vocabulary, picks the parameters that are kept.
"""

import json
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from splade.fetch import sha256_of
from splade.files import write_bytes
from splade.models.backbone import HEAD_FILE, Backbone
from splade.training.lexical_objective import LexicalObjective
from splade.training.lexical_settings import LexicalHeadSettings
from splade.training.lexical_states import Corruption, Positions, encode_positions
from splade.training.lexical_text import Piece, PieceSplit
from splade.vocab import Vocabulary

logger = logging.getLogger(__name__)

CARD_FILE = "card.json"
MOST_VALIDATED = 4000
"""Positions in the validation loss; more would make each look slow."""
OnProgress = Callable[[str, float], None]
"""Called with what is happening and how much of the whole is done, 0 to 1."""


@dataclass(frozen=True)
class FitReport:
    """What happened while the head was fitted."""

    steps: int
    positions_used: int
    best_step: int
    validation_losses: tuple[float, ...]
    stopped_early: bool


def fit_lexical_head(
    backbone: Backbone,
    split: PieceSplit,
    settings: LexicalHeadSettings | None = None,
    on_progress: OnProgress = lambda _what, _done: None,
) -> FitReport:
    """Fit the backbone's own head parameters in place, ending with those of the lowest validation loss.

    The encoder, and the decoder tied to its embedding, stay as they are.
    """
    settings = settings or LexicalHeadSettings()
    vocabulary = Vocabulary(backbone.tokenizer, backbone.vocab_size)
    corruption = Corruption(0.5, settings.masked_share, settings.swapped_share)
    validation = encode_positions(backbone, split.validation, vocabulary, corruption=corruption, seed=settings.seed)
    order = torch.randperm(len(validation), generator=torch.Generator().manual_seed(settings.seed))
    objective = LexicalObjective(backbone, split.training, vocabulary, settings)
    fitting = _Fitting(objective, validation[order[:MOST_VALIDATED]])
    chunks = _chunks(split.training, settings.cached_tokens)
    for i, pieces in enumerate(chunks):
        start, end = i / len(chunks), (i + 1) / len(chunks)
        fitted_from = (start + end) / 2
        cached = encode_positions(
            backbone,
            pieces,
            vocabulary,
            corruption=corruption,
            seed=settings.seed + 1 + i,
            on_progress=_stretch(on_progress, "encoding text", start, fitted_from),
        )
        fitting.run(cached, start, end, _stretch(on_progress, "fitting", fitted_from, end))
        # Let go of these states before the next are encoded: memory holds one chunk, not two.
        del cached
        if fitting.stopped_early:
            break
    return fitting.finish()


def _stretch(on_progress: OnProgress, what: str, start: float, end: float) -> Callable[[float], None]:
    """Progress of one task, told as progress from `start` to `end` of the whole."""
    return lambda done: on_progress(what, start + (end - start) * done)


class _Fitting:
    """The optimiser, the schedule, and the best parameters so far."""

    def __init__(self, objective: LexicalObjective, validation: Positions) -> None:
        self.objective, self.validation, self.settings = objective, validation, objective.settings
        settings = objective.settings
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.parameters = objective.parameters
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.steps = self.positions_used = self.best_step = 0
        self.losses: list[float] = []
        self.stopped_early = False
        self.best = self._copy()
        self._check()

    def run(self, cached: Positions, start: float, end: float, on_progress: Callable[[float], None]) -> None:
        """All passes over the cached states, which are the stretch from `start` to `end` of the whole schedule."""
        for first, rows in enumerate(batches := self._batches(cached)):
            done = first / len(batches)
            self._step(cached[rows], start + (end - start) * done)
            on_progress(done)
            if self.steps % self.settings.check_every == 0 and self._check():
                return

    def finish(self) -> FitReport:
        """Put the best parameters back."""
        if not self.stopped_early:
            self._check()
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(self.best[name])
        return FitReport(self.steps, self.positions_used, self.best_step, tuple(self.losses), self.stopped_early)

    def _step(self, positions: Positions, done: float) -> None:
        # A short warm-up, then a half cosine down to a fiftieth.
        rate = min(1.0, (self.steps + 1) / 50) * (0.02 + 0.49 * (1 + math.cos(math.pi * done)))
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * rate
        loss = self.objective.loss(positions, self.settings.candidates, self.generator)
        if not torch.isfinite(loss):
            raise ValueError(
                f"the loss is {loss.item()} at step {self.steps}; "
                f"lower the learning rate, which is {self.settings.learning_rate}"
            )
        gradients = torch.autograd.grad(loss, list(self.parameters.values()), allow_unused=True)
        for parameter, gradient in zip(self.parameters.values(), gradients, strict=True):
            parameter.grad = gradient
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.steps += 1
        self.positions_used += len(positions)

    def _check(self) -> bool:
        """Look at the validation loss over the whole vocabulary; True when it is time to stop."""
        generator = torch.Generator().manual_seed(self.settings.seed)
        with torch.no_grad():
            whole = len(self.objective.weight)
            slices = torch.arange(len(self.validation)).split(500)
            sums = [self.objective.loss(self.validation[rows], whole, generator).item() * len(rows) for rows in slices]
        loss = sum(sums) / len(self.validation)
        if not self.losses or loss < min(self.losses):
            self.best, self.best_step = self._copy(), self.steps
        self.losses.append(loss)
        logger.info("validation loss %.4f after %d steps", loss, self.steps)
        waited = len(self.losses) - 1 - self.losses.index(min(self.losses))
        self.stopped_early = waited >= self.settings.patience
        return self.stopped_early

    def _batches(self, cached: Positions) -> list[Tensor]:
        """Rows of each step: in every pass another draw of the frequent tokens, in another order."""
        batches: list[Tensor] = []
        for _ in range(self.settings.passes):
            is_kept = torch.rand(len(cached), generator=self.generator) < self.objective.kept_share[cached.targets]
            kept = is_kept.nonzero().flatten()
            shuffled = kept[torch.randperm(len(kept), generator=self.generator)]
            batches += shuffled.split(self.settings.batch_size)
        return batches

    def _copy(self) -> dict[str, Tensor]:
        return {name: parameter.detach().clone() for name, parameter in self.parameters.items()}


def _chunks(pieces: Sequence[Piece], cached_tokens: int) -> list[Sequence[Piece]]:
    """The pieces in runs of about `cached_tokens` tokens each; they come shuffled, so the runs are alike."""
    count = math.ceil(sum(map(len, pieces)) / cached_tokens)
    size = math.ceil(len(pieces) / count)
    return [pieces[i : i + size] for i in range(0, len(pieces), size)]


def save_lexical_head(backbone: Backbone, folder: Path, card: dict[str, Any]) -> None:
    """Write the head and its card, each whole or not at all; the card gets the hashes of what it describes."""
    head = {name: parameter.detach().cpu().contiguous() for name, parameter in backbone.lexical_head().items()}
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / HEAD_FILE, save(head, metadata={"format": "pt"}))
    hashes = {"sha256": {HEAD_FILE: sha256_of(folder / HEAD_FILE)}}
    write_bytes(folder / CARD_FILE, (json.dumps(card | hashes, indent=2, ensure_ascii=False) + "\n").encode())
