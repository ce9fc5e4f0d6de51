"""`python -m lexical_sae.scripts.run_sweep` is `lexical-sae sweep`."""

from lexical_sae.commands.compare import sweep
from lexical_sae.commands.console import run_command

if __name__ == "__main__":
    run_command(sweep)
