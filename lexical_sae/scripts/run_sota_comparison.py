"""`python -m lexical_sae.scripts.run_sota_comparison` is `lexical-sae sota-comparison`."""

from lexical_sae.commands.compare import sota_comparison
from lexical_sae.commands.console import run_command

if __name__ == "__main__":
    run_command(sota_comparison)
