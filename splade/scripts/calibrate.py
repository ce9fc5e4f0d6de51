"""Tell a saved model when not to decide: the command `calibrate`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command


def calibrate(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model, inside the folder of its run.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the calibrated model; by default the same.")] = None,
    false_alarms: Annotated[
        float, typer.Option(help="Share of ordinary (validation) texts that may get a warning.", min=0.0001, max=0.5)
    ] = 0.01,
) -> None:
    """Measure on a run's validation texts when its model should warn or abstain, and save that with the model.

    Example: lexical-sae calibrate results/quickstart/model --false-alarms 0.02

    Training does this already; it is for models of earlier versions, for edited models, and for another share.
    """
    from splade.config.load import load_config
    from splade.intervene.lexicon import LEXICON_FILE, attached_lexicon
    from splade.models.persistence import from_pretrained, save_pretrained
    from splade.pipelines import require_same_labels
    from splade.pipelines.calibrating import calibrate as measure
    from splade.scripts.unseen_texts import rows_of_run
    from splade.training.run_folder import CONFIG

    folder = model.resolve().parent
    if not (folder / CONFIG).is_file():
        raise ValueError(
            f"there is no {folder / CONFIG}, so the texts that the model was trained on are not known; give a model "
            "inside the folder of its run"
        )
    loaded, lexicon = from_pretrained(model), attached_lexicon(model)
    dataset = rows_of_run(load_config(folder / CONFIG), folder)
    require_same_labels(loaded, dataset)
    loaded.calibration = measure(loaded, dataset, false_alarms)
    written = save_pretrained(loaded, out or model, attached={LEXICON_FILE: lexicon.to_yaml()} if lexicon else None)
    console.print(Text(f"calibrated on {loaded.calibration.figures.texts} validation texts; written to {written}"))


if __name__ == "__main__":
    run_command(calibrate)
