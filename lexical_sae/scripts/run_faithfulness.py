"""`python -m lexical_sae.scripts.run_faithfulness` is `lexical-sae faithfulness`."""

from lexical_sae.commands.console import run_command
from lexical_sae.commands.studies import faithfulness

if __name__ == "__main__":
    run_command(faithfulness)
