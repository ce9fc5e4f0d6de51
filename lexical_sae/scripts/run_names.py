"""`python -m lexical_sae.scripts.run_names` is `lexical-sae names`."""

from lexical_sae.commands.console import run_command
from lexical_sae.commands.evaluate import names

if __name__ == "__main__":
    run_command(names)
