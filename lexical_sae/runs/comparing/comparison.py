"""Several experiments, trained and measured one after the other, and set side by side.

1. The data of all is read once, before anything is trained: what cannot be read is reported at once.
2. Each runs in a folder of its own, so an interrupted comparison goes on where it stopped.
3. Where all are tested on the same texts, each is paired with the first, text by text; baselines too.
4. After every experiment the comparison so far is written: `results.json` and `report.html`.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from lexical_sae.config.schema import ExperimentConfig
from lexical_sae.report.studies.comparison import (
    ComparedRun,
    ComparedYardstick,
    Comparison,
    Difference,
    comparison_page,
)
from lexical_sae.report.tables import tables_html
from lexical_sae.runs.comparing.summary import is_begun, measure_run
from lexical_sae.runs.comparing.variants import Study, Variant
from lexical_sae.runs.folder import CONFIG, MODEL, REPORT, RESULTS, RunFolder
from lexical_sae.runs.inputs import load_data
from lexical_sae.runs.measuring.baselines import baseline_decisions, measured_baselines, pairs_by_seed
from lexical_sae.runs.measuring.paired import holm, paired_difference
from lexical_sae.runs.run import Run
from lexical_sae.runs.seeds import Watchers
from lexical_sae.utils.errors import SavedFileError


def run_comparison(
    study: Study,
    title: str,
    *,
    names_texts: int = 200,
    with_baselines: bool = False,
    resume: bool = False,
    device: str = "auto",
    watchers: Watchers = Watchers(),
) -> Comparison:
    """Train and measure every experiment of a study, and write the comparison to `output_dir`.

    On `resume` nothing that is finished is done again, and experiments may have been added. `title` says what they
    differ in. With `with_baselines` the dense baseline and TF-IDF are trained on the rows of the first.
    """
    settings = study.config.model_dump(mode="json")
    if (Path(study.config.output_dir) / MODEL).exists():
        raise SavedFileError(
            f"{study.config.output_dir} holds the run of one experiment; choose another folder with --out"
        )
    with RunFolder.open(study.config.output_dir, settings, resume=resume) as folder:
        try:
            _require_data(study.variants)
            # On resume there may be more of them than before.
            folder.write_text(CONFIG, yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
            return _run(study, title, folder, names_texts, device, watchers, with_baselines=with_baselines)
        except BaseException:
            if not any(is_begun(variant.config) for variant in study.variants):
                folder.withdraw()
            raise


def _require_data(variants: Sequence[Variant]) -> None:
    """Refuse data that cannot be read, each set once; that of a finished run is no longer needed."""
    missing = [one.config for one in variants if not (Path(one.config.output_dir) / RESULTS).is_file()]
    for config in {one.data.model_dump_json(): one for one in missing}.values():
        load_data(config, config.evaluation.seeds[0])


def _run(
    study: Study,
    title: str,
    folder: RunFolder,
    names_texts: int,
    device: str,
    watchers: Watchers,
    *,
    with_baselines: bool,
) -> Comparison:
    first, seeds = study.variants[0], len(study.config.evaluation.seeds)
    comparison = Comparison(study.config.experiment_name, title, seeds, study.is_paired, ())
    for number, variant in enumerate(study.variants, start=1):
        place = variant.config.output_dir
        watchers.on_note(f"experiment {number} of {len(study.variants)}: {variant.name}, in {place}")
        figures = measure_run(variant.config, names_texts, device, watchers)
        difference = _difference(variant, first) if study.is_paired and variant is not first else None
        run = ComparedRun(variant.name, variant.changes, figures, difference)
        comparison = replace(comparison, runs=(*comparison.runs, run))
        _write(folder, comparison)
    if with_baselines:
        # Their rows are those of the first experiment, their file belongs to all.
        config = first.config.model_copy(update={"output_dir": study.config.output_dir})
        found = measured_baselines(config, device, watchers)
        comparison = replace(comparison, baselines=_baselines(found, first.config))
    return _write(folder, comparison)


def _difference(variant: Variant, first: Variant) -> Difference:
    ours, theirs = ([seed.decisions for seed in Run.of(one.config).seeds] for one in (variant, first))
    return paired_difference(ours, theirs)


def _baselines(found: dict[str, Any], first: ExperimentConfig) -> tuple[ComparedYardstick, ...]:
    bases = {one.seed: one.decisions for one in Run.of(first).seeds}

    def difference(scores: dict[str, Any]) -> Difference:
        pairs = pairs_by_seed(bases, baseline_decisions(scores)).values()
        return paired_difference([baseline for _, baseline in pairs], [base for base, _ in pairs])

    return tuple(
        ComparedYardstick(
            name,
            scores["accuracy"],
            scores.get("seconds"),
            difference(scores),
            scores.get("peak_megabytes"),
        )
        for name, scores in found["baselines"].items()
    )


def _corrected(comparison: Comparison) -> Comparison:
    """The comparison with p-values that hold for all its rows together."""
    differences = [row.difference for row in (*comparison.runs, *comparison.baselines) if row.difference]
    together = iter(holm([difference.p for difference in differences]))
    runs = [
        replace(run, difference=replace(run.difference, p_of_all=next(together))) if run.difference else run
        for run in comparison.runs
    ]
    baselines = [
        replace(one, difference=replace(one.difference, p_of_all=next(together))) for one in comparison.baselines
    ]
    return replace(comparison, runs=tuple(runs), baselines=tuple(baselines))


def _write(folder: RunFolder, comparison: Comparison) -> Comparison:
    """Leave the comparison so far, and return it as it was written."""
    written = _corrected(comparison)
    folder.write_json(RESULTS, asdict(written))
    folder.write_text(REPORT, tables_html(comparison_page(written)))
    return written
