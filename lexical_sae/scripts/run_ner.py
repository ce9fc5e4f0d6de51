"""`python -m lexical_sae.scripts.run_ner` is `lexical-sae ner`."""

from lexical_sae.commands.console import run_command
from lexical_sae.commands.tag import ner

if __name__ == "__main__":
    run_command(ner)
