"""`LexicalTagger`: lists of words to lists of tags, with the words behind every tag."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from lexical_sae.data import TaggedDataset, TaggedSplit
from lexical_sae.data.sources.conll import tagged_source
from lexical_sae.data.tables.table import Table
from lexical_sae.data.tagged_sentence import TaggedSentence
from lexical_sae.evaluation.tagging.entities import score_entities
from lexical_sae.inference.tag_explaining import explain_tags
from lexical_sae.inference.tagging import tag
from lexical_sae.intervene import SuppressedModel
from lexical_sae.models.lexical_sae import TAG
from lexical_sae.report.explanation.shown import ShownExplanations
from lexical_sae.runs.in_memory import train_tagger
from lexical_sae.sklearn.estimator import LexicalEstimator
from lexical_sae.sklearn.splits import with_validation
from lexical_sae.utils.errors import DataError


class LexicalTagger(LexicalEstimator):
    """A tagger of words (names, for example) whose features are words.

    Args:
        encoder: As in `LexicalClassifier`.
        recipe: A recipe without literal words; `neighbours` by default.
        active_words: Active words per tagged word, on average; None keeps the recipe's number.
        max_epochs: Passes over the training sentences; None keeps the recipe's number.
        minutes: When to end training early, with the best weights so far; None sets no limit.
        validation_fraction: Share of the sentences that is held out to choose the best weights.
        device: auto, cpu, cuda or mps.
        random_state: A seed; None draws a new one for each fit.
        verbose: Whether to show progress.

    Example:
        >>> tagger = LexicalTagger().fit([["Acme", "moved"]], [["B-ORG", "O"]])
        >>> tagger.predict([["Acme", "grew"]])
        [['B-ORG', 'O']]
    """

    classes_: np.ndarray

    def __init__(
        self,
        encoder: str = "minilm",
        recipe: str = "neighbours",
        active_words: float | None = None,
        max_epochs: int | None = None,
        minutes: float | None = None,
        validation_fraction: float = 0.1,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.encoder = encoder
        self.recipe = recipe
        self.active_words = active_words
        self.max_epochs = max_epochs
        self.minutes = minutes
        self.validation_fraction = validation_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, callbacks: Sequence[Any] = ()) -> "LexicalTagger":
        """Train on sentences; nothing is written to disk.

        Args:
            X: Sentences, each a list of words.
            y: A tag per word of each: IOB2, IOB1 or BIOES, such as `B-ORG`.
            callbacks: Objects with methods of `lexical_sae.training.callbacks.Callback`.

        Returns:
            The estimator itself.
        """
        settings, seed = self._settings(), self._new_seed()
        sentences = _sentences(X, "X")
        with self._training(callbacks) as watchers:
            dataset = _dataset(sentences, _sentences(y, "y"), self.validation_fraction, seed)
            model, _ = train_tagger(settings, dataset, seed=seed, device=self.device, watchers=watchers)
        self.model_, self.seed_, self.classes_ = model, seed, np.array(dataset.tag_names)
        return self

    def predict(self, X: Any) -> list[list[str]]:
        """A tag for every word of every sentence, always valid IOB2."""
        return [list(sentence.tags) for sentence in tag(self._fitted_model(), _sentences(X, "X"))]

    def tag(self, texts: Iterable[str | Sequence[str]]) -> list[TaggedSentence]:
        """The tags of texts as they are written, split into words here, with the names that they hold.

        Example: `[s.written(e) for s in tagger.tag(["Acme moved to Oslo"]) for e in s.entities]` -> ["Acme", "Oslo"]
        """
        return tag(self._fitted_model(), list(texts))

    def score(self, X: Any, y: Any) -> float:
        """F1 of whole entities, over all types."""
        gold = [tuple(tags) for tags in _sentences(y, "y")]
        return score_entities(gold, [tuple(tags) for tags in self.predict(X)]).overall.f1

    def explain(self, X: Any, target: str | None = None, contrast: str | None = None) -> list[ShownExplanations]:
        """Why the first word of each entity got its tag.

        Args:
            X: Sentences, as strings or lists of words.
            target: The tag to explain; by default the one decided on.
            contrast: A tag to explain against.

        Returns:
            For every sentence, the explanations of its entities in order.
        """
        model = self._fitted_model()
        return [ShownExplanations(explain_tags(model, sentence, target=target, contrast=contrast)) for sentence in X]

    def suppress(self, words: str | Iterable[str]) -> "LexicalTagger":
        """A new fitted tagger that cannot use these words; this one keeps them."""
        return self._with_model(SuppressedModel(self._fitted_model(), words))

    def _take_back(self, kept: Mapping[str, Any]) -> None:  # noqa: ARG002
        self.classes_ = np.array(self.model_.labels[TAG])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = False, True
        tags.target_tags.required = True
        return tags


def _sentences(given: Any, name: str) -> list[list[str]]:
    """Lists of strings; anything else is refused with its place."""
    if given is None or isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DataError(f"{name} is {type(given).__name__}; give a list with one list of strings per sentence")
    found = []
    for row, sentence in enumerate(given):
        if isinstance(sentence, str) or not isinstance(sentence, Iterable):
            raise DataError(f"{name}[{row}] is {type(sentence).__name__}; give one list of strings per sentence")
        words = list(sentence)
        if odd := [word for word in words if not isinstance(word, str)]:
            raise DataError(f"{name}[{row}] holds {odd[0]!r}, which is no string")
        found.append([str(word) for word in words])
    return found


def _dataset(sentences: list[list[str]], tags: list[list[str]], validation_fraction: float, seed: int) -> TaggedDataset:
    """The sentences as the command line has them, without test rows."""
    check_consistent_length(sentences, tags)
    table = Table("X", {"tokens": sentences, "tags": tags}, range(len(sentences)), is_file=False)
    source = tagged_source(table, None, None)
    carved = with_validation(source.train, source.names, TaggedSplit((), ()), validation_fraction, seed)
    return TaggedDataset("sentences", source.names, carved.train, carved.validation, carved.test, carved.notes)
