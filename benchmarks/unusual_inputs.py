"""Detection of out-of-distribution texts: `python -m benchmarks.unusual_inputs MODEL [TEXTS]`.

The test texts of MODEL's run are the reference: one half sets the limits for 5 % false alarms, the other is compared.
"any" is the most extreme of the three scores, "warned" the share with a warning at the model's own limits. Per score:
AUROC, and the share detected at 5 % false alarms.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from benchmarks import odd_texts
from lexical_sae.data import load_text_dataset
from lexical_sae.data.same_text import rows_held
from lexical_sae.data.sampling import sample_rows
from lexical_sae.inference.reading import ReadTexts, answers
from lexical_sae.inference.unusual import SCORES, unusual
from lexical_sae.models.lexical_sae import LexicalSAE
from lexical_sae.models.persistence import from_pretrained
from lexical_sae.runs import Run

OTHER_SETS = ("banking77", "ag_news", "sst2")
"""Off topic for film reviews: the first two. On topic, from elsewhere: the last."""
FALSE_ALARMS = 0.05


def main() -> None:
    folder, most = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300
    model = from_pretrained(folder)
    if model.calibration is None:
        sys.exit(f"{folder} has no calibration: lexical-sae calibrate {folder}")
    run = Run.open(folder)
    dataset = run.data
    own = _some(dataset.test.texts, 2 * most)
    learned = (*dataset.train.texts, *dataset.validation.texts)
    named = [name for name in OTHER_SETS if name != run.config.data.dataset_name]
    sets: dict[str, Sequence[str]] = {"test texts, setting limits": own[::2], "other test texts": own[1::2]}
    sets |= {name: _some(_unseen(load_text_dataset(name).test.texts, learned), most) for name in named}
    sets |= {"16 languages": odd_texts.FOREIGN, "gibberish": odd_texts.GIBBERISH, "emojis": odd_texts.EMOJIS}
    sets |= {"no words": odd_texts.NO_WORDS, "one or two words": odd_texts.SHORT}
    reference, _ = _measure(model, own[::2])
    ordinary, _ = _measure(model, sets["other test texts"])
    table = Table("texts", "", *(f"{name}\nAUROC, at 5 %" for name in (*SCORES, "any")), "warned")
    for name, texts in sets.items():
        scores, warned = _measure(model, texts)
        cells = [
            _found(*parts)
            for parts in zip(
                _with_any(reference, reference),
                _with_any(ordinary, reference),
                _with_any(scores, reference),
                strict=True,
            )
        ]
        table.add_row(name, str(len(texts)), *cells, f"{warned:.1%}")
    Console(width=160).print(table)


def _unseen(texts: Sequence[str], learned: Sequence[str]) -> list[str]:
    """Data sets share texts: those that the model learned from look more ordinary than they are."""
    held = rows_held(texts, learned)
    return [text for row, text in enumerate(texts) if row not in held]


def _some(texts: Sequence[str], most: int) -> list[str]:
    return [texts[row] for row in sample_rows(len(texts), most, 0)]


def _measure(model: LexicalSAE, texts: Sequence[str]) -> tuple[np.ndarray, float]:
    """The scores of the texts, [T, K], and the share with a warning."""
    assert model.calibration is not None
    usual = model.calibration.usual

    def read_scores(read: ReadTexts) -> list[list[float]]:
        columns = [score(usual, read).tolist() for score in SCORES.values()]
        warned = [float(bool(found)) for found in unusual(read.model.calibration, read)]
        return [list(row) for row in zip(*columns, warned, strict=True)]

    found = np.array(list(answers(model, texts, 32, read_scores)))
    return found[:, :-1], float(found[:, -1].mean())


def _with_any(scores: np.ndarray, reference: np.ndarray) -> list[np.ndarray]:
    """Each score, and the least share of reference texts that reaches any of them, negated.

    Beyond all of the reference, how far counts: in standard deviations, as a tiebreak.
    """
    above = (reference[None] >= scores[:, None]).mean(1)
    far = ((scores - reference.max(0)) / (reference.std(0) + 1e-9)).clip(0).max(1)
    return [*scores.T, far - above.min(1)]


def _found(reference: np.ndarray, ordinary: np.ndarray, scores: np.ndarray) -> str:
    limit = np.quantile(reference, 1 - FALSE_ALARMS)
    labels = np.r_[np.zeros(len(ordinary)), np.ones(len(scores))]
    area = roc_auc_score(labels, np.r_[ordinary, scores])
    return f"{area:.3f}, {(scores > limit).mean():.0%}"


if __name__ == "__main__":
    main()
