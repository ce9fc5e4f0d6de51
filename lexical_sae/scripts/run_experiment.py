"""`python -m lexical_sae.scripts.run_experiment` is `lexical-sae train`."""

from lexical_sae.commands.console import run_command
from lexical_sae.commands.train import train

if __name__ == "__main__":
    run_command(train)
