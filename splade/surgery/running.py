"""A study with all it leaves in a folder: figures, page, lexicon, edited model, and a certificate of three levels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from splade.certificate import NamedTexts, certify, write_certificate
from splade.config.surgery_plan import SurgeryPlan
from splade.data import TextDataset
from splade.files import write_text
from splade.inference.labels import label_index, labels_of
from splade.intervene import LEXICON_FILE, Lexicon, edit_saved_model
from splade.models.persistence import from_pretrained
from splade.progress import OnStep, silent
from splade.report.leakage_plot import leakage_svg
from splade.report.surgery_study import StudyFiles, study_html
from splade.surgery.study import OtherTexts, study_removal
from splade.training.run_folder import write_json

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
    """Study a removal from a saved model and write everything to `out`; what `surgery.json` says comes back.

    Where no word is removed there is no edited model and no certificate. An earlier study in `out` is replaced.
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
