"""Fitting a masked-LM head to an encoder that has none."""
