"""`lexical-sae tag MODEL TEXT...`: names in texts, in colour, and why."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console

from splade.scripts.console import console, errors_as_sentences

if TYPE_CHECKING:  # imported late, so that --help does not wait for torch
    from collections.abc import Sequence

    from splade.data.tagged_sentence import TaggedSentence
    from splade.models.lexical_sae import LexicalSAE


def tag(
    model: Annotated[Path, typer.Argument(help="Folder of a saved tagger.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts, each in quotes.", show_default=False)] = None,
    file: Annotated[
        Path | None, typer.Option(help="CoNLL-style file: a word per line, its own tag last, which is not looked at.")
    ] = None,
    why: Annotated[str | None, typer.Option(help="Explain the tag of this word; by default nothing.")] = None,
    contrast: Annotated[str | None, typer.Option(help="With --why: not this tag, as in --contrast B-LOC.")] = None,
    method: Annotated[str, typer.Option(help="With --why: dla, path or leave_one_out.")] = "dla",
    top: Annotated[int, typer.Option(help="With --why or --html: words to show.", min=1)] = 8,
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
    """
    if bool(texts) == (file is not None):
        raise ValueError("give either texts, each in quotes, or --file with words in a column")
    if sum((as_json, conll is not None, html is not None)) > 1:
        raise ValueError("--json, --conll and --html each say how to show the tags; give one of them")
    if contrast is not None and why is None:
        raise ValueError(f"--contrast {contrast!r} asks why not that tag, of a word: name it with --why")
    loaded = _loaded(model, topk)
    from splade.inference.tagging import tag as tag_texts

    given = _sentences(file) if file is not None else list(texts or [])
    found = tag_texts(loaded, given)
    if html is not None:
        typer.echo(f"written to {_write_page(loaded, given, found, html)}")
    elif conll is not None:
        _print_columns(found, conll)
    elif as_json:
        for sentence in found:
            typer.echo(json.dumps(sentence.as_dict()))
    else:
        _print_coloured(loaded, found)
    if why is not None:
        _explain(loaded, given, found, (why, contrast, method, top))


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


def _types(model: "LexicalSAE") -> list[str]:
    from splade.data.tagging import parse_tag
    from splade.models.lexical_sae import TAG

    return sorted({parse_tag(name)[1] for name in model.labels[TAG]} - {""})


def _print_coloured(model: "LexicalSAE", found: "Sequence[TaggedSentence]") -> None:
    from splade.report.entities_terminal import entities_text

    for sentence in found:
        console.print(entities_text(sentence, _types(model)), soft_wrap=True)


def _print_columns(found: "Sequence[TaggedSentence]", scheme: str) -> None:
    from splade.data.tagging import from_iob2

    for sentence in found:
        for word, name in zip(sentence.words, from_iob2(sentence.tags, scheme), strict=True):
            typer.echo(f"{word} {name}")
        typer.echo()


def _write_page(
    model: "LexicalSAE", given: "Sequence[str | Sequence[str]]", found: "Sequence[TaggedSentence]", path: Path
) -> Path:
    from splade.files import write_text
    from splade.inference.tag_explaining import explain_tags
    from splade.report.tagging_html import ShownSentence, tagging_page

    shown = [
        ShownSentence(sentence, explain_tags(model, text, [entity.start for entity in sentence.entities]))
        for text, sentence in zip(given, found, strict=True)
    ]
    return write_text(path, tagging_page("Names in text", shown, _types(model)))


def _explain(
    model: "LexicalSAE",
    given: "Sequence[str | Sequence[str]]",
    found: "Sequence[TaggedSentence]",
    asked: tuple[str, str | None, str, int],
) -> None:
    """The panel of the first text that has the word."""
    from splade.inference.tag_explaining import explain_tags, find_word
    from splade.report.explanation_terminal import explanation_panel

    word, contrast, method, top = asked
    has_it = [i for i, sentence in enumerate(found) if word.casefold() in map(str.casefold, sentence.words)]
    number = has_it[0] if has_it else 0
    (explanation,) = explain_tags(
        model, given[number], [find_word(found[number], word)], contrast=contrast, method=method
    )
    console.print(explanation_panel(explanation, top))


if __name__ == "__main__":
    with errors_as_sentences():
        typer.run(tag)
