"""Models behind HTTP: the command `serve`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexical_sae.commands.options import LabelColumn, SkipBadRows, TextColumn, require_file, saved_model
from lexical_sae.utils.errors import MissingPackageError, SettingsError

if TYPE_CHECKING:  # an optional package
    from lexical_sae.serve.settings import Settings


def serve(
    models: Annotated[list[str], typer.Argument(help="Folders of runs or saved models; NAME=FOLDER names one.")],
    data: Annotated[str | None, typer.Option(help="Texts for the corpus view: a file, or a data set by name.")] = None,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    workers: Annotated[int, typer.Option(help="Processes; they share the weights in memory.", min=1, max=64)] = 1,
    token: Annotated[str | None, typer.Option(help="Ask for this token; others on this machine can see it.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="Ask for the token in this file.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Answer to this host name too (may be given several times).")
    ] = None,
    cors: Annotated[
        list[str] | None, typer.Option(help="Let pages of this origin ask, as in https://example.org.")
    ] = None,
    batch: Annotated[int, typer.Option(help="Most texts of different requests read together; 1 for none.", min=1)] = 64,
    wait: Annotated[float, typer.Option(help="Longest wait for others, in milliseconds.", min=0, max=20)] = 3.0,
    threads: Annotated[int | None, typer.Option(help="Threads of each worker; by default all cores.", min=1)] = None,
    decision_log: Annotated[
        Path | None, typer.Option(help="Write each decision to this file, hash-chained, texts as salted hashes.")
    ] = None,
    log_texts: Annotated[bool, typer.Option("--log-texts", help="Write the texts to the decision log too.")] = False,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="Print a line per request.")] = False,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="The texts of --data have no labels.")] = False,
    skip_bad_rows: SkipBadRows = False,
) -> None:
    """Serve models over HTTP: predictions, explanations, what-if questions, and pages to try them.

    Example: lexical-sae serve results/quickstart --port 8000

    The pages are at the address that is printed, the endpoints with examples at /docs. Only this machine is let in,
    unless --host says otherwise; --token-file asks every caller for a token. Nothing of a text is logged.
    """
    try:
        from lexical_sae.serve.server import serve as run
        from lexical_sae.serve.server import spool_folder
    except ModuleNotFoundError as error:
        raise MissingPackageError(f"serving needs {error.name}: pip install 'lexical-sae[serve]'") from error
    from lexical_sae.serve.settings import LOOPBACK, Access, Batching, Data, Settings, named_models

    found = tuple((name, saved_model(folder)) for name, folder in named_models(models))
    require_file(data)
    if data is None and (text_column or label_column or unlabelled or skip_bad_rows):
        raise SettingsError("--text-column, --label-column, --unlabelled and --skip-bad-rows are about --data")
    if log_texts and decision_log is None:
        raise SettingsError("--log-texts is about the decision log; give its file with --decision-log")
    is_private = host in LOOPBACK
    hosts = (*LOOPBACK, *(allow_host or ())) if is_private or allow_host else ()
    access = Access(_token(token, token_file), hosts, tuple(cors or ()))
    texts = None if data is None else Data(data, text_column, label_column, not unlabelled, skip_bad_rows)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not is_private and access.token is None:
        typer.echo("anyone who reaches this machine may ask; --token-file asks for a token", err=True)
    with spool_folder() as spool:
        settings = Settings(
            models=found,
            spool=spool,
            data=texts,
            batching=Batching(batch, wait / 1000),
            access=access,
            workers=workers,
            threads=threads or max(1, cores // workers),
            decision_log=decision_log,
            log_texts=log_texts,
            log_requests=log_requests,
        )
        run(settings, host, port, lambda address: typer.echo(_welcome(settings, address)))


def _welcome(settings: "Settings", address: str) -> str:
    names = ", ".join(name for name, _ in settings.models)
    verb = "serving" if settings.workers == 1 else f"starting {settings.workers} workers for"
    return f"{verb} {names} at {address}/ (endpoints: {address}/docs/); Ctrl-C stops"


def _token(token: str | None, file: Path | None) -> str | None:
    """The token that was given; an empty one would let everybody in."""
    if token is not None and file is not None:
        raise SettingsError("give either --token or --token-file")
    if file is not None:
        require_file(file, "token file")
        token = file.read_text(encoding="utf-8").strip()
    if token is not None and not token.strip():
        raise SettingsError(
            f"the token {'in ' + str(file) if file else '(--token)'} is empty; write one, without spaces"
        )
    return token
