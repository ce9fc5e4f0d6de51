"""Taggers: the commands `tag` and `ner`."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer
from rich.console import Console
from rich.text import Text

from lexical_sae.commands.console import console, training_together, watching
from lexical_sae.commands.options import METHODS, AllTokens, Device, progress, require_choice, require_file, saved_model
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.files import require_writable_target

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from collections.abc import Sequence

    from lexical_sae.config.schema import ExperimentConfig
    from lexical_sae.data.tagged_sentence import TaggedSentence
    from lexical_sae.models.lexical_sae import LexicalSAE

FEW = 50
"""Up to this many texts are tagged before a bar would be visible."""


def tag(
    model: Annotated[Path, typer.Argument(help="Folder of a tagger's run, or of the saved tagger.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts, each in quotes.", show_default=False)] = None,
    file: Annotated[
        Path | None, typer.Option(help="CoNLL-style file: a word per line, its own tag last, which is ignored.")
    ] = None,
    why: Annotated[str | None, typer.Option(help="Explain the tag of this word; by default nothing.")] = None,
    contrast: Annotated[str | None, typer.Option(help="With --why: not this tag, as in --contrast B-LOC.")] = None,
    method: Annotated[str, typer.Option(help="With --why: dla, path or leave_one_out.")] = "dla",
    top: Annotated[int, typer.Option(help="With --why: words to show.", min=1)] = 8,
    flip: Annotated[
        str | None, typer.Option(help="Find the fewest words without which this word gets another tag, with proof.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="With --flip: this other tag; by default any.")] = None,
    seconds: Annotated[float, typer.Option(help="With --flip: time for each of the two searches.", min=0.1)] = 10.0,
    all_tokens: AllTokens = False,
    topk: Annotated[int | None, typer.Option(help="Let each position use only its k strongest words.", min=1)] = None,
    conll: Annotated[
        str | None, typer.Option(help="Print words and tags in columns, in the scheme IOB1, IOB2 or BIOES.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each text.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with entities and their reasons instead.")] = None,
) -> None:
    """Find names in texts and show what they are names of.

    Example: lexical-sae tag results/ner/conll2003 "Acme moved from Oslo to Berlin"

    Why not a place: lexical-sae tag MODEL "Acme moved to Oslo" --why Acme --contrast B-LOC

    What it depends on: lexical-sae tag MODEL "Acme moved to Oslo" --flip Acme --to B-LOC
    """
    if bool(texts) == (file is not None):
        raise SettingsError("give either texts, each in quotes, or --file with words in a column")
    if sum((as_json, conll is not None, html is not None)) > 1:
        raise SettingsError("--json, --conll and --html each say how to show the tags; give one of them")
    if contrast is not None and why is None:
        raise SettingsError(f"--contrast {contrast!r} asks why not that tag, of a word: name it with --why")
    if to is not None and flip is None:
        raise SettingsError(f"--to {to!r} asks what would make a word that tag: name the word with --flip")
    if html is not None:
        require_writable_target(html, reads=[file] if file else [], option="--html")
    require_file(file)
    require_choice("--method", method, METHODS)
    loaded = _loaded(saved_model(model), topk)
    from lexical_sae.inference.tagging import tag as tag_texts
    from lexical_sae.runs.tagging.pages import write_sentences
    from lexical_sae.utils.progress import silent

    given = _sentences(file) if file is not None else list(texts or [])
    with progress() if len(given) > FEW else nullcontext() as bars:
        on_step = bars or silent
        found = tag_texts(loaded, given, on_step=on_step)
        page = None if html is None else write_sentences(loaded, given, found, html, on_step, all_tokens=all_tokens)
    if page is not None:
        typer.echo(f"written to {page}")
    elif conll is not None:
        _print_columns(found, conll)
    elif as_json:
        for sentence in found:
            typer.echo(json.dumps(sentence.as_dict()))
    else:
        _print_coloured(loaded, found)
    if why is not None:
        number, word = _place(found, why)
        asked = _Asked(contrast, method, top, all_tokens)
        _explain(loaded, given[number], word, asked, as_json=as_json)
    if flip is not None:
        number, word = _place(found, flip)
        _find_flip(loaded, given[number], word, (to, seconds, all_tokens), as_json=as_json)


def _loaded(folder: Path, topk: int | None) -> "LexicalSAE":
    with Console(stderr=True).status("loading the model"):
        from lexical_sae.models.layers.pooling import TopK
        from lexical_sae.models.lexical_sae import TAG
        from lexical_sae.models.persistence import from_pretrained

        loaded = from_pretrained(folder)
        loaded.head(TAG)
    if topk is not None:
        loaded.topk = TopK(topk)
    return loaded


def _sentences(file: Path) -> "list[Sequence[str]]":
    from lexical_sae.data.sources.conll import read_conll

    return cast("list[Sequence[str]]", list(read_conll(file).column("tokens")))


def _print_coloured(model: "LexicalSAE", found: "Sequence[TaggedSentence]") -> None:
    from lexical_sae.models.lexical_sae import TAG
    from lexical_sae.report.explanation.entities import entities_text
    from lexical_sae.runs.tagging.pages import types_of

    for sentence in found:
        console.print(entities_text(sentence, types_of(model.labels[TAG])), soft_wrap=True)


def _print_columns(found: "Sequence[TaggedSentence]", scheme: str) -> None:
    from lexical_sae.data.tagging import from_iob2

    for sentence in found:
        for word, name in zip(sentence.words, from_iob2(sentence.tags, scheme), strict=True):
            typer.echo(f"{word} {name}")
        typer.echo()


def _place(found: "Sequence[TaggedSentence]", word: str) -> tuple[int, int]:
    """The first text that has the word, and its place there."""
    from lexical_sae.inference.tag_explaining import find_word

    has_it = [i for i, sentence in enumerate(found) if word.casefold() in map(str.casefold, sentence.words)]
    number = has_it[0] if has_it else 0
    return number, find_word(found[number], word)


class _Asked(NamedTuple):
    """How the tag of a word is to be explained."""

    contrast: str | None
    method: str
    top: int
    all_tokens: bool


def _explain(model: "LexicalSAE", text: "str | Sequence[str]", word: int, asked: _Asked, *, as_json: bool) -> None:
    from lexical_sae.inference.tag_explaining import explain_tags
    from lexical_sae.report.explanation.terminal import explanation_panel

    contrast, method, top, all_tokens = asked
    (explanation,) = explain_tags(model, text, [word], contrast=contrast, method=method, all_tokens=all_tokens)
    if as_json:
        typer.echo(explanation.to_json())
    else:
        console.print(explanation_panel(explanation, top))


def _find_flip(
    model: "LexicalSAE", text: "str | Sequence[str]", word: int, asked: tuple[str | None, float, bool], *, as_json: bool
) -> None:
    from lexical_sae.inference.reasons import find_reasons
    from lexical_sae.inference.tagging import untagged_sentence
    from lexical_sae.report.explanation.reasons import reasons_panel
    from lexical_sae.report.printable import shown

    to, seconds, all_tokens = asked
    with Console(stderr=True).status("looking for the fewest words"):
        # Only the clock stops the search: the number of sets is no limit that a person would set.
        limits = {"max_nodes": 10**9, "seconds": seconds}
        found = find_reasons(model, text, to, **limits, word=word, all_tokens=all_tokens)
    written = untagged_sentence(text).words[word]
    if as_json:
        typer.echo(json.dumps({"word": written, **found.as_dict()}))
    else:
        console.print(Text(f"{shown(written)}, word {word} of the text, by itself:", style="dim"))
        console.print(reasons_panel(found))


def ner(
    config: Annotated[Path, typer.Option(help="Experiment file (YAML), such as experiments/ner/conll2003.yaml.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the run; by default the experiment's output_dir.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Your own CoNLL-style file or folder instead of the experiment's data.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was interrupted, from its last checkpoint.")
    ] = False,
    dense: Annotated[
        bool, typer.Option("--dense", help="Train the dense baseline only, on the same sentences, and compare.")
    ] = False,
    rate: Annotated[
        list[float] | None,
        typer.Option(
            help="A learning rate that the dense baseline may choose on validation; give several. Each is a run."
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Train a tagger for names (or any tags in BIO) and score it on test sentences.

    Example: python -m lexical_sae.scripts.run_ner --config experiments/ner/conll2003.yaml

    Your own: the same with --data mine.conll --out results/mine
    """
    from lexical_sae.config.load import load_config
    from lexical_sae.config.schema import TAGGING_RECIPE

    settings = load_config(config, default_recipe=TAGGING_RECIPE)
    if out is not None:
        settings = settings.model_copy(update={"output_dir": str(out)})
    if data is not None:
        given = settings.data.model_copy(update={"dataset_name": data, "path": None})
        settings = settings.model_copy(update={"data": given})
    if dense:
        _compare(settings, device, tuple(rate or ()))
    else:
        _train(settings, device, resume=resume)


