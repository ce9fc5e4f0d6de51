"""The goal table: `make bench`, or `python -m benchmarks.run --full` for all sizes.

Writes benchmarks/results/table.md and plots of cost against length, batch and vocabulary. Every ratio compares sides
that took turns in one process, on one thread, with the same attention setting; memory is measured in a process per
side. "neighbours" is the recipe in which a token can activate only its lexical neighbours; "whole vocabulary" is the
same model without that restriction.
"""

import argparse
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import contenders as c
from benchmarks import plots
from benchmarks.explainers import explainer_rows
from benchmarks.measure import memory_in_a_new_process, seconds

RESULTS = Path(__file__).parent / "results"
Row = tuple[str, str, str, str]
"""What is compared, the goal, what was measured, the figures behind it."""
OURS = ("neighbours", "whole vocabulary")


def ratios(what: str, goal: str, times: dict[str, float], *, over: str, unit: str = "s", ours_first: bool) -> list[Row]:
    """A row per form of ours, each against the same other side."""
    figures = ", ".join(f"{side} {value:.3g} {unit}" for side, value in times.items())
    rows = []
    for form in (name for name in OURS if name in times):
        ratio = times[form] / times[over] if ours_first else times[over] / times[form]
        sides = f"{form} / {over}" if ours_first else f"{over} / {form}"
        rows.append((f"{what}, {sides}", goal, f"{ratio:.2f}", figures))
    return rows


def head_rows(models: dict[str, c.LexicalSAE], repeats: int) -> list[Row]:
    batch = c.full(16, 128)
    whole = models["whole vocabulary"]
    sides = {"plain": c.head_step(whole, batch, c.plain_pool)}
    sides |= {name: c.head_step(model, batch, c.fused_pool) for name, model in models.items()}
    tasks = {"plain": "plain_head", "neighbours": "near_head", "whole vocabulary": "whole_head"}
    sizes = {side: memory_in_a_new_process(task, 16, 128) for side, task in tasks.items()}
    times = seconds(sides, repeats)
    return [
        *ratios("head forward+backward, 16×128", "≥ 10", times, over="plain", ours_first=False),
        *ratios("head memory, 16×128", "≥ 15", sizes, over="plain", unit="MB", ours_first=False),
    ]


def step_rows(models: dict[str, c.LexicalSAE], repeats: int) -> list[Row]:
    batch, dense, whole = c.full(32, 128), c.dense_model(), models["whole vocabulary"]
    sides = {"plain": c.training_step(whole, c.plain_logits(whole), [batch])}
    sides |= {name: c.training_step(model, c.fused_logits(model), [batch]) for name, model in models.items()}
    sides["dense"] = c.training_step(dense, c.dense_logits(dense), [batch])
    times = seconds(sides, repeats)
    return [
        *ratios("training step, 32×128", "≥ 3.5", times, over="plain", ours_first=False),
        *ratios("training step, 32×128", "≤ 1.10", times, over="dense", ours_first=True),
        *as_written_rows(models, repeats),
    ]


def as_written_rows(models: dict[str, c.LexicalSAE], repeats: int) -> list[Row]:
    """Against a straightforward head: attention dropout, texts in their order."""
    texts = c.ragged(64)
    theirs = c.with_attention_dropout(c.lexical_model(near=False))
    sides = {"plain, as written": c.training_step(theirs, c.plain_logits(theirs), c.in_order(texts, 32))}
    for name, model in models.items():
        sides[name] = c.training_step(model, c.fused_logits(model), c.bucketed(texts, 32))
    times = seconds(sides, repeats)
    return ratios("an epoch of 64 reviews", "≥ 8", times, over="plain, as written", ours_first=False)


def memory_rows(batch: int, length: int) -> list[Row]:
    tasks = {"neighbours": "near_step", "whole vocabulary": "whole_step", "dense": "dense_step"}
    sizes = {side: memory_in_a_new_process(task, batch, length) for side, task in tasks.items()}
    return ratios(f"training memory, {batch}×{length}", "≤ 1.05", sizes, over="dense", unit="MB", ours_first=True)


