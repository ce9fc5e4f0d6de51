"""`lexical-sae`: one command with sub-commands."""

import inspect
from typing import Annotated

import typer

import lexical_sae
from lexical_sae.commands.audit import audit
from lexical_sae.commands.audit_labels import audit_labels
from lexical_sae.commands.compare import (
    ablation,
    baselines,
    bcos_ablation,
    multi_dataset,
    sota_comparison,
    sweep,
)
from lexical_sae.commands.console import TRACEBACK, console, errors_as_sentences, expand_home, take_traceback
from lexical_sae.commands.corpus import diff, lexicon
from lexical_sae.commands.edit import certify, edit, plant, verify
from lexical_sae.commands.evaluate import calibrate, evaluate, names
from lexical_sae.commands.explain import explain, flip, why_not
from lexical_sae.commands.explore import explore
from lexical_sae.commands.fit_lexical_head import fit_lexical_head
from lexical_sae.commands.report import report
from lexical_sae.commands.score import score
from lexical_sae.commands.serve import serve
from lexical_sae.commands.studies import faithfulness, long_context, polysemy, sae
from lexical_sae.commands.surgery import surgery
from lexical_sae.commands.tag import ner, tag
from lexical_sae.commands.train import quickstart, train

PANELS = {
    "Start": (quickstart, train, ner, report),
    "Explain": (explore, explain, why_not, flip, tag, lexicon, diff, score, serve),
    "Measure": (evaluate, names, calibrate, audit, audit_labels),
    "Edit": (edit, certify, verify, surgery, plant),
    "Compare": (baselines, sweep, ablation, bcos_ablation, multi_dataset, sota_comparison),
    "Studies": (faithfulness, sae, long_context, polysemy, fit_lexical_head),
}

app = typer.Typer(
    name="lexical-sae",
    help="Text classifiers whose features are words: train one, and see exactly why it decides.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    traceback: Annotated[  # noqa: ARG001 - taken from the command line before commands see it
        bool, typer.Option(TRACEBACK, help="Show the traceback of every error.")
    ] = False,
) -> None:
    if version:
        console.print(f"lexical-sae {lexical_sae.__version__}", highlight=False)
        raise typer.Exit


def unwrapped(text: str) -> str:
    """Paragraphs on a line each: the terminal breaks them, and would keep the breaks of the source beside its own.

    What is set in columns, with lines that begin with a space, stays as it is.
    """
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(part if "\n " in part else " ".join(part.split()) for part in paragraphs)


for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel, help=unwrapped(command.__doc__ or ""))(command)


def main() -> None:
    """Run the command line."""
    expand_home()
    with errors_as_sentences(with_traceback=take_traceback()):
        app()


if __name__ == "__main__":
    main()
