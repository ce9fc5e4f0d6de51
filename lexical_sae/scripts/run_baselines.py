"""`python -m lexical_sae.scripts.run_baselines` is `lexical-sae baselines`."""

from lexical_sae.commands.compare import baselines
from lexical_sae.commands.console import run_command

if __name__ == "__main__":
    run_command(baselines)
