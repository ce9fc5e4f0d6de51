"""`python -m lexical_sae.scripts.run_bcos_ablation` is `lexical-sae bcos-ablation`."""

from lexical_sae.commands.compare import bcos_ablation
from lexical_sae.commands.console import run_command

if __name__ == "__main__":
    run_command(bcos_ablation)
