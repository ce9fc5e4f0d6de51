"""`python -m lexical_sae.scripts.run_multi_dataset` is `lexical-sae multi-dataset`."""

from lexical_sae.commands.compare import multi_dataset
from lexical_sae.commands.console import run_command

if __name__ == "__main__":
    run_command(multi_dataset)
