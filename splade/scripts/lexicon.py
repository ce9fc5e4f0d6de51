"""A model over a corpus (`lexical-sae lexicon`), and two models over the same one (`lexical-sae diff`)."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from splade.scripts.console import AllTokens, MergeInflections, console, run_command
from splade.scripts.corpus import (
    Columns,
    File,
    LabelColumn,
    Named,
    SkipBadRows,
    TextColumn,
    load_corpus,
    progress_beside,
)

Labelled = Annotated[
    bool, typer.Option("--labelled", help="Count texts under their given label, not under the model's decision.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")]


def lexicon(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model.")],
    file: File = None,
    data: Named = None,
    label: Annotated[str | None, typer.Option("--class", help="Show this class only.")] = None,
    word: Annotated[str | None, typer.Option(help="Show the page of this word instead.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Write the weights of all words to this new CSV file instead; no texts needed.")
    ] = None,
    top: Annotated[int, typer.Option(help="How many words (with --word: texts) to show.", min=1)] = 20,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    skip_bad_rows: SkipBadRows = False,
    labelled: Labelled = False,
    all_tokens: AllTokens = False,
    merge_inflections: MergeInflections = False,
    as_json: AsJson = False,
) -> None:
    """Show which words speak for and against each class over a corpus, or all about one word.

    Example: lexical-sae lexicon results/quickstart/model --data movie_snippets --word boring

    A model with literal words is a table, which a spreadsheet can open and `lexical-sae edit` reads back:

    lexical-sae lexicon results/quickstart/model --table words.csv
    """
    if table is not None:
        if file is not None or data is not None or word is not None or label is not None:
            raise ValueError("--table writes the weights of all words; leave out --file, --data, --word and --class")
        _write_table(model, table)
        return
    from splade.evaluation.collect import collect, opened_to_corpus
    from splade.evaluation.features import FeatureCollector
    from splade.evaluation.survey import survey
    from splade.inference.labels import label_index, labels_of
    from splade.intervene import opened_to_words
    from splade.models.persistence import from_pretrained
    from splade.report.lexicon_terminal import feature_panel, survey_view

    loaded = from_pretrained(model)
    names = labels_of(loaded)
    chosen = None if label is None else [names[label_index(names, label, "class")]]
    if word is not None:
        loaded = opened_to_words(loaded, word)
    asked = () if word is None else loaded.dimensions.find(word)
    corpus = load_corpus(loaded, file, data, Columns(text_column, label_column, labelled, skip_bad_rows))
    loaded, _ = opened_to_corpus(loaded, corpus.texts)
    pages = [FeatureCollector(loaded, i, top) for i in asked]
    with progress_beside() as bars:
        if pages:
            collect(loaded, corpus.texts, pages, corpus.labels, on_step=bars)
            found: dict[str, Any] = {"pages": [page.page(all_tokens=all_tokens).as_dict() for page in pages]}
        else:
            shown = {"top": top, "all_tokens": all_tokens, "merge_inflections": merge_inflections}
            found = survey(loaded, corpus.texts, corpus.labels, **shown, on_step=bars).as_dict()
    if chosen is not None and not pages:
        found["lexicon"]["classes"] = [own for own in found["lexicon"]["classes"] if own["label"] in chosen]
        found["weights"] = {name: words for name, words in found["weights"].items() if name in chosen}
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    elif pages:
        for page in found["pages"]:
            console.print(feature_panel(page))
    else:
        console.print(survey_view(found, chosen))


def _write_table(model: Path, target: Path) -> None:
    from splade.intervene import attached_frequencies, model_table, write_word_table
    from splade.models.persistence import from_pretrained

    found = model_table(from_pretrained(model), attached_frequencies(model))
    write_word_table(found, target)
    console.print(
        f"{len(found.rows)} words written to {target}; change weights or mark words under 'suppress', then: "
        f"lexical-sae edit {model} {target} --out EDITED",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


def diff(
    before: Annotated[Path, typer.Argument(help="Folder of the first saved model.")],
    after: Annotated[Path, typer.Argument(help="Folder of the second saved model.")],
    file: File = None,
    data: Named = None,
    top: Annotated[int, typer.Option(help="How many words and flipped texts to show.", min=1)] = 20,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    skip_bad_rows: SkipBadRows = False,
    labelled: Labelled = False,
    all_tokens: AllTokens = False,
    as_json: AsJson = False,
) -> None:
    """Show what the second model does differently: words gained and lost, decisions flipped, and the words behind them.

    Example: lexical-sae diff results/old/model results/new/model --file texts.csv
    """
    from splade.evaluation.diff import diff_models
    from splade.models.persistence import from_pretrained
    from splade.report.diff_terminal import diff_view

    old, new = from_pretrained(before), from_pretrained(after)
    corpus = load_corpus(old, file, data, Columns(text_column, label_column, labelled, skip_bad_rows))
    with progress_beside() as bars:
        shown = {"top": top, "max_flips": top, "all_tokens": all_tokens}
        found = diff_models(old, new, corpus.texts, corpus.labels, **shown, on_step=bars).as_dict()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        console.print(diff_view(found))


if __name__ == "__main__":
    run_command(lexicon)
