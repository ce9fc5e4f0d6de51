"""Compare attribution methods on what exactly happens when words are removed."""

from pathlib import Path

import pandas as pd

from lexical_sae import LexicalClassifier
from lexical_sae.evaluation.explainers.benchmark import compare_explainers
from lexical_sae.evaluation.explainers.explainer import ArenaSettings

frame = pd.read_csv(Path(__file__).parent / "reviews.csv")
clf = LexicalClassifier(context=False, random_state=0).fit(frame["text"], frame["label"])

settings = ArenaSettings(texts=10, seeds=1, shapley_orders=5, with_captum=False, memory_texts=1)
results = compare_explainers(clf.model_, frame["text"].tolist(), settings=settings)
for name, scores in results.removal.items():
    print(
        f"{name:28} rank correlation with removal {scores.spearman.mean:+.2f}, "
        f"{results.cost[name].milliseconds.mean:.1f} ms"
    )
