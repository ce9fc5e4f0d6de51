"""B-cos heads beside the ReLU head: `python -m splade.scripts.run_bcos_ablation --config FILE`.

The same as `lexical-sae bcos-ablation`.
"""

from splade.scripts.comparing import Config, Device, NamesTexts, Out, Resume, compare_and_show
from splade.scripts.console import run_command


def bcos_ablation(
    config: Config, out: Out = None, names_texts: NamesTexts = 200, resume: Resume = False, device: Device = "auto"
) -> None:
    """Train an experiment with its ReLU head and with B-cos heads, and test these against it on the same texts.

    Example: lexical-sae bcos-ablation --config experiments/ablation/bcos.yaml
    """
    from splade.pipelines.ablations import bcos_heads
    from splade.pipelines.variants import load_variants

    study = load_variants(config, bcos_heads, kind="bcos_ablation", base=lambda _: "ReLU-2", out=out)
    compare_and_show(study, "heads", names_texts, device, resume=resume)


if __name__ == "__main__":
    run_command(bcos_ablation)
