"""Find wrong labels: here some are planted, on texts with the word "music"."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from lexical_sae import LexicalClassifier, find_label_issues

frame = pd.read_csv(Path(__file__).parent / "reviews.csv")
wrong = frame.index[frame["text"].str.contains("music")][:12]
frame.loc[wrong, "label"] = frame.loc[wrong, "label"].map({"positive": "negative", "negative": "positive"})

issues = find_label_issues(LexicalClassifier(context=False, random_state=0), frame["text"], frame["label"], cv=3)
found = {row.row for row in issues.doubtful}
print(f"{len(found)} doubtful rows; {len(found & set(wrong))} of {len(wrong)} planted errors are among them")
for word in issues.words:
    print(f"{word.word}: {word.disagree} of {word.texts} texts disagree, {word.expected:.1f} expected by chance")

with TemporaryDirectory() as folder:
    print("correct the column `label` of", issues.write_csv(Path(folder) / "to_correct.csv").name)
