"""Write the plain text for fitting and scoring the bundled lexical head: `python tools/lexical_head_text.py DIR`.

- imdb_train_reviews.txt.gz: reviews of the IMDB train split, each once, none that is also in its test split.
- ag_news_train_descriptions.txt.gz: descriptions of AG News train rows, only scored on.

Data sets are found as in docs/data.md. No test split is written.
"""

import gzip
import random
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from lexical_sae.data.loader import open_tables
from lexical_sae.data.sources.registry import TEXT_DATASETS


def write(path: Path, documents: Iterable[str]) -> None:
    """One document per paragraph, a blank line between; the same bytes for the same text."""
    kept = list(documents)
    random.Random(0).shuffle(kept)
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        file.write("\n\n".join(kept).encode() + b"\n")
    print(f"{path.name}: {len(kept):,} documents")


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<br\s*/?>|\\", " ", text)).strip()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    imdb, _ = open_tables(TEXT_DATASETS["imdb"])
    assert imdb.test is not None
    tested = {plain(str(text)) for text in imdb.test.column("text")}
    reviews = dict.fromkeys(plain(str(text)) for text in imdb.train.column("text"))
    write(folder / "imdb_train_reviews.txt.gz", (text for text in reviews if text not in tested))
    news, _ = open_tables(TEXT_DATASETS["ag_news"])
    write(folder / "ag_news_train_descriptions.txt.gz", dict.fromkeys(plain(str(t)) for t in news.train.column("text")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
