import io

from rich.console import Console

from lexical_sae.report.printable import shown
from lexical_sae.report.progress import ProgressBars
from lexical_sae.report.terminal import figures_table
from lexical_sae.utils.progress import Step


def rendered(thing, width=80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor")
    console.print(thing)
    return console.file.getvalue()


def test_progress_in_a_log_says_something_every_tenth():
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    with ProgressBars(console) as bars:
        for done in range(1, 101):
            bars(Step("training", done, 100, {"loss": 0.5}))
    lines = [line for line in console.file.getvalue().splitlines() if line.startswith("training ")]
    assert len([line for line in lines if "/100" in line]) >= 10


def test_work_of_no_steps_is_no_error_in_a_log():
    console = Console(file=io.StringIO(), force_terminal=False)
    with ProgressBars(console) as bars:
        bars(Step("reading edited texts", 0, 0))
    assert "reading edited texts" not in console.file.getvalue()


def test_shown_keeps_letters_of_any_script():
    assert shown("größe 漢字 مرحبا") == "größe 漢字 مرحبا"


def test_figures_are_named():
    output = rendered(figures_table("Title", [("accuracy", "81.0%", "a remark")]))
    assert all(word in output for word in ("Title", "accuracy", "81.0%", "a remark"))


def test_progress_bars_show_task_and_figures():
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with ProgressBars(console) as bars:
        bars(Step("training", 1, 4, {"loss": 0.5}))
        bars(Step("training", 4, 4, {"loss": 0.25}))
        bars(Step("testing", 1, 2))
    output = console.file.getvalue()
    assert all(word in output for word in ("training", "4/4", "loss 0.25", "testing", "1/2"))
