"""`python -m lexical_sae.scripts.run_polysemy` is `lexical-sae polysemy`."""

from lexical_sae.commands.console import run_command
from lexical_sae.commands.studies import polysemy

if __name__ == "__main__":
    run_command(polysemy)
