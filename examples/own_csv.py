"""Train on a CSV file of your own, save the model and use it again.

The command line does the same: `lexical-sae train examples/reviews.csv --table-only --out results/reviews`.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from lexical_sae import LexicalClassifier, read_text_dataset

data = read_text_dataset(Path(__file__).parent / "reviews.csv")
for note in data.notes:
    print(note)

labels = [data.label_names[number] for number in data.train.labels]
clf = LexicalClassifier(context=False, random_state=0).fit(data.train.texts, labels)

truth = [data.label_names[number] for number in data.test.labels]
print(f"accuracy on {len(truth)} held-out texts: {clf.score(data.test.texts, truth):.0%}")

with TemporaryDirectory() as folder:
    clf.save(Path(folder) / "model")
    again = LexicalClassifier.load(Path(folder) / "model")
    print(again.predict(["a warm and funny film", "the plot is dull"]).tolist())
