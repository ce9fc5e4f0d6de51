"""One experiment on several data sets: `python -m splade.scripts.run_multi_dataset --config FILE`.

The same as `lexical-sae multi-dataset`.
"""

from splade.scripts.comparing import Config, Device, NamesTexts, Out, Resume, compare_and_show
from splade.scripts.console import run_command


def multi_dataset(
    config: Config, out: Out = None, names_texts: NamesTexts = 200, resume: Resume = False, device: Device = "auto"
) -> None:
    """Train and measure one experiment on every data set that its file lists under `datasets`.

    Example: lexical-sae multi-dataset --config experiments/cpu/multi_dataset.yaml
    """
    from splade.pipelines.variants import load_datasets

    compare_and_show(load_datasets(config, out=out), "data sets", names_texts, device, resume=resume)


if __name__ == "__main__":
    run_command(multi_dataset)
