"""Parts that other packages bring: a term, gate, metric, explainer, data set or tracker.

A package names a module under the entry point group `lexical_sae.plugins`; importing the module registers its parts. A
script registers its own by calling the same functions. Installed plug-ins are imported when settings, models, metrics,
explainers or data sets are first looked up, not with the library.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, TypeVar, get_args

from pydantic import SerializeAsAny, WrapValidator

from lexical_sae.utils.errors import SettingsError
from lexical_sae.utils.part import PartConfig

logger = logging.getLogger(__name__)

GROUP = "lexical_sae.plugins"
Thing = TypeVar("Thing")
_lock = threading.RLock()
_loaded: set[str] = set()


class PluginError(SettingsError):
    """An installed plug-in that cannot be imported, or registers what is there already."""


def load_plugins() -> None:
    """Import the plug-ins of all installed packages, each once.

    Raises:
        PluginError: One cannot be imported; it names the package.
    """
    with _lock:
        for point in entry_points(group=GROUP):
            if point.value in _loaded:
                continue
            # Before the import: a plug-in may look something up itself.
            _loaded.add(point.value)
            try:
                point.load()
            except Exception as error:
                _loaded.discard(point.value)
                package = point.dist.name if point.dist else point.name
                raise PluginError(
                    f"plug-in {point.name!r} ({point.value}) cannot be imported: {error}. Mend or uninstall {package}"
                ) from error
            logger.info("plug-in %s (%s)", point.name, point.value)


def register(known: dict[str, Thing], name: str, thing: Thing, what: str) -> Thing:
    """Add a part under a name; another part of that name is refused.

    The same part from a module that is imported again takes the place of the first.
    """
    there = known.get(name)
    if there is not None and _origin(there) != _origin(thing):
        raise PluginError(f"a {what} called {name!r} is there already, from {_origin(there)[0]}; choose another name")
    known[name] = thing
    return thing


def kinds_of(union: Any) -> dict[str, type[PartConfig]]:
    """The settings of a union by their kind."""
    return {config.model_fields["kind"].default: config for config in get_args(union)}


def _origin(thing: Any) -> tuple[str, str]:
    kind = thing if hasattr(thing, "__qualname__") else type(thing)
    return kind.__module__, kind.__qualname__


class OtherKinds:
    """Kinds of a part beyond those of its union: what makes the union open."""

    def __init__(self, what: str, built_in: Callable[[], Mapping[str, Any]]) -> None:
        self.what, self.built_in = what, built_in
        self.configs: dict[str, type[PartConfig]] = {}

    def register(self, part: Thing) -> Thing:
        """Add a part with a nested `Config` whose field `kind` has the name as its default."""
        config = getattr(part, "Config", None)
        if not (isinstance(config, type) and issubclass(config, PartConfig) and "kind" in config.model_fields):
            raise PluginError(f"{part!r} needs a nested Config (a PartConfig) with a field `kind` and a `build`")
        kind = config.model_fields["kind"].default
        if kind in self.built_in():
            raise PluginError(f"a {self.what} of kind {kind!r} is built in; choose another name")
        register(self.configs, kind, config, f"{self.what} of kind")
        return part

    @property
    def annotations(self) -> tuple[Any, Any]:
        """For `Annotated`: settings of other kinds are accepted, and written with all their fields."""
        return WrapValidator(self._validated), SerializeAsAny()  # pyright: ignore[reportCallIssue]

    def _validated(self, value: Any, handler: Callable[[Any], Any]) -> Any:
        if isinstance(value, tuple(self.configs.values())):
            return value
        config = self.configs.get(value.get("kind", "")) if isinstance(value, dict) else None
        if config is None:
            return handler(value)
        # Strict as the settings around it are, and as JSON, because strictness knows no tuples in plain values.
        return config.model_validate_json(json.dumps(value), strict=True)
