"""The recipes, one per generation of the method: each fixes every part."""

from collections.abc import Callable
from typing import Any

from lexical_sae.recipes.anchored import anchored
from lexical_sae.recipes.cajt import cajt
from lexical_sae.recipes.cis import cis
from lexical_sae.recipes.lexical_sae import lexical_sae
from lexical_sae.recipes.neighbours import neighbours
from lexical_sae.recipes.recipe import Recipe
from lexical_sae.recipes.transcoder import transcoder
from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.suggest import did_you_mean

RECIPES: dict[str, Callable[[], Recipe]] = {
    recipe.__name__: recipe for recipe in (anchored, cajt, cis, lexical_sae, neighbours, transcoder)
}


def recipe_by_name(name: Any) -> Recipe:
    """The recipe's full settings."""
    if not isinstance(name, str) or name not in RECIPES:
        raise SettingsError(
            f"recipe {name!r} is unknown{did_you_mean(str(name), RECIPES)} Choose from {', '.join(RECIPES)}"
        )
    return RECIPES[name]()
