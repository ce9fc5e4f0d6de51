"""The difference of two models in words: what each class gained and lost, which decisions flipped, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch

from lexical_sae.evaluation.collect import opened_to_corpus
from lexical_sae.evaluation.corpus.flips import Flip, FlipCollector
from lexical_sae.evaluation.corpus.lexicon import PieceSum, strongest_first
from lexical_sae.evaluation.corpus.pairs import ModelPair, PairedBatch
from lexical_sae.evaluation.moments import Means, Moments
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.utils.errors import DataError
from lexical_sae.utils.progress import OnStep, silent


@dataclass(frozen=True)
class WordChange:
    """How much more, or less, a word says for a class on average over the texts of the class."""

    name: str
    before: float
    after: float
    """Mean class-centred contribution in each model; zero where the word is not active or has no dimension."""
    difference: float
    low: float | None
    high: float | None
    """Ends of the difference's 95 % interval: Student's, over the same texts read by both models."""
    count: int
    """Texts in which the word is active in either model."""
    is_clear: bool
    """Whether the interval leaves out zero and the word is active in enough texts. Of a hundred words that did not
    change, a few look clear by chance."""


@dataclass(frozen=True)
class ClassChange:
    """What the words of one class gained and lost."""

    label: str
    texts: int
    gained: tuple[WordChange, ...]
    """The greatest gain first."""
    lost: tuple[WordChange, ...]
    """The greatest loss first."""
    pieces: PieceSum | None = None
    """The difference of word pieces and symbols, where they are not listed."""


@dataclass(frozen=True)
class Accuracy:
    """Against the labels that were given."""

    before: float
    after: float
    fixed: int
    """Texts that were wrong and are right."""
    broken: int


@dataclass(frozen=True)
class ModelDiff:
    """How the second model differs from the first on a corpus."""

    texts: int
    only_before: int
    """Words that only the first model has a dimension for."""
    only_after: int
    classes: tuple[ClassChange, ...]
    flipped: int
    flips_between: dict[str, dict[str, int]]
    """Number of flips by old and new label."""
    flips: tuple[Flip, ...]
    """The greatest changes of margin first."""
    accuracy: Accuracy | None
    """None without labels."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def diff_models(
    before: LexicalSAE,
    after: LexicalSAE,
    texts: Iterable[str],
    labels: Iterable[Any] | None = None,
    *,
    top: int = 20,
    min_count: int = 5,
    max_flips: int = 20,
    batch_size: int = 32,
    all_tokens: bool = False,
    on_step: OnStep = silent,
) -> ModelDiff:
    """Both models on the same texts, each text counted under its label, or else under the first model's decision.

    `labels` go by name, or by place in the first model. A change is never clear with fewer than `min_count` active
    texts. Lists name whole words and sum the rest; with `all_tokens` they name word pieces and symbols too.
    """
    before, texts = opened_to_corpus(before, texts)
    after, texts = opened_to_corpus(after, texts)
    pair = ModelPair(before, after, all_tokens=all_tokens)
    words, flips = _ChangeCollector(pair), FlipCollector(pair, top, max_flips)
    for batch in pair.read(texts, labels, batch_size, on_step):
        words.update(batch)
        flips.update(batch)
    if not words.texts.sum():
        raise DataError("there is no text to compare the models on; give at least one")
    between: dict[str, dict[str, int]] = {}
    for (was, now), count in sorted(flips.between.items()):
        between.setdefault(was, {})[now] = count
    return ModelDiff(
        texts=int(words.texts.sum()),
        only_before=len(pair.names) - len(after.dimensions),
        only_after=len(pair.names) - len(before.dimensions),
        classes=tuple(words.changes(top, min_count)),
        flipped=flips.between.total(),
        flips_between=between,
        flips=flips.flips,
        accuracy=None if labels is None else words.accuracy(),
    )


class _ChangeCollector:
    """Keeps, per class and word, the difference of the contributions that the two models see in each text."""

    def __init__(self, pair: ModelPair) -> None:
        self.pair, self.size = pair, len(pair.names)
        cells = len(pair.labels) * self.size
        self.texts = torch.zeros(len(pair.labels), dtype=torch.float64)
        self.differences = Moments(cells)
        self.sums = torch.zeros(2, cells, dtype=torch.float64)
        self.is_right: Counter[tuple[bool, bool]] = Counter()

    def update(self, batch: PairedBatch) -> None:
        """Add the texts of a batch."""
        self.texts += torch.bincount(batch.classes, minlength=len(self.texts))
        own = batch.classes[batch.text_of]
        cells = own * self.size + batch.words
        both = [model.contributions.gather(1, own[:, None]).squeeze(1) for model in (batch.before, batch.after)]
        self.differences.update(cells, both[1] - both[0])
        self.sums.index_add_(1, cells, torch.stack(both))
        right = [(model.predicted == batch.classes).tolist() for model in (batch.before, batch.after)]
        self.is_right.update(zip(*right, strict=True))

    def accuracy(self) -> Accuracy:
        """How often each model was right."""
        right, total = self.is_right, self.is_right.total()
        both, fixed, broken = right[True, True], right[False, True], right[True, False]
        return Accuracy((both + broken) / total, (both + fixed) / total, fixed, broken)

    def changes(self, top: int, min_count: int) -> Iterator[ClassChange]:
        """The words that gained and lost most, class by class."""
        means = self.differences.means_over(self.texts.repeat_interleave(self.size))
        for index, label in enumerate(self.pair.labels):
            cells, listed = slice(index * self.size, (index + 1) * self.size), self.pair.listed
            own = means.mean[cells]
            gained, lost = (
                tuple(self._change(index, word, means, min_count) for word in strongest_first(side, top, listed))
                for side in (own, -own)
            )
            pieces = PieceSum.of(own, self.differences.count[cells] > 0, listed)
            yield ClassChange(label, int(self.texts[index]), gained, lost, pieces)

    def _change(self, index: int, word: int, means: Means, min_count: int) -> WordChange:
        cell = index * self.size + word
        (low, high), count = means.ends(cell), int(self.differences.count[cell])
        is_clear = low is not None and high is not None and (low > 0 or high < 0) and count >= min_count
        before, after = (self.sums[:, cell] / self.texts[index]).tolist()
        return WordChange(self.pair.names[word], before, after, float(means.mean[cell]), low, high, count, is_clear)
