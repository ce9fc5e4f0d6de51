"""Train a tagger of names, and see which words a tag is read from."""

from lexical_sae import LexicalTagger

COMPANIES, PLACES = ("Acme", "Globex", "Initech", "Umbrella"), ("Oslo", "Rome", "Lima", "Cairo")
FORMS = (("{c}", "moved", "to", "{p}"), ("In", "{p}", ",", "{c}", "grew"), ("{c}", "has", "shops", "in", "{p}"))

sentences, tags = [], []
for company in COMPANIES:
    for place in PLACES:
        for form in FORMS:
            names = {"{c}": (company, "B-ORG"), "{p}": (place, "B-LOC")}
            words = [names.get(word, (word, "O")) for word in form]
            sentences.append([word for word, _ in words])
            tags.append([tag for _, tag in words])

tagger = LexicalTagger(max_epochs=4, random_state=0).fit(sentences, tags)
print(f"F1 of whole names: {tagger.score(sentences, tags):.2f}")
for sentence in tagger.tag(["Globex moved to Lima"]):
    print([(sentence.written(entity), entity.type) for entity in sentence.entities])
