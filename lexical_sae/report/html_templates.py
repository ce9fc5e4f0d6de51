"""The page templates: everything from outside escaped, and nothing that no HTML file can hold."""

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from lexical_sae.report.explanation.removal import effect, pieces_name
from lexical_sae.report.explanation.shifts import shift_of
from lexical_sae.report.explanation.steps import METHODS
from lexical_sae.report.explanation.written import as_written

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""All but tab and line feed."""


@cache
def templates() -> Environment:
    """The templates of pages and of notebook cells."""
    environment = Environment(
        loader=PackageLoader("lexical_sae.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_without_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"signed": _signed, "effect": effect, "method": METHODS.__getitem__, "pieces": pieces_name}
    environment.filters |= {"shift": shift_of, "as_written": as_written}
    return environment


def _signed(value: Any) -> str:
    return f"{value:+.2f}"


def _without_controls(value: Any) -> Any:
    """A string without control characters and lone surrogates, which no HTML file can hold; all else as it is."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", value) if type(value) is str else value
