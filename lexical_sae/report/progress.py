"""A progress bar per task, fed by the library's `Step` callbacks."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from lexical_sae.utils.progress import Step

BAR = 20
LEADING = BAR + 24
"""Characters of a line that the bar, a count such as 12345/123456 and the time left take up."""


class ProgressBars:
    """Bar, step and time left first, then what is done; a line never wraps.

    Use as a context manager, and pass the object itself as `on_step`.
    """

    def __init__(self, console: Console) -> None:
        self._bars = Progress(
            BarColumn(bar_width=BAR),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.description}", markup=False),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._console = console

    def __enter__(self) -> "ProgressBars":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, step: Step) -> None:
        figures = "  ".join(f"{name} {_short(value)}" for name, value in step.figures.items())
        if not self._console.is_terminal:
            # A bar cannot move in a log; a line per tenth shows that the work goes on.
            if step.total and step.done * 10 // step.total > (step.done - 1) * 10 // step.total:
                self._console.print(f"{step.task} {step.done}/{step.total}  {figures}", markup=False, highlight=False)
            return
        if step.task not in self._tasks:
            self._tasks[step.task] = self._bars.add_task(step.task, total=step.total)
        text = f"{step.task}  {figures}".rstrip()[: max(0, self._console.width - LEADING)]
        self._bars.update(self._tasks[step.task], completed=step.done, total=step.total, description=text)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
