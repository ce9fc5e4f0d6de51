import pytest

from lexical_sae import runs as pipelines
from lexical_sae.commands.train import train_and_show
from lexical_sae.config.load import load_config
from lexical_sae.runs import Run
from lexical_sae.runs.pages import report as report_script


@pytest.fixture
def trained(finished, monkeypatch, capsys):
    """What is printed when training comes to its end in a folder."""
    settings = load_config(finished / "resolved_config.yaml").model_copy(update={"output_dir": str(finished)})
    monkeypatch.setattr(pipelines, "train_run", lambda *_, **__: Run(finished))

    def train() -> str:
        train_and_show(settings, "cpu", resume=False, baselines=False)
        return capsys.readouterr().out

    return train


def test_training_leaves_a_report_and_says_where(trained, finished):
    output = trained()
    page = (finished / "report.html").read_text()
    assert f"Report, to open in a browser: {finished / 'report.html'}" in output
    assert output.index("Report, to open") < output.index("Try your own")
    # Names and baselines that are in the folder are in the page.
    assert "96.5%" in page
    assert "model +7.5% (+5.0% to +10.0%)" in page
    assert page.count("<article>") == 8


@pytest.mark.parametrize("error", [OSError("no space [b]left[/b]"), KeyError("ours")], ids=["disk", "our mistake"])
def test_a_report_that_fails_does_not_lose_the_run(trained, finished, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(report_script, "run_page", fail)
    output = trained()
    assert f"its report could not be written ({type(error).__name__}: {error})" in output
    assert f"lexical-sae report '{finished}'" in output
    assert "Try your own" in output
    assert not (finished / "report.html").exists()
