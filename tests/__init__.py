"""`checked` is the type checker that runs on every annotation of the package during tests."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
"""An int is a fine float, as everywhere in Python."""
