"""The metrics of an evaluation, one per file."""
