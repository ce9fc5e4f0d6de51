"""The recipes, one per generation of the method: each fixes every part."""

from collections.abc import Callable
from typing import Any

from splade.config.schema import Recipe
from splade.recipes.anchored import anchored
from splade.recipes.cajt import cajt
from splade.recipes.cis import cis
from splade.recipes.lexical_sae import lexical_sae
from splade.recipes.neighbours import neighbours
from splade.recipes.transcoder import transcoder
from splade.suggest import did_you_mean

RECIPES: dict[str, Callable[[], Recipe]] = {
    recipe.__name__: recipe for recipe in (anchored, cajt, cis, lexical_sae, neighbours, transcoder)
}


def recipe_by_name(name: Any) -> Recipe:
    """The recipe's full settings."""
    if not isinstance(name, str) or name not in RECIPES:
        raise ValueError(
            f"recipe {name!r} is unknown{did_you_mean(str(name), RECIPES)} Choose from {', '.join(RECIPES)}"
        )
    return RECIPES[name]()
