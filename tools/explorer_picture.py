"""The picture of the explorer in the README: `python tools/explorer_picture.py results/quickstart docs/explorer.png`.

It takes Chromium and `pip install -r requirements-browser.txt`. The texts are invented, so none of a data set is shown.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright  # pyright: ignore[reportMissingImports]

from lexical_sae.inference.labels import label_index, labels_of
from lexical_sae.runs import Run
from lexical_sae.runs.pages.explorer import write_explorer
from lexical_sae.runs.texts import Corpus

REVIEWS = {
    "a warm, funny film that never drags": "positive",
    "not a bad idea, but the plot is thin and the jokes are worse": "negative",
    "it is hard to say why this quiet story moves you, but it does": "positive",
    "two hours of noise without one honest moment": "negative",
    "the acting is fine; the script is not": "negative",
    "an odd, gentle, beautiful little movie": "positive",
}
SIZE = {"width": 1180, "height": 660}
PLACE = "#/read?text=0"


def main(folder: str, out: str) -> None:
    """Write the picture of a run's explorer."""
    run = Run.open(folder)
    labels = labels_of(run.first.model)
    corpus = Corpus(list(REVIEWS), [label_index(labels, label, "label") for label in REVIEWS.values()])
    with tempfile.TemporaryDirectory() as place, sync_playwright() as tools:
        page_file = write_explorer(run, Path(place) / "explorer.html", corpus=corpus)
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
        page.goto(page_file.as_uri() + PLACE)
        page.wait_for_selector("html[data-ready]")
        page.hover("button.word:has-text('never')")
        page.screenshot(path=out)
        browser.close()
    print(f"{out}: {Path(out).stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(*sys.argv[1:])
