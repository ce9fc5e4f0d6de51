"""Remove a word from a model, and certify that nothing else changed."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from lexical_sae import LexicalClassifier, certify, verify
from lexical_sae.intervene.certificate import NamedTexts, write_certificate

frame = pd.read_csv(Path(__file__).parent / "reviews.csv")
clf = LexicalClassifier(context=False, random_state=0).fit(frame["text"], frame["label"])
without = clf.suppress(["film"])

texts = ["a warm and funny film", "the film is dull"]
for before, after in zip(clf.explain(texts), without.explain(texts), strict=True):
    gone = {word.word for word in before.words} - {word.word for word in after.words}
    print(f"{before.label} -> {after.label}, without {sorted(gone)}")

with TemporaryDirectory() as folder:
    original, edited = clf.save(Path(folder) / "original"), without.save(Path(folder) / "edited")
    measured_on = NamedTexts("reviews", tuple(frame["text"][:20]))
    certificate = certify(original, edited, measured_on)
    write_certificate(certificate, Path(folder) / "certificate.json")  # for others: `lexical-sae verify`
    for check in verify(certificate, edited, measured_on):
        print("holds:" if check.holds else "FAILS:", check.claim)
