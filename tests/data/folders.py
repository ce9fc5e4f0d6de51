"""Writers of small folders in the official layouts, with invented rows."""

import csv
import gzip
import io
import json
import tarfile

from lexical_sae.data.sources.toxicity import CIVIL_IDENTITIES

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def invented(n, prefix="text"):
    """`n` different texts of three words."""
    return [f"{prefix} {LETTERS[i % 26]}{LETTERS[i // 26 % 26]} number{i}" for i in range(n)]


def write_csv(path, rows, header=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *rows] if header else rows)


def write_jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))


def sst2(folder, texts=invented):
    for name, n in (("train", 300), ("dev", 20)):
        rows = [f"{text}\t{i % 2}" for i, text in enumerate(texts(n, name))]
        (folder / f"{name}.tsv").write_text("\n".join(["sentence\tlabel", *rows]) + "\n")


def ag_news(folder, texts=invented, train="train.csv"):
    for name, n in ((train, 200), ("test.csv", 20)):
        write_csv(folder / name, [(i % 4 + 1, "" if i % 5 == 0 else "Title", t) for i, t in enumerate(texts(n, name))])


def imdb(folder, texts=invented):
    for split, n in (("train", 100), ("test", 10)):
        for i, text in enumerate(texts(n, split)):
            path = folder / split / ("neg", "pos")[i % 2] / f"{i}_7.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def imdb_jsonl(folder):
    for split, n in (("train", 100), ("test", 10)):
        rows = [{"id": "x", "label": i % 2, "rating": 1, "text": t} for i, t in enumerate(invented(n, split))]
        write_jsonl(folder / f"{split}.jsonl.gz", rows)


def yelp(folder):
    for split, n in (("train", 100), ("test", 10)):
        write_csv(folder / f"{split}.csv", [(i % 2 + 1, text) for i, text in enumerate(invented(n, split))])


def yelp_stars(folder):
    for split, n in (("dev", 100), ("test", 10)):
        rows = [
            (t, f"Business Category: {'Bars' if i % 2 else 'Shops'}", f"Review Stars: {i % 5 + 1}.0")
            for i, t in enumerate(invented(n, split))
        ]
        write_csv(folder / f"{split}.csv", rows, header=("text", "label1", "label2"))


def civil_row(i, text):
    """Toxicity 0.5 on every third row; identities blank on every fourth, else 'female' fully."""
    identities = ["" if i % 4 == 0 else float(name == "female") for name in CIVIL_IDENTITIES]
    return (i, 0.5 if i % 3 == 0 else 0.49, text, *identities)


def civilcomments(folder):
    header = ("id", "toxicity", "comment_text", *CIVIL_IDENTITIES)
    for name, n in (("test_public_expanded", 20), ("test_private_expanded", 30)):
        write_csv(folder / f"{name}.csv", [civil_row(i, t) for i, t in enumerate(invented(n, name))], header)
    train = [civil_row(i, t) for i, t in enumerate(invented(100))]
    write_csv(folder / "train.csv", train, header=("id", "target", *header[2:]))


def civil_all_data(folder):
    header = ("id", "toxicity", "comment_text", *CIVIL_IDENTITIES, "split")
    rows = [(*civil_row(i, t), "test" if i % 5 == 0 else "train") for i, t in enumerate(invented(150))]
    write_csv(folder / "all_data.csv", rows, header)


def banking77(folder):
    for split, n in (("train", 120), ("test", 12)):
        rows = [(t, ("card, lost?", "age_limit", "Refund")[i % 3]) for i, t in enumerate(invented(n, split))]
        write_csv(folder / f"{split}.csv", rows, header=("text", "category"))


def beavertails(folder):
    for split, n in (("train", 160), ("test", 12)):
        rows = [
            {"prompt": f"{split} question {i % 40}", "response": f"answer {i}", "is_safe": i % 2 == 0} for i in range(n)
        ]
        write_jsonl(folder / "round0" / "30k" / f"{split}.jsonl.gz", rows)


def toxigen(folder):
    rows = [
        (repr(f"it's \u00e9 {t}".encode()), ("asian", "black")[i % 2], i % 5 + 1) for i, t in enumerate(invented(100))
    ]
    write_csv(folder / "toxigen.csv", rows, header=("text", "target_group", "toxicity_human"))


def hatexplain(folder):
    labels = ("hatespeech", "normal", "offensive")
    for split, n in (("train", 90), ("val", 9), ("test", 12)):
        pairs = [[text, labels[i % 3]] for i, text in enumerate(invented(n, split))]
        (folder / f"text_label_{split}.json").write_text(json.dumps(pairs))
    targets = [{"text": t, "split": "test", "label": "x", "domain": "Women"} for t in invented(6, "test")]
    (folder / "text_split_label_target.json").write_text(json.dumps([*targets, {"text": "-", "domain": "None"}]))


def hatexplain_official(folder):
    def post(i, text):
        votes = (
            ("normal", "offensive", "hatespeech")
            if i % 10 == 9
            else ("normal", ("offensive", "normal")[i % 2], "offensive")
        )
        annotators = [{"label": vote, "target": ["Women"] if k < 2 else ["None"]} for k, vote in enumerate(votes)]
        return {"post_tokens": text.split(), "annotators": annotators}

    divisions = {split: [f"{split}{i}" for i in range(n)] for split, n in (("train", 50), ("val", 10), ("test", 10))}
    posts = {key: post(i, f"post {key}") for keys in divisions.values() for i, key in enumerate(keys)}
    (folder / "dataset.json").write_text(json.dumps(posts))
    (folder / "post_id_divisions.json").write_text(json.dumps(divisions))


def movie_snippets(folder, texts=invented):
    rows = [f"{i}\t{(1.5, -1.5, 0.4)[i % 3]}\t{text}" for i, text in enumerate(texts(150))]
    data = "\r\n".join([*rows, rows[0].upper()]).encode()
    info = tarfile.TarInfo("hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt")
    info.size = len(data)
    with tarfile.open(folder / "hutto_ICWSM_2014.tar.gz", "w:gz") as archive:
        archive.addfile(info, io.BytesIO(data))


def conll_iob1(folder):
    for name in ("eng.train", "eng.testa", "eng.testb"):
        (folder / name).write_text("-DOCSTART- -X- O O\n\nAnn NNP I-NP I-PER\nLee NNP I-NP B-PER\nran VB I-VP O\n")


def conll_iob2(folder):
    for name in ("train.txt", "valid.txt", "test.txt"):
        (folder / name).write_text("-DOCSTART- -X- O O\n\nAnn NNP B-NP B-PER\nLee NNP B-NP B-PER\nran VB B-VP O\n")


FRAMES = ["the {} was good .", "a good {} and a film", "you play in the {}", "it was not the {} !"]


def conll_capitals(folder, splits=("train", "dev", "test")):
    """Sentences in which a capital, and nothing else, makes a name: "Bank" is one, "bank" is not."""
    for split, repeats in zip(splits, (12, 2, 2), strict=True):
        lines = []
        for i in range(repeats):
            for frame in FRAMES:
                for noun in ("bank", "church", "river"):
                    word = noun.capitalize() if (i + len(frame) + len(noun)) % 2 else noun
                    tag = "I-ORG" if word != noun else "O"
                    lines += [f"{w} {tag if w == word else 'O'}" for w in frame.format(word).split()] + [""]
        (folder / f"{split}.txt").write_text("-DOCSTART- O\n\n" + "\n".join(lines) + "\n")
