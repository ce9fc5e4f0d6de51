"""Would a table of literal words be enough for tagging? `python -m benchmarks.literal_tagger` prints F1 on CoNLL-2003.

A table of words has a row per word and no context. For tags it gets more and more of the sentence: the word
itself, its orthographic features, and the words up to two places away, each place with its own table. The gap to the
tagger with context is what shifts would have to close.
"""

from collections.abc import Iterator

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import SGDClassifier

from lexical_sae.data import TaggedSplit, load_tagged_dataset
from lexical_sae.data.tagging import repair_iob2
from lexical_sae.evaluation.tagging.entities import score_entities

WINDOWS = ((0, False), (0, True), (1, True), (2, True))
"""Words on either side, and whether orthographic features are included."""


def main() -> None:
    data = load_tagged_dataset("conll2003")
    for window, shapes in WINDOWS:
        vectorizer = CountVectorizer(analyzer=list, binary=True)
        X = vectorizer.fit_transform(features(data.train, window, shapes))
        tags = [tag for tags in data.train.tags for tag in tags]
        # A linear model of word indicators: a table. The penalty is that of the best validation F1 among three.
        tables = (
            SGDClassifier(loss="log_loss", alpha=alpha, random_state=0).fit(X, tags) for alpha in (1e-6, 1e-5, 1e-4)
        )
        best = max(tables, key=lambda table: f1(table, vectorizer, data.validation, window, shapes))
        found = f1(best, vectorizer, data.test, window, shapes)
        what = f"words up to {window} away" if window else "the word itself"
        print(f"{what}{', with orthographic features' if shapes else ''}: F1 {found:.1%}", flush=True)


def features(split: TaggedSplit, window: int, shapes: bool) -> Iterator[list[str]]:
    for words in split.tokens:
        for at in range(len(words)):
            near = {step: words[at + step] for step in range(-window, window + 1) if 0 <= at + step < len(words)}
            told = [f"{step} {word.lower()}" for step, word in near.items()]
            yield told + [f"{step} {shape(word)}" for step, word in near.items() if shapes]


def shape(word: str) -> str:
    """Example: `U.N. -> X.X.`, `Berlin -> Xx`"""
    kinds = ["X" if c.isupper() else "x" if c.islower() else "9" if c.isdigit() else c for c in word]
    return "".join(kind for i, kind in enumerate(kinds) if i == 0 or kind != kinds[i - 1])


def f1(table: SGDClassifier, vectorizer: CountVectorizer, split: TaggedSplit, window: int, shapes: bool) -> float:
    found = iter(table.predict(vectorizer.transform(features(split, window, shapes))))
    predicted = [repair_iob2([str(next(found)) for _ in tags]) for tags in split.tags]
    return score_entities(split.tags, predicted).overall.f1


if __name__ == "__main__":
    main()
