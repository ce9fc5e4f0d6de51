"""`python -m lexical_sae.scripts.run_ablation` is `lexical-sae ablation`."""

from lexical_sae.commands.compare import ablation
from lexical_sae.commands.console import run_command

if __name__ == "__main__":
    run_command(ablation)
