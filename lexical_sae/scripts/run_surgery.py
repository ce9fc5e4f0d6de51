"""`python -m lexical_sae.scripts.run_surgery` is `lexical-sae surgery`."""

from lexical_sae.commands.console import run_command
from lexical_sae.commands.surgery import surgery

if __name__ == "__main__":
    run_command(surgery)
