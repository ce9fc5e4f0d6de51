"""`python -m lexical_sae.scripts.run_long_context` is `lexical-sae long-context`."""

from lexical_sae.commands.console import run_command
from lexical_sae.commands.studies import long_context

if __name__ == "__main__":
    run_command(long_context)
