"""Where the records of a run go: always to `history.jsonl`, to TensorBoard too when it is installed."""

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from splade.training.run_folder import RunFolder


@contextmanager
def recorder(folder: RunFolder) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that takes records while a run goes on; in a resumed run, after the checkpoint was loaded.

    TensorBoard's files are made anew from the history, which the checkpoint has put in order. Those of a killed run
    lack what had not been flushed, and hold steps that are taken again.
    """
    if importlib.util.find_spec("tensorboard") is None:
        yield folder.append_history
        return
    from torch.utils.tensorboard import SummaryWriter  # pyright: ignore[reportPrivateImportUsage]

    for old in folder.tensorboard.glob("events.out.tfevents.*"):
        old.unlink()
    with SummaryWriter(str(folder.tensorboard)) as writer:
        step = 0

        def draw(values: Mapping[str, Any]) -> None:
            nonlocal step
            step = values.get("step", step)
            event = values.get("event", "training")
            for name, value in values.items():
                if isinstance(value, int | float) and name != "step":
                    writer.add_scalar(f"{event}/{name}", value, step)

        def record(values: dict[str, Any]) -> None:
            folder.append_history(values)
            draw(values)

        for values in folder.read_history():
            draw(values)
        yield record
