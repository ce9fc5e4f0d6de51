"""Lexical-SAE: text classification and tagging through a sparse layer of words."""

__version__ = "0.1.0"
