"""Choose settings by cross-validation, and use the words as features of another classifier."""

from pathlib import Path

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from lexical_sae import LexicalClassifier, LexicalVectorizer

frame = pd.read_csv(Path(__file__).parent / "reviews.csv")
texts, labels = frame["text"], frame["label"]

clf = LexicalClassifier(context=False, random_state=0)
search = GridSearchCV(clf, {"class_weight": [None, "balanced"]}, cv=2).fit(texts, labels)
print(search.best_params_, f"{search.best_score_:.0%}")

pipeline = make_pipeline(LexicalVectorizer(context=False, random_state=0), LogisticRegression())
print("words and logistic regression:", cross_val_score(pipeline, texts, labels, cv=2).round(2).tolist())
