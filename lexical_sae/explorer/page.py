"""The explorer as one HTML file: its modules, its style and its data, and a policy that allows these and nothing else.

Modules are put together as they are, each in a function of its own that returns what it exports. There is no other step
between the files of `static` and a page.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from typing import Any

from markupsafe import escape

from lexical_sae.explorer import STATIC

MAIN = "main.js"
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w-]+\.js)";\n', re.M)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.M)
_IN_JSON = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def page_html(title: str, models: list[dict[str, Any]]) -> str:
    """The page of some models; the same data always gives the same page.

    Args:
        title: What is on it.
        models: Per model `name`, `about`, `address` (what the command line calls it), `codes` (`corpus_payload`),
            `accuracies` (rows of name, value and remark) and `measures` (tables, each a heading and such rows).
    """
    style, script = (STATIC / "explorer.css").read_text(encoding="utf-8"), bundled()
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    data = json.dumps({"title": title, "models": models}, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<lx-app></lx-app>",
            "<noscript>The explorer needs JavaScript: it computes decisions in this page.</noscript>",
            f'<script type="application/json" id="payload">{data.translate(_IN_JSON)}</script>',
            f'<script type="module">{script}</script>\n</body>\n</html>\n',
        ]
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"


@cache
def bundled() -> str:
    """All modules as one, each after those that it imports."""
    return "".join(f"\n{_as_function(name)}" for name in _in_order(MAIN, [], ()))


def _in_order(name: str, done: list[str], within: tuple[str, ...]) -> list[str]:
    assert name not in within, f"modules import each other: {' > '.join((*within, name))}"
    if name not in done:
        for other in _imports(_source(name)):
            _in_order(other, done, (*within, name))
        done.append(name)
    return done


def _source(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _imports(source: str) -> Iterator[str]:
    return (match[2] for match in _IMPORT.finditer(source))


def _as_function(name: str) -> str:
    """Example: `export const A = 1;` in `b.js` -> `const m_b = (() => { const A = 1; return { A }; })();`"""
    source = _source(name)
    exports = ", ".join(match[2] for match in _EXPORT.finditer(source))
    body = _IMPORT.sub(lambda match: f"const {match[1]} = m_{match[2].removesuffix('.js')};\n", source)
    body = _EXPORT.sub(r"\1", body)
    assert "</script" not in body, f"{name} would end the script that it stands in"
    if name == MAIN:
        return f"await (async () => {{\n{body}}})();\n"
    return f"const m_{name.removesuffix('.js')} = (() => {{\n{body}return {{ {exports} }};\n}})();\n"
