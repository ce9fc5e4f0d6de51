"""Experiments that take no time, for the tests of what trains several."""

import json
from pathlib import Path

from lexical_sae.data import TextSplit
from lexical_sae.runs import Run, Scores
from lexical_sae.runs.comparing import summary as measuring
from lexical_sae.runs.folder import CONFIG, EVALUATION, NAMES, RESULTS
from lexical_sae.runs.inputs import digest
from lexical_sae.runs.measuring import baselines as baselines
from lexical_sae.runs.measuring import name_tests as naming
from lexical_sae.runs.measuring.paired import write_decisions
from lexical_sae.training.stopping import Interrupted
from lexical_sae.utils.progress import Step

TEST = TextSplit(tuple(f"text {i}" for i in range(50)), (0, 1) * 25)


def baseline_run(rights: int, seed: int = 0) -> dict:
    """A baseline that gets the first test texts right."""
    return {"seed": seed, "test_digest": digest(TEST), "is_correct": [i < rights for i in range(50)]}


YARDSTICKS = {
    "test_texts": 50,
    "test_digest": digest(TEST),
    "baselines": {
        "TF-IDF": {"accuracy": 0.2, "runs": [baseline_run(10)], "seconds": 6.0, "peak_megabytes": 70},
        "dense baseline": {"accuracy": 0.6, "runs": [baseline_run(30)]},
    },
}


def scores(rights: int) -> Scores:
    """Scores of a model that gets the first test texts right."""
    is_correct = tuple(i < rights for i in range(len(TEST)))
    figures = {"accuracy": rights / len(TEST), "macro_f1": 0.5, "majority": 0.5}
    return Scores(figures, 1.0, 0.0, len(TEST), 0, is_correct)


def share(value: float) -> dict:
    return {"agreement": {"mean": round(value, 9)}}


class Work:
    """Stands in for training and measuring: leaves the files they leave, and remembers what it was asked to do."""

    def __init__(self, monkeypatch):
        self.done: list[str] = []
        self.interrupt_at: str | None = None
        monkeypatch.setattr(measuring, "run_experiment", self.run_experiment)
        monkeypatch.setattr(naming, "run_names", self.run_names)
        monkeypatch.setattr(baselines, "run_baselines", self.run_baselines)

    def run_experiment(self, config, *, resume, device, watchers):
        assert device == "cpu"
        place = Path(config.output_dir)
        assert resume == (place / CONFIG).is_file()
        if (place / RESULTS).is_file():
            return json.loads((place / RESULTS).read_text())
        place.mkdir(parents=True, exist_ok=True)
        (place / CONFIG).write_text("begun")
        if self.interrupt_at == place.name:
            raise Interrupted("stopped after step 3")
        self.done.append(f"{'resumed' if resume else 'trained'} {place.name}")
        watchers.on_step(Step("training", 1, 1))
        target = config.training.active_target
        for i, folder in enumerate(one.folder for one in Run.of(config).seeds):
            folder.mkdir(exist_ok=True)
            (folder / NAMES).unlink(missing_ok=True)
            write_decisions(folder, TEST, scores(self.rights(config, i)))
            self.evaluate(folder, config.evaluation.texts)
        runs = [
            {
                "seed": seed,
                "seconds": 30.0,
                "peak_megabytes": 100 * seed,
                "test": {"accuracy": 0.8 + 0.01 * i, "active_words": target - 1, "texts": 50},
            }
            for i, seed in enumerate(config.evaluation.seeds)
        ]
        results = runs[0] if len(runs) == 1 else {"runs": runs}
        (place / RESULTS).write_text(json.dumps(results))
        return results

    @staticmethod
    def rights(config, run) -> int:
        """How many of the first test texts an experiment gets right: more with a greater target and in later runs."""
        return int(config.training.active_target) // 2 + run

    @staticmethod
    def evaluate(folder, texts):
        sizes = [{"fraction": f, "circuit": share(f + 0.8), "random": share(f + 0.3)} for f in (0.05, 0.1)]
        found = {"split": "test", "most_texts": texts, "completeness": {"sizes": sizes}}
        (folder / EVALUATION).write_text(json.dumps(found))

    def run_names(self, one, *, texts, words, on_step):
        assert (words, one.device) == (0, "cpu")
        place, run = one.folder, one.config.evaluation.seeds.index(one.seed)
        on_step(Step("names", 1, 1))
        self.done.append(f"names of {place.name} on {texts}")
        share = {"share": 0.7, "count": 5}
        deleted = {"passed": {**share, "share": 0.9 + 0.02 * run}}
        found = {"texts": min(texts, 50), "delete": deleted, "follow": {"passed": share}}
        found |= {"function_words": {**share, "share": None}, "lexical_neighbours": {**share, "share": 0.6}}
        found["presence"] = {"auc": {**share, "share": 0.88}, "shuffled": {**share, "share": 0.5}}
        found["context"] = {
            "accuracy": {"context_free": {"mean": 0.75}},
            "leakage": {"points": {"mean": 0.1}},
            "shifts": {"per_text": {"mean": 7.5}},
            "negation": None,
            "independence": {"change": {"mean": 0.6}},
        }
        (place / NAMES).write_text(json.dumps({"model": found, "test_texts": 50}))
        return {"model": found}

    def run_baselines(self, config, device, *, on_step):
        assert device == "cpu"
        on_step(Step("dense baseline", 1, 1))
        self.done.append("baselines")
        place = Path(config.output_dir)
        place.mkdir(parents=True, exist_ok=True)
        (place / "baselines.json").write_text(json.dumps(YARDSTICKS))
