"""Stands in for TensorBoard, which the tests do without: what is drawn is held back until it is flushed, as there."""

import json
import sys
from collections import defaultdict
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace


def installed(monkeypatch) -> SimpleNamespace:
    """TensorBoard as if it were installed; returned is how many writers were `made`, and the `last` of them."""
    board = SimpleNamespace(made=0, last=None)

    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            Path(folder).mkdir(exist_ok=True)
            board.made, board.last = board.made + 1, self
            self.path = Path(folder) / f"events.out.tfevents.{board.made}"
            self.path.write_text("")
            self.held: list = []

        def add_scalar(self, name: str, value: float, step: int) -> None:
            self.held.append((name, step, value))

        def flush(self, count: int) -> None:
            with self.path.open("a") as file:
                file.writelines(json.dumps(scalar) + "\n" for scalar in self.held[:count])
            del self.held[:count]

        def close(self) -> None:
            self.flush(len(self.held))

    package, writers = ModuleType("tensorboard"), ModuleType("torch.utils.tensorboard")
    package.__spec__ = ModuleSpec("tensorboard", None)
    writers.SummaryWriter = SummaryWriter  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "tensorboard", package)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", writers)
    return board


def drawn(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Every curve: the steps and values of all files, in the order of the files."""
    curves = defaultdict(list)
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for line in path.read_text().splitlines():
            name, step, value = json.loads(line)
            curves[name].append((step, value))
    return dict(curves)
