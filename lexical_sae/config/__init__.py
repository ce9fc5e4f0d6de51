"""Experiments as YAML: recipe defaults, overridden by what the file says, checked strictly."""
