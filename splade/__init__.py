"""The earlier import name: `splade.X` is `lexical_sae.X`, the same module, for every X.

The papers import `splade.models.lexical_sae` and run `python -m splade.scripts.run_experiment`; both keep working.
`_MOVED` lists the modules that have another name or room now.
"""

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

import lexical_sae
from lexical_sae import __all__ as __all__
from lexical_sae import __version__ as __version__

if TYPE_CHECKING:
    from lexical_sae import *  # noqa: F403

_MOVED = {
    "attribution": "mechanistic",
    "circuits.core": "models.circuit_state",
    "circuits.sequence_core": "models.circuit_state",
    "circuits.sequence_losses": "circuits.losses",
    "config.ner_schema": "config.schema",
    "evaluation.baselines": "evaluation.explainers",
    "evaluation.compare_explainers": "evaluation.explainers.benchmark",
    "evaluation.dense_baseline": "training.baselines.dense",
    "evaluation.eraser": "evaluation.metrics.eraser",
    "evaluation.faithfulness": "evaluation.metrics.removability",
    "evaluation.leace": "intervene.concepts.leace",
    "evaluation.mechanistic": "evaluation.suite",
    "evaluation.polysemy": "studies.polysemy.measuring",
    "evaluation.scaling_metrics": "evaluation.metrics.scaling_metrics",
    "mechanistic.layerwise": "evaluation.metrics.layerwise",
    "models.bcos": "models.heads",
    "pipelines": "runs",
    "training.losses": "circuits.losses",
    "utils.cuda": "utils.device",
}


def _current(name: str) -> str:
    """The name in `lexical_sae` of the module `splade.X`."""
    path = name.removeprefix("splade.")
    for old, new in _MOVED.items():
        if path == old or path.startswith(old + "."):
            return f"lexical_sae.{new}{path.removeprefix(old)}"
    return f"lexical_sae.{path}"


def _current_spec(name: str) -> ModuleSpec | None:
    """Where the module `splade.X` comes from; None if there is none."""
    try:
        return importlib.util.find_spec(_current(name))
    except ModuleNotFoundError as error:
        # A missing room is an unknown name; a missing library is an error of its own.
        if (error.name or "").startswith("lexical_sae"):
            return None
        raise


class _Alias(importlib.abc.InspectLoader):
    """Loads `splade.X` by putting the module `lexical_sae.X` in its place."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(_current(module.__name__))

    # The rest is for `python -m splade.X`, which runs the code without importing the module.
    def is_package(self, fullname: str) -> bool:
        return self._original(fullname).is_package(_current(fullname))

    def get_code(self, fullname: str) -> CodeType | None:
        return self._original(fullname).get_code(_current(fullname))

    def get_source(self, fullname: str) -> str | None:
        return self._original(fullname).get_source(_current(fullname))

    def _original(self, fullname: str) -> importlib.abc.InspectLoader:
        found = _current_spec(fullname)
        assert found is not None
        assert isinstance(found.loader, importlib.abc.InspectLoader)
        return found.loader


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - asked for by the protocol, as `target` is
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        found = _current_spec(fullname) if fullname.startswith("splade.") else None
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        return ModuleSpec(fullname, _Alias(), origin=found.origin, is_package=is_package)


# By name, as `importlib.reload` makes the class anew.
if not any(type(finder).__module__ == __name__ for finder in sys.meta_path):
    sys.meta_path.insert(0, _Finder())


def __getattr__(name: str) -> Any:
    try:
        return getattr(lexical_sae, name)
    except AttributeError:
        raise AttributeError(f"module 'splade' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