def state_row(model: c.LexicalSAE) -> list[Row]:
    sizes = c.state_megabytes(model.eval(), c.ragged(64).batch(list(range(64))))
    figures = ", ".join(f"{side} {value:.2g} MB" for side, value in sizes.items())
    return [("CircuitState of 64 reviews, dense / sparse", "-", f"{sizes['dense'] / sizes['sparse']:.0f}", figures)]


def inference_rows(models: dict[str, c.LexicalSAE], repeats: int) -> list[Row]:
    dense, whole = c.dense_model(), models["whole vocabulary"]
    batch, texts = c.full(32, 128), c.ragged(128)
    full = {"plain": c.inference(whole, c.plain_logits(whole), [batch])}
    uneven = {"plain, in order": c.inference(whole, c.plain_logits(whole), c.in_order(texts, 32))}
    for name, model in models.items():
        full[name] = c.inference(model, c.sparse_logits(model), [batch])
        uneven[name] = c.inference(model, c.sparse_logits(model), c.bucketed(texts, 32))
    full["dense"] = c.inference(dense, c.dense_logits(dense), [batch])
    uneven["dense, in order"] = c.inference(dense, c.dense_logits(dense), c.in_order(texts, 32))
    uneven["dense, bucketed"] = c.inference(dense, c.dense_logits(dense), c.bucketed(texts, 32))
    times, ragged = seconds(full, repeats), seconds(uneven, repeats)
    return [
        *ratios("inference, 32×128", "≥ 5", times, over="plain", ours_first=False),
        *ratios("inference, 32×128", "≤ 1.20", times, over="dense", ours_first=True),
        *ratios("inference, 128 reviews", "≥ 15", ragged, over="plain, in order", ours_first=False),
        *ratios("inference, 128 reviews", "≤ 0.85", ragged, over="dense, in order", ours_first=True),
        *ratios("inference, 128 reviews", "-", ragged, over="dense, bucketed", ours_first=True),
    ]


def render(rows: list[Row]) -> str:
    lines = [f"| {name} | {goal} | **{measured}** | {figures} |" for name, goal, measured, figures in rows]
    machine = f"{platform.processor() or platform.machine()}, one thread, torch {torch.__version__}, fp32"
    says = [
        "# Benchmarks",
        "",
        f'Made by `make bench`. {machine}. Best of several rounds; ratios vary by some per cent. "neighbours" is the',
        'recipe in which a token reaches the words near to it; "whole vocabulary" is the same without a',
        "neighbourhood. Input embeddings are frozen on all sides. What the figures mean: docs/performance.md.",
        "",
    ]
    return "\n".join([*says, "| comparison | goal | measured | figures |", "|---|---|---|---|", *lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="more rounds, longer texts, the largest memory size")
    is_full = parser.parse_args().full
    repeats = 4 if is_full else 1
    RESULTS.mkdir(exist_ok=True)
    models = {"neighbours": c.lexical_model(), "whole vocabulary": c.lexical_model(near=False)}
    rows: list[Row] = []
    parts: list[Callable[[], list[Row]]] = [
        lambda: head_rows(models, repeats),
        lambda: step_rows(models, repeats),
        lambda: memory_rows(32, 128),
        lambda: memory_rows(64, 256) if is_full else [],
        lambda: state_row(models["neighbours"]),
        lambda: inference_rows(models, repeats),
        lambda: explainer_rows(models, repeats),
    ]
    started = time.monotonic()
    for part in parts:
        rows += part()
        (RESULTS / "table.md").write_text(render(rows))
        print(f"{time.monotonic() - started:.0f} s: {rows[-1][0]}", flush=True)
    for name, chart in plots.charts(models, repeats, is_full=is_full):
        (RESULTS / f"{name}.svg").write_text(chart)
        print(f"{time.monotonic() - started:.0f} s: {name}.svg", flush=True)
    print((RESULTS / "table.md").read_text())


if __name__ == "__main__":
    main()
