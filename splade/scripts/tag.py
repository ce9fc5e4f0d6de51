"""`lexical-sae tag MODEL TEXT...`: names in texts, in colour, and why."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer
from rich.console import Console
from rich.text import Text

from splade.files import require_writable_target
from splade.scripts.console import AllTokens, console, run_command
from splade.scripts.corpus import progress_beside

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from collections.abc import Sequence

    from splade.data.tagged_sentence import TaggedSentence
    from splade.models.lexical_sae import LexicalSAE

FEW = 50
"""So many texts are tagged before a bar could be seen."""


def tag(
    model: Annotated[Path, typer.Argument(help="Folder of a saved tagger.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts, each in quotes.", show_default=False)] = None,
    file: Annotated[
        Path | None, typer.Option(help="CoNLL-style file: a word per line, its own tag last, which is not looked at.")
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

    Example: lexical-sae tag results/ner/conll2003/model "Acme moved from Oslo to Berlin"

    Why not a place: lexical-sae tag MODEL "Acme moved to Oslo" --why Acme --contrast B-LOC

    What it hangs on: lexical-sae tag MODEL "Acme moved to Oslo" --flip Acme --to B-LOC
    """
    if bool(texts) == (file is not None):
        raise ValueError("give either texts, each in quotes, or --file with words in a column")
    if sum((as_json, conll is not None, html is not None)) > 1:
        raise ValueError("--json, --conll and --html each say how to show the tags; give one of them")
    if contrast is not None and why is None:
        raise ValueError(f"--contrast {contrast!r} asks why not that tag, of a word: name it with --why")
    if to is not None and flip is None:
        raise ValueError(f"--to {to!r} asks what would make a word that tag: name the word with --flip")
    if html is not None:
        require_writable_target(html, reads=[file] if file else [], option="--html")
    loaded = _loaded(model, topk)
    from splade.inference.tagging import tag as tag_texts
    from splade.progress import silent
    from splade.scripts.ner_report import write_sentences

    given = _sentences(file) if file is not None else list(texts or [])
    with progress_beside() if len(given) > FEW else nullcontext() as bars:
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
        from splade.models.layers.pooling import TopK
        from splade.models.lexical_sae import TAG
        from splade.models.persistence import from_pretrained

        loaded = from_pretrained(folder)
        loaded.head(TAG)
    if topk is not None:
        loaded.topk = TopK(topk)
    return loaded


def _sentences(file: Path) -> "list[Sequence[str]]":
    from splade.data.conll import read_conll

    return cast("list[Sequence[str]]", list(read_conll(file).column("tokens")))


def _print_coloured(model: "LexicalSAE", found: "Sequence[TaggedSentence]") -> None:
    from splade.models.lexical_sae import TAG
    from splade.report.entities_terminal import entities_text
    from splade.scripts.ner_report import types_of

    for sentence in found:
        console.print(entities_text(sentence, types_of(model.labels[TAG])), soft_wrap=True)


def _print_columns(found: "Sequence[TaggedSentence]", scheme: str) -> None:
    from splade.data.tagging import from_iob2

    for sentence in found:
        for word, name in zip(sentence.words, from_iob2(sentence.tags, scheme), strict=True):
            typer.echo(f"{word} {name}")
        typer.echo()


def _place(found: "Sequence[TaggedSentence]", word: str) -> tuple[int, int]:
    """The first text that has the word, and its place there."""
    from splade.inference.tag_explaining import find_word

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
    from splade.inference.tag_explaining import explain_tags
    from splade.report.explanation_terminal import explanation_panel

    contrast, method, top, all_tokens = asked
    (explanation,) = explain_tags(model, text, [word], contrast=contrast, method=method, all_tokens=all_tokens)
    if as_json:
        typer.echo(explanation.to_json())
    else:
        console.print(explanation_panel(explanation, top))


def _find_flip(
    model: "LexicalSAE", text: "str | Sequence[str]", word: int, asked: tuple[str | None, float, bool], *, as_json: bool
) -> None:
    from splade.inference.reasons import find_reasons
    from splade.inference.tagging import untagged_sentence
    from splade.report.printable import shown
    from splade.report.reasons_terminal import reasons_panel

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


if __name__ == "__main__":
    run_command(tag)
