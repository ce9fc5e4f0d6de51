"""Who is told what a training run measures: callbacks, and trackers that are named in the settings.

A callback is an object with the methods of `Callback`. Whatever it raises, the run goes on without it.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lexical_sae.utils.errors import MissingPackageError, SettingsError
from lexical_sae.utils.plugins import register
from lexical_sae.utils.progress import OnStep, silent
from lexical_sae.utils.suggest import did_you_mean

logger = logging.getLogger(__name__)

TENSORBOARD_FOLDER = "tensorboard"
"""Folder in that of a run."""

Record = Mapping[str, Any]
"""What was measured, by name. `history.jsonl` has a line for each."""


OnRecord = Callable[[Record], None]
OnCheckpoint = Callable[[Mapping[str, Any]], object]


@dataclass
class Callbacks:
    """Who is told what while a run goes on."""

    on_step: OnStep = silent
    """Progress, for a person."""
    on_record: OnRecord = lambda _: None
    """A line of the history, per step and per epoch."""
    on_checkpoint: OnCheckpoint | None = None
    """The state from which the run can go on; None makes no checkpoints."""
    is_interrupted: Callable[[], bool] = lambda: False
    """Asked after every step: whether to save and stop."""
    is_out_of_time: Callable[[], bool] = lambda: False
    """Asked after every step: whether to end training there, with the best weights so far."""


@dataclass(frozen=True)
class Begun:
    """A run that begins or is resumed."""

    settings: Record
    """The settings of training, as YAML has them."""
    seed: int
    folder: Path | None = None
    """Where it writes; None for a run that writes nothing."""
    earlier: Sequence[Record] = ()
    """In a resumed run: what was recorded before its checkpoint."""


class Callback:
    """Is told what a run measures; override what you need.

    Example: `class Loss(Callback): on_step = lambda self, record: print(record["ce"])`
    """

    def on_begin(self, begun: Begun) -> None:
        """Before the first step of a run, or of its resumed part."""

    def on_step(self, record: Record) -> None:
        """After a step: `step`, `ce` and the other losses."""

    def on_event(self, record: Record) -> None:
        """Anything else, such as a learning rate that was found; `event` says what."""

    def on_epoch(self, record: Record) -> None:
        """After the validation that ends an epoch: `epoch`, `step`, `accuracy`, `ce`."""

    def on_end(self, record: Record) -> None:
        """After the last step: the figures of the epoch that was kept. A run that fails or is stopped has none."""

    def close(self) -> None:
        """At the very end, also of a run that fails or is stopped."""


class TensorBoard(Callback):
    """Curves in `tensorboard/` of the run's folder: `tensorboard --logdir results`."""

    writer: Any = None
    step = 0

    def __init__(self) -> None:
        if find_spec("tensorboard") is None:
            raise MissingPackageError("report_to: tensorboard needs it; install it with: pip install tensorboard")

    def on_begin(self, begun: Begun) -> None:
        """Open a new file, with what was recorded before.

        Files of a killed run lack what had not been flushed, and hold steps that are taken again; the history, which
        the checkpoint has put in order, is drawn instead.
        """
        from torch.utils.tensorboard import SummaryWriter  # pyright: ignore[reportPrivateImportUsage]

        if begun.folder is None:
            raise SettingsError("report_to: tensorboard writes to the run's folder, and this run has none")
        place = begun.folder / TENSORBOARD_FOLDER
        for old in place.glob("events.out.tfevents.*"):
            old.unlink()
        self.writer = SummaryWriter(str(place))
        for record in begun.earlier:
            self._draw(record)

    def on_step(self, record: Record) -> None:
        """Draw the losses of a step."""
        self._draw(record)

    def on_event(self, record: Record) -> None:
        """Draw what else was found."""
        self._draw(record)

    def on_epoch(self, record: Record) -> None:
        """Draw the figures of a validation."""
        self._draw(record)

    def on_end(self, record: Record) -> None:  # noqa: ARG002 - the figures are drawn already
        """Write what is left."""
        self.close()

    def close(self) -> None:
        """Write what is left; also where a run is stopped."""
        if self.writer is not None:
            self.writer.close()

    def _draw(self, record: Record) -> None:
        self.step = record.get("step", self.step)
        event = record.get("event", "training")
        for name, value in record.items():
            if isinstance(value, int | float) and name != "step":
                self.writer.add_scalar(f"{event}/{name}", value, self.step)


TRACKERS: dict[str, Callable[[], Any]] = {"tensorboard": TensorBoard}
"""What `training.report_to` may name."""


def register_tracker(name: str, make: Callable[[], Any]) -> None:
    """Add a tracker of one's own under a name for `training.report_to`.

    Args:
        name: A new name.
        make: Called once per run; returns a callback.
    """
    register(TRACKERS, name, make, "tracker")


def trackers(names: Iterable[str]) -> list[Any]:
    """The trackers that `training.report_to` names, new for each run."""
    return [TRACKERS[name]() for name in map(known_tracker, names)]


def known_tracker(name: str) -> str:
    """The name of a tracker, if it is one."""
    if name not in TRACKERS:
        raise SettingsError(
            f"training.report_to names {name!r}, which is no tracker{did_you_mean(name, TRACKERS)} "
            f"Known: {', '.join(sorted(TRACKERS))}; pass others in Python, as callbacks, or register them"
        )
    return name


METHODS = {"": "on_step", "validation": "on_epoch"}
"""Which method takes records of which event."""


@dataclass
class Told:
    """Several callbacks as one that never raises: one that does is left out from then on, and a warning says so."""

    callbacks: Sequence[Any]
    _silent: set[int] = field(default_factory=set)

    def begin(self, begun: Begun) -> None:
        """A run begins."""
        self._tell("on_begin", begun)

    def record(self, record: Record) -> None:
        """A line of the history."""
        self._tell(METHODS.get(record.get("event", ""), "on_event"), record)

    def end(self, record: Record) -> None:
        """The run has ended well."""
        self._tell("on_end", record)

    def close(self) -> None:
        """The run has ended, well or not."""
        self._tell("close")

    def _tell(self, method: str, *given: Any) -> None:
        for place, callback in enumerate(self.callbacks):
            # An object of the user's own may lack what it does not need.
            if place in self._silent or not hasattr(callback, method):
                continue
            try:
                getattr(callback, method)(*given)
            except Exception:
                self._silent.add(place)
                name = type(callback).__name__
                logger.warning("%s raised in %s; the run goes on without it", name, method, exc_info=True)
