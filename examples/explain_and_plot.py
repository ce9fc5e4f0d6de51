"""Explain a text: as text, as one sentence, as a frame, as a figure and as an HTML page."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from lexical_sae import LexicalClassifier

frame = pd.read_csv(Path(__file__).parent / "reviews.csv")
clf = LexicalClassifier(context=False, random_state=0).fit(frame["text"], frame["label"])

(why,) = whys = clf.explain(["a warm and funny film, but the ending is flat"])
print(why)
print(why.sentence())
words = whys.to_frame()
print(words[["word", "contribution", "if_removed"]].to_string())

# Contributions and bias are the decision itself.
total = words["contribution"].sum() + words.attrs["bias"][0]
assert abs(total - why.explained) < 1e-4

with TemporaryDirectory() as folder:
    picture = why.plot()  # a matplotlib figure where matplotlib is installed, else SVG
    if hasattr(picture, "savefig"):
        picture.savefig(Path(folder) / "why.png")
    clf.report(frame["text"][:20], frame["label"][:20], Path(folder) / "report.html")
    print(sorted(path.name for path in Path(folder).iterdir()))
