"""Few training rows: `python -m benchmarks.small_data OUT.jsonl --sets sst2 banking77 --rows 8 16 64 --draws 10`.

The same rows of a draw for every contender, and the same test texts. Each fit adds a line to OUT.jsonl; fits that are
there already are not repeated, so an interrupted run goes on. Then a table: accuracy with its 95 % interval over draws,
the difference to the frozen encoder paired by draw, macro F1, expected calibration error (ECE), seconds.

Sets: `sst2` (sentences), `banking77`, and `tickets`, twelve topics of banking77. `--rows 0` takes all rows, of
`tickets` 3,122. Contenders: TF-IDF and the frozen encoder, each with logistic regression; the table of words alone;
the default recipe; and, where the package is installed (requirements-bench.txt), SetFit. LEXICAL_SAE_DATA is the folder
with the data (docs/data.md).
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from benchmarks.small_data_sets import ENCODER, Pool, load_pool
from lexical_sae import LexicalClassifier
from lexical_sae.evaluation.intervals import Interval, mean_and_interval
from lexical_sae.training.baselines.frozen import NAME as FROZEN
from lexical_sae.training.baselines.frozen import FrozenRegression
from lexical_sae.training.baselines.scores import macro_f1

STRENGTHS = (1.0, 4.0, 16.0, 64.0)
"""C of the regression on TF-IDF, chosen by cross-validation."""
BINS = 15
FITS = ("set", "rows", "draw", "contender")
"""What a line is known by."""


class Drawn(NamedTuple):
    """The training rows of a draw, and all test texts."""

    pool: Pool
    rows: list[int]
    seed: int

    @property
    def texts(self) -> list[str]:
        return [self.pool.train.texts[row] for row in self.rows]

    @property
    def labels(self) -> np.ndarray:
        return np.asarray(self.pool.train.labels)[self.rows]


def tfidf(drawn: Drawn) -> np.ndarray:
    """Words and word pairs into a logistic regression."""
    folds = min(5, int(np.bincount(drawn.labels).min()))
    steps = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(max_iter=2000))
    search = GridSearchCV(steps, {"logisticregression__C": STRENGTHS}, cv=folds)
    return search.fit(drawn.texts, drawn.labels).predict_proba(drawn.pool.test.texts)


def frozen(drawn: Drawn) -> np.ndarray:
    """Mean states of the frozen encoder into a logistic regression, as the library fits it."""
    fitted = FrozenRegression.fit(drawn.pool.train_states[drawn.rows].double().numpy(), drawn.labels)
    return fitted.probabilities(drawn.pool.test_states.double().numpy())


def table(drawn: Drawn) -> np.ndarray:
    """The table of words alone."""
    return _fitted(drawn, context=False)


def recipe(drawn: Drawn) -> np.ndarray:
    """The default recipe."""
    return _fitted(drawn, context=True)


def _fitted(drawn: Drawn, *, context: bool) -> np.ndarray:
    model = LexicalClassifier(ENCODER.partition(":")[2], context=context, random_state=drawn.seed, device="cpu")
    return model.fit(drawn.texts, drawn.labels).predict_proba(drawn.pool.test.texts)


def setfit(drawn: Drawn) -> np.ndarray:
    """SetFit at its defaults on the same family of encoder."""
    from datasets import Dataset  # pyright: ignore[reportMissingImports]
    from setfit import SetFitModel, Trainer, TrainingArguments  # pyright: ignore[reportMissingImports]

    model = SetFitModel.from_pretrained("sentence-transformers/all-MiniLM-L6-v2")
    given = Dataset.from_dict({"text": drawn.texts, "label": drawn.labels.tolist()})
    arguments = TrainingArguments(seed=drawn.seed, report_to="none")
    Trainer(model=model, args=arguments, train_dataset=given).train()
    return np.asarray(model.predict_proba(list(drawn.pool.test.texts), as_numpy=True))


CONTENDERS: dict[str, Callable[[Drawn], np.ndarray]] = {
    "TF-IDF": tfidf,
    FROZEN: frozen,
    "table": table,
    "default": recipe,
    "SetFit": setfit,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy with few training rows.")
    parser.add_argument("out", type=Path, help="JSON lines; texts and states are kept beside it")
    parser.add_argument("--sets", nargs="+", default=["sst2", "banking77"], help="sst2, banking77, tickets")
    parser.add_argument("--rows", nargs="+", type=int, default=[8, 16, 64], help="per class; 0 takes all")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--contenders", nargs="+", default=["TF-IDF", FROZEN, "table"], choices=CONTENDERS)
    parser.add_argument("--test-texts", type=int, default=1000)
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    done = {known_by(line) for line in lines(asked.out)}
    for name in asked.sets:
        missing = [
            (rows, draw, contender)
            for rows in asked.rows
            for draw in range(asked.draws)
            for contender in asked.contenders
            if (name, rows, draw, contender) not in done
        ]
        if not missing:
            continue
        pool = load_pool(name, asked.test_texts, asked.out.with_suffix(f".{name}.json"))
        for rows, draw, contender in missing:
            with asked.out.open("a") as out:
                out.write(json.dumps(measured(pool, rows, draw, contender)) + "\n")
    print(report(lines(asked.out), asked.sets, asked.rows))


def lines(path: Path) -> list[dict[str, Any]]:
    """The fits that were measured so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def known_by(line: dict[str, Any]) -> tuple[Any, ...]:
    """What a fit is known by."""
    return tuple(line[part] for part in FITS)


