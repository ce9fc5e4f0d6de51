"""`python -m lexical_sae.scripts.run_sae` is `lexical-sae sae`."""

from lexical_sae.commands.console import run_command
from lexical_sae.commands.studies import sae

if __name__ == "__main__":
    run_command(sae)
