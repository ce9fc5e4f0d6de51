"""scikit-learn estimators whose features are words.

    LexicalClassifier    texts to labels, with the words behind every decision
    LexicalRegressor     texts to numbers, with the words that add up to each
    LexicalVectorizer    texts to a sparse matrix of words, for any estimator after it
    LexicalTagger        lists of words to lists of tags
    find_label_issues    labels that are probably wrong, by rows and by words

Example: `clf = LexicalClassifier().fit(texts, labels); clf.predict(more); clf.explain(more)`
"""

from lexical_sae.sklearn.classifier import LexicalClassifier
from lexical_sae.sklearn.label_issues import find_label_issues
from lexical_sae.sklearn.regressor import LexicalRegressor
from lexical_sae.sklearn.tagger import LexicalTagger
from lexical_sae.sklearn.vectorizer import LexicalVectorizer

__all__ = ["LexicalClassifier", "LexicalRegressor", "LexicalTagger", "LexicalVectorizer", "find_label_issues"]
