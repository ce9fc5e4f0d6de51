"""Train on two columns of a pandas DataFrame, and put predictions and reasons beside the texts."""

from pathlib import Path

import pandas as pd

from lexical_sae import LexicalClassifier

frame = pd.read_csv(Path(__file__).parent / "reviews.csv")
clf = LexicalClassifier(context=False, random_state=0).fit(frame["text"], frame["label"])

new = pd.DataFrame({"text": ["a charming film, we laughed", "the script is clumsy", "the music is flat but honest"]})
new["label"] = clf.predict(new["text"])
new["because"] = [", ".join(word.word for word in why.words[:2]) for why in clf.explain(new["text"])]
print(new.to_string())

words = clf.explain(frame["text"]).to_frame()
print(words.groupby("word")["contribution"].agg(["mean", "size"]).sort_values("mean").tail(5))
