"""The dense baseline: the same encoder without words in between."""
