"""What cannot be a quick test of the explorer: `python tools/explorer_check.py PAGE [AXE_JS]`.

1. How long a suppressed word takes to the new figures, with the page's texts repeated up to 5,000: on the clock, which
   also runs while other programs have the processor, and in processor time of the page's main thread, which does not.
2. With axe-core (`npm install axe-core`, then its `axe.min.js`): what it finds in every view, both themes, two widths.

It takes Chromium and `pip install -r requirements-browser.txt`.
"""

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from playwright.sync_api import Browser, CDPSession, sync_playwright  # pyright: ignore[reportMissingImports]

from lexical_sae.explorer.packing import packed_counts, packed_floats, unpacked
from lexical_sae.explorer.page import page_html

TEXTS = 5_000
WORDS = 8
"""Words to suppress one after another: those of most texts."""
EDIT = '{"suppressed":["film"],"weights":{}}'
PLACES = (
    *("#/overview", "#/read?text=0", "#/corpus?truth=0&predicted=1", "#/words", "#/compare", "#/health"),
    f"#/words?word=film&edit={EDIT}",
)
CLICK = """async () => {
    const started = performance.now();
    document.querySelector("[data-key=suppress]").click();
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - started;
}"""
"""Until the new figures are painted."""


def main(page: str, axe: str | None = None) -> None:
    """Print what was found."""
    place = Path(page).resolve()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        large = Path(folder) / "large.html"
        words = write_repeated(place, large)
        clock, processor = timings(browser, large.as_uri(), words)
        print(f"milliseconds to the new figures on {TEXTS} texts: {clock} on the clock, {processor} of processor time")
        if axe is not None:
            for line in violations(browser, place.as_uri(), Path(axe).read_text(encoding="utf-8")):
                print(line)
        browser.close()


def write_repeated(page: Path, out: Path) -> list[str]:
    """Write the page with its texts repeated; its most frequent words."""
    (data,) = re.findall(r'id="payload">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    held = json.loads(data)
    codes = held["models"][0]["codes"]
    texts, times = codes["texts"], -(-TEXTS // len(codes["texts"]["text"]))
    counts = np.tile(unpacked(texts["count"]), times)[:TEXTS]
    occurrences = int(counts.astype(int).sum())
    texts["text"] = (texts["text"] * times)[:TEXTS]
    codes["label"] = codes["label"] and (codes["label"] * times)[:TEXTS]
    for name in ("tokens", "tokens_cut", "count"):
        texts[name] = packed_counts(np.tile(unpacked(texts[name]), times)[:TEXTS].tolist())
    for name in ("word", "start", "length"):
        texts[name] = packed_counts(np.tile(unpacked(texts[name]), times)[:occurrences].tolist())
    texts["change"] = packed_floats(torch.from_numpy(np.tile(unpacked(texts["change"]), times)[:occurrences]))
    out.write_text(page_html(held["title"], held["models"][:1]), encoding="utf-8")
    often = np.bincount(unpacked(texts["word"])).argsort()[::-1][:WORDS]
    return [codes["words"]["names"][i] for i in often]


def timings(browser: Browser, address: str, words: list[str]) -> tuple[list[int], list[int]]:
    """Milliseconds from each click to the painted figures: on the clock, and of the main thread's processor time."""
    page = browser.new_page()
    tools = page.context.new_cdp_session(page)
    clock, processor = [], []
    for word in words:
        page.goto("about:blank")
        page.goto(f"{address}#/words?word={word}")
        page.wait_for_selector("[data-key=suppress]")
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = task_seconds(tools)
        clock.append(round(page.evaluate(CLICK)))
        processor.append(round(1000 * (task_seconds(tools) - before)))
        tools.send("Performance.disable")
    return clock, processor


def task_seconds(tools: CDPSession) -> float:
    """Processor time of the page's main thread until now."""
    metrics = tools.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


def violations(browser: Browser, address: str, axe: str) -> list[str]:
    """A line for each thing that axe-core finds."""
    found = []
    for theme in ("light", "dark"):
        for width in (1280, 390):
            # The page's policy would refuse axe-core.
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True)
            for place in PLACES:
                page.goto("about:blank")
                page.goto(address + place)
                page.wait_for_selector("html[data-ready]")
                page.evaluate(axe)
                results: dict[str, Any] = page.evaluate("axe.run()")
                found += [f"{theme} {width} {place}: {one['impact']} {one['id']}" for one in results["violations"]]
            page.close()
    return found or ["axe-core finds nothing"]


if __name__ == "__main__":
    main(*sys.argv[1:])
