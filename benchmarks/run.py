"""The goal table: `make bench`, or `python -m benchmarks.run --full` for all sizes.

Writes benchmarks/results/table.md and plots of cost against length. Every ratio compares sides that took turns in
one process, on one thread, with the same attention setting; memory is measured in a process per side.
"""

import argparse
import platform
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import contenders as c
from benchmarks.explainers import explainer_sides
from benchmarks.measure import memory_in_a_new_process, seconds
from splade.report.svg import Axis, Series, line_chart

RESULTS = Path(__file__).parent / "results"
Row = tuple[str, str, str, str]
"""What is compared, the goal, what was measured, the figures behind it."""


def ratio_row(name: str, goal: str, times: dict[str, float], slow: str, fast: str) -> Row:
    figures = ", ".join(f"{side} {value:.3g} s" for side, value in times.items())
    return name, goal, f"{times[slow] / times[fast]:.2f}", figures


def head_rows(model: c.LexicalSAE, repeats: int) -> list[Row]:
    batch = c.full(16, 128)
    sides = {"plain": c.head_step(model, batch, c.plain_pool), "ours": c.head_step(model, batch, c.fused_pool)}
    times = seconds(sides, repeats)
    sizes = {
        side: memory_in_a_new_process(f"{task}_head", 16, 128) for side, task in (("plain", "plain"), ("ours", "fused"))
    }
    memory = ", ".join(f"{side} {value:.0f} MB" for side, value in sizes.items())
    return [
        ratio_row("head forward+backward, plain / ours, 16×128", "≥ 10", times, "plain", "ours"),
        ("head memory, plain / ours, 16×128", "≥ 15", f"{sizes['plain'] / sizes['ours']:.1f}", memory),
    ]


def step_rows(model: c.LexicalSAE, repeats: int) -> list[Row]:
    batch, dense = c.full(32, 128), c.dense_model()
    times = seconds(
        {
            "plain": c.training_step(model, c.plain_logits(model), [batch]),
            "ours": c.training_step(model, c.fused_logits(model), [batch]),
            "dense": c.training_step(dense, c.dense_logits(dense), [batch]),
        },
        repeats,
    )
    return [
        ratio_row("training step, plain / ours, 32×128", "≥ 3.5", times, "plain", "ours"),
        ratio_row("training step, ours / dense, 32×128", "≤ 1.10", times, "ours", "dense"),
    ]


def memory_rows(batch: int, length: int) -> list[Row]:
    tasks = {"ours": "fused_step", "dense": "dense_step"}
    sizes = {side: memory_in_a_new_process(task, batch, length) for side, task in tasks.items()}
    states = {side: memory_in_a_new_process(f"{side}_state", 64, 32) for side in ("dense", "sparse")}
    return [
        (
            f"training memory, ours / dense, {batch}×{length}",
            "≤ 1.05",
            f"{sizes['ours'] / sizes['dense']:.2f}",
            ", ".join(f"{side} {value:.0f} MB" for side, value in sizes.items()),
        ),
        (
            "CircuitState at batch 64, dense / sparse (whole prediction, 64×32)",
            "-",
            f"{states['dense'] / states['sparse']:.1f}",
            ", ".join(f"{side} {value:.0f} MB" for side, value in states.items()),
        ),
    ]


def inference_rows(model: c.LexicalSAE, repeats: int) -> list[Row]:
    dense = c.dense_model()
    batch, texts = c.full(32, 128), c.ragged(256)
    full = {
        "plain": c.inference(model, c.plain_logits(model), [batch]),
        "ours": c.inference(model, c.sparse_logits(model), [batch]),
        "dense": c.inference(dense, c.dense_logits(dense), [batch]),
    }
    uneven = {
        "plain, in order": c.inference(model, c.plain_logits(model), c.in_order(texts, 32)),
        "ours, bucketed": c.inference(model, c.sparse_logits(model), c.bucketed(texts, 32)),
        "dense, in order": c.inference(dense, c.dense_logits(dense), c.in_order(texts, 32)),
    }
    times, ragged = seconds(full, repeats), seconds(uneven, repeats)
    return [
        ratio_row("inference, plain / ours, 32×128", "≥ 5", times, "plain", "ours"),
        ratio_row("inference, ours / dense, 32×128", "≤ 1.20", times, "ours", "dense"),
        ratio_row("inference on 256 reviews, plain / ours", "≥ 15", ragged, "plain, in order", "ours, bucketed"),
        ratio_row("inference on 256 reviews, ours / dense", "≤ 0.85", ragged, "ours, bucketed", "dense, in order"),
    ]


def length_plot(model: c.LexicalSAE, lengths: tuple[int, ...], repeats: int) -> str:
    """Seconds per training step against the length of the texts, batch 16."""
    dense = c.dense_model()
    found: dict[str, list[float]] = {"plain head": [], "ours": [], "dense classifier": []}
    for length in lengths:
        batch = c.full(16, length)
        sides: dict[str, Callable[[], object]] = {
            "plain head": c.training_step(model, c.plain_logits(model), [batch]),
            "ours": c.training_step(model, c.fused_logits(model), [batch]),
            "dense classifier": c.training_step(dense, c.dense_logits(dense), [batch]),
        }
        for side, value in seconds(sides, repeats).items():
            found[side].append(value)
    series = [Series(name, lengths, values) for name, values in found.items()]
    return line_chart("Training step, 16 texts", Axis("tokens per text", log=True), Axis("CPU seconds"), series)


def render(rows: list[Row]) -> str:
    lines = [f"| {name} | {goal} | **{measured}** | {figures} |" for name, goal, measured, figures in rows]
    machine = f"{platform.processor() or platform.machine()}, one thread, torch {torch.__version__}, fp32"
    head = [
        "# Benchmarks",
        "",
        f"Made by `make bench`. {machine}. Best of several rounds; ratios vary by some per cent.",
        "",
    ]
    return "\n".join([*head, "| comparison | goal | measured | figures |", "|---|---|---|---|", *lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="more rounds, longer texts, the largest memory size")
    is_full = parser.parse_args().full
    repeats = 5 if is_full else 2
    RESULTS.mkdir(exist_ok=True)
    model = c.lexical_model()
    rows: list[Row] = []
    parts: list[Callable[[], list[Row]]] = [
        lambda: head_rows(model, repeats),
        lambda: step_rows(model, repeats),
        lambda: memory_rows(64, 256) if is_full else memory_rows(32, 128),
        lambda: inference_rows(model, repeats),
        lambda: explainer_sides(model, repeats),
    ]
    for part in parts:
        rows += part()
        (RESULTS / "table.md").write_text(render(rows))
        print(render(rows).splitlines()[-1], flush=True)
    lengths = (16, 32, 64, 128, 256) if is_full else (16, 32, 64, 128)
    (RESULTS / "training_step_by_length.svg").write_text(length_plot(model, lengths, repeats))
    print((RESULTS / "table.md").read_text())


if __name__ == "__main__":
    main()
