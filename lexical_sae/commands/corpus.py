"""A model over a corpus (`lexicon`), and two models over the same one (`diff`)."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lexical_sae.commands.console import console
from lexical_sae.commands.options import (
    AllTokens,
    File,
    LabelColumn,
    MergeInflections,
    Model,
    Named,
    SkipBadRows,
    TextColumn,
    load_corpus,
    load_model,
    progress,
    require_file,
    saved_model,
)
from lexical_sae.utils.errors import SettingsError

Labelled = Annotated[
    bool, typer.Option("--labelled", help="Count texts under their given label, not under the model's decision.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")]


def lexicon(
    model: Model,
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
    """Show the words with the highest contributions to each class over a corpus, or everything about one word.

    Example: lexical-sae lexicon results/quickstart --data movie_snippets --word boring

    A model with literal words is a table, which a spreadsheet can open and `lexical-sae edit` reads back:

    lexical-sae lexicon results/quickstart --table words.csv
    """
    saved_model(model)
    require_file(file)
    if table is not None:
        if file is not None or data is not None or word is not None or label is not None:
            raise SettingsError("--table writes the weights of all words; leave out --file, --data, --word and --class")
        _write_table(model, table)
        return
    from lexical_sae.evaluation.collect import collect, opened_to_corpus
    from lexical_sae.evaluation.corpus.features import FeatureCollector
    from lexical_sae.evaluation.corpus.survey import survey
    from lexical_sae.inference.labels import label_index, labels_of
    from lexical_sae.intervene import opened_to_words
    from lexical_sae.report.lexicon import feature_panel, survey_view
    from lexical_sae.runs.texts import Columns

    loaded = load_model(model)
    names = labels_of(loaded)
    chosen = None if label is None else [names[label_index(names, label, "class")]]
    if word is not None:
        loaded = opened_to_words(loaded, word)
    asked = () if word is None else loaded.dimensions.find(word)
    corpus = load_corpus(loaded, file, data, Columns(text_column, label_column, labelled, skip_bad_rows))
    loaded, _ = opened_to_corpus(loaded, corpus.texts)
    pages = [FeatureCollector(loaded, i, top) for i in asked]
    with progress() as bars:
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
    from lexical_sae.intervene import attached_frequencies, model_table, write_word_table

    found = model_table(load_model(model), attached_frequencies(saved_model(model)))
    write_word_table(found, target)
    console.print(
        f"{len(found.rows)} words written to {target}; change weights or mark words under 'suppress', then: "
        f"lexical-sae edit {model} {target} --out EDITED",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


def diff(
    before: Annotated[Path, typer.Argument(help="Folder of the first run, or of its saved model.")],
    after: Annotated[Path, typer.Argument(help="Folder of the second run, or of its saved model.")],
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

    Example: lexical-sae diff results/old results/new --file texts.csv
    """
    before, after = saved_model(before), saved_model(after)
    require_file(file)
    from lexical_sae.evaluation.corpus.diff import diff_models
    from lexical_sae.report.diff import diff_view
    from lexical_sae.runs.texts import Columns

    old, new = load_model(before), load_model(after)
    corpus = load_corpus(old, file, data, Columns(text_column, label_column, labelled, skip_bad_rows))
    with progress() as bars:
        shown = {"top": top, "max_flips": top, "all_tokens": all_tokens}
        found = diff_models(old, new, corpus.texts, corpus.labels, **shown, on_step=bars).as_dict()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        console.print(diff_view(found))