def measured(pool: Pool, rows: int, draw: int, contender: str) -> dict[str, Any]:
    """One fit, tested."""
    drawn = Drawn(pool, pool.draw(rows, draw), draw)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probabilities = CONTENDERS[contender](drawn)
    seconds, labels = time.perf_counter() - start, np.asarray(pool.test.labels)
    predicted = probabilities.argmax(1)
    figures = {
        "accuracy": float((predicted == labels).mean()),
        "macro_f1": macro_f1(labels, predicted),
        "ece": calibration_error(probabilities.max(1), predicted == labels),
        "seconds": round(seconds, 1),
        "texts": len(drawn.rows),
    }
    return {**dict(zip(FITS, (pool.name, rows, draw, contender), strict=True)), **figures}


def calibration_error(confidence: np.ndarray, is_right: np.ndarray) -> float:
    """Mean gap between confidence and accuracy over fifteen bins of confidence."""
    places = np.clip(np.ceil(confidence * BINS), 1, BINS).astype(int)
    gaps = np.bincount(places, confidence - is_right)
    return float(np.abs(gaps).sum() / len(confidence))


def report(found: list[dict[str, Any]], sets: list[str], rows: list[int]) -> str:
    """The table, in Markdown."""
    written = ["| set, rows per class | contender | draws | accuracy | against frozen | macro F1 | ECE | seconds |"]
    written.append("|---" * 8 + "|")
    for name in sets:
        for count in rows:
            of_set = [line for line in found if (line["set"], line["rows"]) == (name, count)]
            base = {line["draw"]: line["accuracy"] for line in of_set if line["contender"] == FROZEN}
            for contender in CONTENDERS:
                own = [line for line in of_set if line["contender"] == contender]
                if own:
                    written.append(_row(f"{name}, {count or own[0]['texts']}", contender, own, base))
    return "\n".join(written)


def _row(what: str, contender: str, own: list[dict[str, Any]], base: dict[int, float]) -> str:
    mean = {name: float(np.mean([line[name] for line in own])) for name in ("macro_f1", "ece", "seconds")}
    paired = [line["accuracy"] - base[line["draw"]] for line in own if line["draw"] in base]
    cells = (
        what,
        contender,
        str(len(own)),
        _points(mean_and_interval([line["accuracy"] for line in own])),
        _points(mean_and_interval(paired), "+") if paired else "–",
        f"{100 * mean['macro_f1']:.1f}",
        f"{mean['ece']:.3f}",
        f"{mean['seconds']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def _points(found: Interval, sign: str = "") -> str:
    """A mean in points, and half of its interval's width."""
    reach = "" if found.high is None else f" ± {100 * (found.high - found.mean):.1f}"
    return f"{100 * found.mean:{sign}.1f}{reach}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
