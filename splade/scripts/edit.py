"""Take words out of a saved model: the command `edit`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from splade.scripts.console import console, run_command


def edit(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model; it is not changed.")],
    lexicon: Annotated[Path, typer.Argument(help="YAML file with the words to take out under 'forbid:'.")],
    out: Annotated[Path, typer.Option(help="Folder for the edited model.")],
) -> None:
    """Save a copy of a model that cannot use the words of a lexicon file, whatever the text.

    Example: lexical-sae edit results/quickstart/model lexicon.yaml --out results/edited

    The file:   forbid: [muslim, jewish]     words to close, with their plurals and case variants
                keep: [church]               optional: words that must not be closed along with them
    """
    from splade.intervene import edit_saved_model, load_lexicon
    from splade.report.surgery_terminal import removal_table

    done = edit_saved_model(model, load_lexicon(lexicon), out)
    names = done.model.dimensions.names
    closed = {i for word in done.words for i in word.dimensions}
    words = {word.word: names(word.dimensions) for word in done.words}
    console.print(removal_table(words, names(sorted(closed - set(done.newly_closed)))))
    console.print(
        Text(
            f"written to {out}. Words near to these stay open and may say the same; what that does to "
            f"your texts: lexical-sae certify {model} {out} --file texts.csv --out certificate.json",
            style="dim",
        )
    )


if __name__ == "__main__":
    run_command(edit)
