"""Where the records of a run go: always to `history.jsonl`, to TensorBoard too when it is installed."""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from splade.training.run_folder import RunFolder


@contextmanager
def recorder(folder: RunFolder) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that takes records while a run goes on."""
    if importlib.util.find_spec("tensorboard") is None:
        yield folder.append_history
        return
    from torch.utils.tensorboard import SummaryWriter  # pyright: ignore[reportPrivateImportUsage]

    with SummaryWriter(str(folder.path / "tensorboard")) as writer:
        step = 0

        def record(values: dict[str, Any]) -> None:
            nonlocal step
            folder.append_history(values)
            step = values.get("step", step)
            event = values.get("event", "training")
            for name, value in values.items():
                if isinstance(value, int | float) and name != "step":
                    writer.add_scalar(f"{event}/{name}", value, step)

        yield record
