"""A concept removal with all its files: figures, page, lexicon, edited model, and a certificate with three levels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lexical_sae.data import TextDataset
from lexical_sae.inference.labels import label_index, labels_of
from lexical_sae.intervene import LEXICON_FILE, Lexicon, edit_saved_model
from lexical_sae.intervene.certificate import NamedTexts, certify, write_certificate
from lexical_sae.intervene.concepts.plan import SurgeryPlan
from lexical_sae.intervene.concepts.study import OtherTexts, study_removal
from lexical_sae.models.persistence import from_pretrained
from lexical_sae.report.charts.leakage import leakage_svg
from lexical_sae.report.studies.concept_removal import StudyFiles, study_html
from lexical_sae.utils.files import write_json, write_text
from lexical_sae.utils.progress import OnStep, silent

RESULTS, PAGE, PLOT = "surgery.json", "surgery.html", "leakage.svg"
CERTIFICATE, EDITED = "certificate.json", "edited"


def run_surgery(
    folder: str | Path,
    dataset: TextDataset,
    plan: SurgeryPlan,
    out: str | Path,
    others: Sequence[OtherTexts] = (),
    on_step: OnStep = silent,
) -> dict[str, Any]:
    """The figures of a concept removal from a saved model, as `surgery.json` has them; everything is written to `out`.

    Args:
        folder: The saved model.
        dataset: Its data, with identities.
        plan: What to remove.
        out: Folder to write to. An earlier study there is replaced.
        others: Further texts to measure the same removals on.
        on_step: Receives progress.

    Returns:
        Plain data. If no word is removed, there is no edited model and no certificate.
    """
    place = Path(out).expanduser()
    place.mkdir(parents=True, exist_ok=True)
    model = from_pretrained(folder)
    study = study_removal(model, dataset, plan, others, on_step)
    files = StudyFiles()
    if study.forbid:
        lexicon = Lexicon(forbid=study.forbid)
        write_text(place / LEXICON_FILE, lexicon.to_yaml())
        edit_saved_model(folder, lexicon, place / EDITED)
        labels = [
            label_index(labels_of(model), dataset.label_names[i], "the data's label") for i in dataset.test.labels
        ]
        texts = NamedTexts(dataset.name, dataset.test.texts, labels)
        made = certify(folder, place / EDITED, texts, on_step=on_step)
        leakage = study.leakage.as_certificate(plan.concept, f"{dataset.name}, balanced")
        write_certificate(made.model_copy(update={"leakage": leakage}), place / CERTIFICATE)
        files = StudyFiles(CERTIFICATE, LEXICON_FILE)
    write_json(place / RESULTS, {"plan": plan.model_dump(mode="json"), **study.results})
    results = json.loads((place / RESULTS).read_text(encoding="utf-8"))
    write_text(place / PAGE, study_html(f"Removing {plan.concept}", results, files))
    write_text(place / PLOT, leakage_svg(results["ceilings"]))
    return results