def _train(config: "ExperimentConfig", device: str, *, resume: bool) -> None:
    from lexical_sae.config.schema import TAGGING_RECIPE
    from lexical_sae.evaluation.tagging.faithfulness import TagFaithfulness
    from lexical_sae.evaluation.views.tagging import tagging_evaluation_figures
    from lexical_sae.report.explanation.entities import caps_table, seeds_figures, tagger_figures, types_table
    from lexical_sae.report.terminal import figures_table
    from lexical_sae.runs import Run
    from lexical_sae.runs.tagging.experiment import run_ner

    heading = f"{config.experiment_name}: {config.data.dataset_name} with {config.model.name}, recipe {config.recipe}"
    default = " (the default of taggers)" if config.recipe == TAGGING_RECIPE else ""
    with training_together(device) as is_first:
        console.print(Text(heading + default, style="bold"))
        with watching() as watchers:
            results = run_ner(config, resume=resume, device=device, watchers=watchers)
    if not is_first:
        return
    for run in results.get("runs", [results]):
        console.print(figures_table(*tagger_figures(run)))
        console.print(types_table(run["test"]))
        console.print(caps_table(run["test"]))
    for one in Run.of(config).seeds:
        if (own := one.evaluation_on(config.evaluation.texts)) is None:
            continue
        console.print(
            Text(f"Seed {one.seed}, on {own['sentences']} test sentences, 95 % intervals over them", style="bold")
        )
        for heading, rows in tagging_evaluation_figures(TagFaithfulness.from_dict(own)):
            console.print(figures_table(heading, rows))
    if "mean" in results:
        console.print(figures_table(*seeds_figures(results["mean"])))
    console.print(Text(f"everything is in {config.output_dir}; open report.html in a browser", style="dim"))


def _compare(config: "ExperimentConfig", device: str, rates: tuple[float, ...]) -> None:
    from lexical_sae.report.progress import ProgressBars
    from lexical_sae.report.terminal import figures_table
    from lexical_sae.runs import Run
    from lexical_sae.runs.tagging.experiment import run_dense_tagger
    from lexical_sae.runs.tagging.pages import DENSE, write_tagging_report
    from lexical_sae.training.baselines.fine_tuning import DENSE_RATES

    with ProgressBars(console) as bars:
        found = run_dense_tagger(config, device, rates=rates or DENSE_RATES, on_step=bars)
        run = Run.of(config, device)
        if run.is_tagger:
            write_tagging_report(run, on_step=bars)
    dense = found[DENSE]
    rows = [(DENSE, f"{dense['f1']:.2%}", f"entity F1; chosen on validation: {dense['setting']}")]
    if "model" in found:
        rows.insert(0, ("this model", f"{found['model']['f1']:.2%}", "entity F1"))
    console.print(figures_table(f"On {found['test_sentences']} test sentences", rows))
