"""Losses pull: the only room that sees an optimiser."""
