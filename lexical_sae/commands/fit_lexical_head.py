"""Fit a lexical head: `python -m lexical_sae.commands.fit_lexical_head --text FILE --out DIR`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from lexical_sae.models.bundled import DEFAULT_BACKBONE
from lexical_sae.studies.lexical_head.settings import LexicalHeadSettings
from lexical_sae.utils.errors import SettingsError

DEFAULTS = LexicalHeadSettings()


def fit_lexical_head(
    text: Annotated[
        list[Path],
        typer.Option(
            "--text",
            help="Plain text, UTF-8, .txt or .gz: a paragraph per line, a blank line between documents. "
            "Repeat for more files; each gives an equal share.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for lexical_head.safetensors and card.json.")],
    encoder: Annotated[str, typer.Option(help="bundled:minilm, a local folder, or a hub name.")] = DEFAULT_BACKBONE,
    tokens: Annotated[
        int, typer.Option(min=1, help="Tokens of text to fit on. More helps rare words.")
    ] = DEFAULTS.tokens,
    held_out_tokens: Annotated[
        int, typer.Option(min=1, help="Tokens of text kept apart for the scores.")
    ] = DEFAULTS.held_out_tokens,
    held_out_text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE", help="Other text to score on, never fitted on, such as news=news.txt. Repeatable."
        ),
    ] = None,
    wordnet: Annotated[
        Path | None,
        typer.Option(help="Folder of the WordNet database (Debian: /usr/share/wordnet), to count related words."),
    ] = None,
    neighbour_share: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.9,
            help="Share of each word's target that goes to its nearest words: "
            "more gives better related words, fewer exact ones.",
        ),
    ] = DEFAULTS.neighbour_share,
    passes: Annotated[int, typer.Option(min=1, help="Times each token is used.")] = DEFAULTS.passes,
    learning_rate: Annotated[float, typer.Option(help="Highest learning rate.")] = DEFAULTS.learning_rate,
    half_precision: Annotated[
        bool, typer.Option("--half-precision", help="Store the head in half precision, in half the space.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same head on the same machine.")] = DEFAULTS.seed,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    note: Annotated[str, typer.Option(help="A sentence about the text, for the card.")] = "",
) -> None:
    """Teach an encoder without a masked-LM head to name the words of a text, and the words related to them.

    A sparse word layer reads the logits of a masked-LM head. Sentence encoders are published without one. This
    fits the missing transform and bias on plain text; the encoder itself stays as it is. Use the result with
    model.lexical_head in a config.

    Example: lexical-sae fit-lexical-head --text wiki.txt.gz --text reviews.txt --out my_head
    """
    # Imported here, so that `--help` does not wait for torch.
    from lexical_sae.studies.lexical_head.card import fit_and_score

    errors = Console(stderr=True)
    try:
        extra = _named_files(held_out_text or [])
        settings = LexicalHeadSettings(
            tokens=tokens,
            held_out_tokens=held_out_tokens,
            neighbour_share=neighbour_share,
            passes=passes,
            learning_rate=learning_rate,
            half_precision=half_precision,
            seed=seed,
        )
        _require_writable(out)
        with _progress_bar() as bar:
            card = fit_and_score(text, extra, out, encoder, settings, wordnet, device, note, bar.update)
        _show(card, Console())
        Console().print(f"Written to {escape(str(out))}")
    except ValidationError as error:
        first = error.errors()[0]
        errors.print(
            f"[red]Error:[/] --{str(first['loc'][0]).replace('_', '-')}: {escape(first['msg'])}", soft_wrap=True
        )
        raise typer.Exit(2) from error
    except (ValueError, OSError, RuntimeError) as error:
        errors.print(f"[red]Error:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        errors.print("Interrupted; nothing was written.")
        raise typer.Exit(130) from None


def _named_files(pairs: list[str]) -> dict[str, Path]:
    named = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (name and equals and path):
            raise SettingsError(f"--held-out-text {pair!r} is not NAME=FILE, such as news=news.txt")
        if name == "held_out" or name in named:
            raise SettingsError(f"--held-out-text {pair!r}: the name {name!r} is taken, choose another")
        named[name] = Path(path)
    return named


def _require_writable(folder: Path) -> None:
    """Find out before the work, not after it."""
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"cannot write to {folder}; choose another --out")


class _Bar:
    """One progress bar over the whole work, with what is happening beside it."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.task = progress.add_task("loading", total=1.0)

    def __enter__(self) -> "_Bar":
        self.progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.progress.stop()

    @property
    def update(self) -> Callable[[str, float], None]:
        return lambda what, done: self.progress.update(self.task, description=what, completed=done)


def _progress_bar() -> _Bar:
    columns = [TextColumn("{task.description:<26}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()]
    return _Bar(Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)))


def _show(card: dict[str, Any], console: Console) -> None:
    table = Table(title="Lexical head, scored on text it was not fitted on")
    for column in (
        "text",
        "head",
        "top-1",
        "top-5",
        "masked top-1",
        "related of 10",
        "logit: word / 10th / 100th / median",
    ):
        table.add_column(column, justify="left" if column in ("text", "head") else "right")
    for name, scores in card["scores"].items():
        heads = {"fitted": scores, "before fitting": scores["before_fitting"]}
        if "identity_transform" in scores:
            heads["identity transform"] = scores["identity_transform"]
        for head, found in heads.items():
            scale = [found["logit_scale"][key] for key in ("token", "rank_10", "rank_100", "median")]
            related = found.get("wordnet", {}).get("related_of_10")
            table.add_row(
                escape(name),
                head,
                f"{found['unmasked']['top1']:.1%}",
                f"{found['unmasked']['top5']:.1%}",
                f"{found['masked']['top1']:.1%}",
                "–" if related is None else f"{related:.2f}",
                " / ".join(f"{value:.1f}" for value in scale),
            )
    console.print(table)
