"""Which words are suppressed together: the forms of each word among those of a page, found for all at once."""

from collections.abc import Sequence

from lexical_sae.data.language import inflected
from lexical_sae.models.lexical_sae import LexicalSAE


def forms_among(model: LexicalSAE, dimensions: Sequence[int]) -> dict[int, list[int]]:
    """For each word the places of those that `find_words` counts as forms of it, itself included; words alone are left
    out.

    Args:
        model: A model with literal words.
        dimensions: The words.

    Example: of `film, plot, films` -> `{0: [0, 2], 2: [0, 2]}`
    """
    place = {dimension: i for i, dimension in enumerate(dimensions)}
    written = [inflected(model.dimensions[i].name) for i in dimensions]
    spelled = _dimensions_of(model, sorted(set().union(*written)))
    found = {}
    for i, forms in enumerate(written):
        together = sorted({place[d] for form in forms for d in spelled[form] if d in place} | {i})
        if len(together) > 1:
            found[i] = together
    return found


def _dimensions_of(model: LexicalSAE, forms: Sequence[str]) -> dict[str, set[int]]:
    """The dimensions that each string stands for as one word, after a space or by itself."""
    table, features = model.dimensions, model.dimensions.vocabulary.feature_mask.tolist()
    found = {}
    for form, ways in zip(forms, table.vocabulary.spellings(forms), strict=True):
        single = {way[0] for way in ways if len(way) == 1 and features[way[0]]}
        found[form] = single | {table.spelled[way] for way in ways if way in table.spelled}
    return found
