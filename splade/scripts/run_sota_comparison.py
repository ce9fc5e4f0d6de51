"""The recipes beside models without words: `python -m splade.scripts.run_sota_comparison --config FILE`.

The same as `lexical-sae sota-comparison`.
"""

from typing import Annotated

import typer

from splade.scripts.comparing import Config, Device, NamesTexts, Out, Resume, compare_and_show
from splade.scripts.console import run_command


def sota_comparison(
    config: Config,
    out: Out = None,
    names_texts: NamesTexts = 200,
    baselines: Annotated[bool, typer.Option(help="Train the dense twin and TF-IDF too, on the same rows.")] = True,
    resume: Resume = False,
    device: Device = "auto",
) -> None:
    """Train an experiment with every recipe, the dense twin and TF-IDF: accuracy, words, names and cost in one table.

    Example: lexical-sae sota-comparison --config experiments/cpu/sota_comparison.yaml
    """
    from splade.pipelines.ablations import other_recipes
    from splade.pipelines.variants import load_variants

    study = load_variants(config, other_recipes, kind="sota_comparison", base=lambda settings: settings.recipe, out=out)
    compare_and_show(study, "recipes and yardsticks", names_texts, device, resume=resume, with_baselines=baselines)


if __name__ == "__main__":
    run_command(sota_comparison)
