"""Experiments on trained models, beyond the evaluation that every run gets."""
