"""What each part of an experiment is good for: `python -m splade.scripts.run_ablation --config FILE`.

The same as `lexical-sae ablation`.
"""

from splade.scripts.comparing import Config, Device, NamesTexts, Out, Resume, compare_and_show
from splade.scripts.console import run_command


def ablation(
    config: Config, out: Out = None, names_texts: NamesTexts = 200, resume: Resume = False, device: Device = "auto"
) -> None:
    """Train an experiment and its variants, and test each against it on the same texts.

    Example: lexical-sae ablation --config experiments/ablation/ablation.yaml

    Variants are those of the file. Without any: each term off, all off, the other completeness, a fixed weight for the
    cross-entropy, and each other gate.
    """
    from splade.pipelines.ablations import term_ablations
    from splade.pipelines.variants import load_variants

    study = load_variants(config, term_ablations, kind="ablation", out=out)
    compare_and_show(study, "what its parts are good for", names_texts, device, resume=resume)


if __name__ == "__main__":
    run_command(ablation)
