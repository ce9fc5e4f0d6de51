"""The explorer: a page on which people read, question and edit a classifier.

1. `corpus` makes its data: texts as a handful of words each, and the table that decides on them.
2. `static` is the page: plain modules that do the arithmetic of the table themselves, so every question after the one
   encoder pass is answered at once, without a server.
3. `page` puts both into one file.
"""

from pathlib import Path

STATIC = Path(__file__).parent / "static"
"""The folder of the page's files."""
