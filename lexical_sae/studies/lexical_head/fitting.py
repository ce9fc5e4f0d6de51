"""Fitting a masked-LM head to an encoder without one, so that it ranks the input words first.

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

from lexical_sae.data.vocabulary import Vocabulary
from lexical_sae.models.backbone import Backbone
from lexical_sae.models.pretrained import HEAD_FILE
from lexical_sae.studies.lexical_head.objective import LexicalObjective
from lexical_sae.studies.lexical_head.settings import LexicalHeadSettings
from lexical_sae.studies.lexical_head.states import Corruption, Positions, encode_positions
from lexical_sae.studies.lexical_head.text import Piece, PieceSplit
from lexical_sae.utils.downloads import sha256_of
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.files import write_bytes

logger = logging.getLogger(__name__)

CARD_FILE = "card.json"
MOST_VALIDATED = 4000
"""Positions in the validation loss."""
OnProgress = Callable[[str, float], None]
"""Called with the current task and the share of the whole that is done, 0 to 1."""


@dataclass(frozen=True)
class FitReport:
    """Report of a fit."""

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
    """The report of fitting the backbone's head in place; it keeps the parameters of the lowest validation loss.

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
        # Free these states before the next are encoded: memory holds one chunk.
        del cached
        if fitting.stopped_early:
            break
    return fitting.finish()


def _stretch(on_progress: OnProgress, what: str, start: float, end: float) -> Callable[[float], None]:
    """Progress of one task, reported as progress from `start` to `end` of the whole."""
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
        """All passes over the cached states, from `start` to `end` of the whole schedule."""
        for first, rows in enumerate(batches := self._batches(cached)):
            done = first / len(batches)
            self._step(cached[rows], start + (end - start) * done)
            on_progress(done)
            if self.steps % self.settings.check_every == 0 and self._check():
                return

    def finish(self) -> FitReport:
        """Restore the best parameters."""
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
            raise DataError(
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
        """Check the validation loss over the whole vocabulary; True when fitting should stop."""
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
        """Rows of each step: every pass subsamples frequent tokens again, in a new order."""
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
    """The pieces in runs of about `cached_tokens` tokens each; they are shuffled, so chunks are alike."""
    count = math.ceil(sum(map(len, pieces)) / cached_tokens)
    size = math.ceil(len(pieces) / count)
    return [pieces[i : i + size] for i in range(0, len(pieces), size)]


@torch.no_grad()
def round_to_half(backbone: Backbone) -> None:
    """Round the head to what half precision can hold."""
    for parameter in backbone.lexical_head().values():
        parameter.copy_(parameter.half())


def save_lexical_head(
    backbone: Backbone, folder: Path, card: dict[str, Any], dtype: torch.dtype = torch.float32
) -> None:
    """Write the head and its card, each atomically; the card gets the hashes of what it describes."""
    parts = backbone.lexical_head().items()
    head = {name: parameter.detach().cpu().to(dtype).contiguous() for name, parameter in parts}
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / HEAD_FILE, save(head, metadata={"format": "pt"}))
    hashes = {"sha256": {HEAD_FILE: sha256_of(folder / HEAD_FILE)}}
    write_bytes(folder / CARD_FILE, (json.dumps(card | hashes, indent=2, ensure_ascii=False) + "\n").encode())
