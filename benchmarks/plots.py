"""Cost of a training step against length and batch, and of the head against the vocabulary."""

from collections.abc import Callable, Iterator

import torch

from benchmarks import contenders as c
from benchmarks.measure import seconds
from lexical_sae.models.layers.vocab_head import max_logits, reference_max_logits
from lexical_sae.report.charts.svg import Axis, Series, line_chart

LARGEST_PLAIN = 4096
"""Tokens beyond which a plain head does not fit in memory."""
Sides = dict[str, Callable[[], object]]


def charts(models: dict[str, c.LexicalSAE], repeats: int, *, is_full: bool) -> Iterator[tuple[str, str]]:
    """Name and SVG of every plot."""
    lengths = (16, 32, 64, 128, 256) if is_full else (16, 32, 64, 128)
    batches = (4, 16, 32, 64) if is_full else (4, 16, 32)
    yield (
        "training_step_by_length",
        _chart(
            "Training step, 16 texts",
            "tokens per text",
            lengths,
            lambda length: step_sides(models, 16, length),
            repeats,
        ),
    )
    yield (
        "training_step_by_batch",
        _chart(
            "Training step, 64 tokens per text", "texts", batches, lambda batch: step_sides(models, batch, 64), repeats
        ),
    )
    sizes = (4096, 8192, 16384, 30522, 50368)
    yield (
        "head_by_vocabulary",
        _chart("Head forward and backward, 16×64, whole vocabulary", "words", sizes, vocabulary_sides, repeats),
    )


def step_sides(models: dict[str, c.LexicalSAE], batch: int, length: int) -> Sides:
    texts, dense, whole = c.full(batch, length), c.dense_model(), models["whole vocabulary"]
    sides: Sides = {}
    if batch * length <= LARGEST_PLAIN:
        sides["plain head"] = c.training_step(whole, c.plain_logits(whole), [texts])
    for name, model in models.items():
        sides[name] = c.training_step(model, c.fused_logits(model), [texts])
    sides["dense classifier"] = c.training_step(dense, c.dense_logits(dense), [texts])
    return sides


def vocabulary_sides(size: int) -> Sides:
    """The head alone on random states, a hundred words per text with a gradient; 50,368 is ModernBERT's vocabulary."""
    torch.manual_seed(0)
    hidden = torch.randn(16, 64, 384, requires_grad=True)
    weight, bias = torch.randn(size, 384) / 20, torch.zeros(size)
    mask = torch.ones(16, 64, dtype=torch.bool)

    def step(pool: Callable[..., torch.Tensor]) -> Callable[[], None]:
        def run() -> None:
            hidden.grad = None
            pooled = pool(hidden, weight, bias, mask)
            pooled.topk(100, dim=1).values.sum().backward()

        return run

    return {"plain head": step(reference_max_logits), "fused head": step(max_logits)}


def _chart(title: str, label: str, points: tuple[int, ...], sides_at: Callable[[int], Sides], repeats: int) -> str:
    found: dict[str, tuple[list[int], list[float]]] = {}
    for point in points:
        for side, value in seconds(sides_at(point), repeats).items():
            x, y = found.setdefault(side, ([], []))
            x.append(point)
            y.append(value)
    series = [Series(name, x, y) for name, (x, y) in found.items()]
    return line_chart(title, Axis(label, log=True), Axis("CPU seconds", log=True), series)
