"""The experiments of the papers as scripts: `python -m lexical_sae.scripts.run_experiment --config FILE`."""
