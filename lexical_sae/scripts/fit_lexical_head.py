"""`python -m lexical_sae.scripts.fit_lexical_head` is `lexical-sae fit-lexical-head`."""

from lexical_sae.commands.console import run_command
from lexical_sae.commands.fit_lexical_head import fit_lexical_head

if __name__ == "__main__":
    run_command(fit_lexical_head)
